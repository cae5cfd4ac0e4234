"""The order of steps among those of all ranks: turns that one rank gives, and fences.

With ``Config(consistency=...)`` a step that changes variables asks the rank that gives turns, by an
ENTER frame, begins when ENTERED has come, and tells its end with ENDED. That rank is one whose loss
ends the job in any case.

A fence goes to all ranks, with a FENCE frame each. Each holds back its own steps from then on, and
answers FENCED when none is under way that changes variables; UNFENCE lets them go on.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Hashable, Iterator
from typing import final

from headrace.errors import ConfigError, listing
from headrace.extend.runtime import Bound, Gate, Order, Wakeup, still_running
from headrace.extend.state import Cancellation
from headrace_mpi.transport.transport import Transport
from headrace_mpi.transport.wire import Frame, Kind

# What an ENTER frame says in `edge`: whether the step changes variables, and whether such steps run
# apart from those that read some. Its `iteration` is the bound.
_CHANGES = 1
_APART = 2
# What an ENTERED frame says in `edge`: that others ask for another bound.
_REFUSED = 1


@final
class ClusterOrder(Order):
    """The order of the steps of this rank's sessions among those of all ranks."""

    def __init__(
        self,
        transport: Transport,
        giver: int,
        where: Callable[[int], str],
        number: Callable[[], int],
    ) -> None:
        """Take the frames of other ranks.

        Args:
            transport: Not started yet.
            giver: The rank that gives turns.
            where: Returns how messages name a rank.
            number: Returns a new number for a step.
        """
        super().__init__()
        self._transport = transport
        self._giver = giver
        self._where = where
        self._number = number
        self._others = {rank for rank in range(transport.size) if rank != transport.rank}
        self._tickets = itertools.count(1)
        # Who waits for a turn, by the number of the step, and why one is not given.
        self._turns: dict[int, Wakeup] = {}
        self._refused: dict[int, BaseException] = {}
        # Whose answers each fence lacks.
        self._fences: dict[int, tuple[set[int], Wakeup]] = {}
        # The fences of others, with what was given to `hold`.
        self._theirs: dict[tuple[int, int], Callable[[], None]] = {}
        # Of the rank that gives turns.
        self._given: Gate[tuple[int, int]] | None = None
        transport.on(Kind.ENTER, self._on_enter)
        transport.on(Kind.ENTERED, self._on_entered)
        transport.on(Kind.ENDED, self._on_ended)
        transport.on(Kind.FENCE, self._on_fence)
        transport.on(Kind.FENCED, self._on_fenced)
        transport.on(Kind.UNFENCE, self._on_unfence)

    @property
    def steps(self) -> list[int]:
        """The steps that wait for their turns."""
        with self._changed:
            return list(self._turns)

    def lose(self, rank: int, error: BaseException) -> None:
        """Take back the turns and fences of a rank that is lost, and expect no answers of it."""
        with self._changed:
            self._others.discard(rank)
            waiting = list(self._turns.values()) if rank == self._giver else []
            self._refused.update((step, error) for step in self._turns if waiting)
            gone = [] if self._given is None else self._given.steps
            fences = [key for key in self._theirs if key[0] == rank]
            awaited = list(self._fences.items())
        for step in gone:
            if step[0] == rank:
                self._leave(step)
        for key in fences:
            self._unfence(key)
        for ticket, _ in awaited:
            self._answered(ticket, rank)
        for waiter in waiting:
            waiter.wake()

    def waits(self) -> list[str]:
        """Return who waits for what and whom, for messages."""
        with self._changed:
            turns = len(self._turns)
            fences = [sorted(missing) for missing, _ in self._fences.values()]
            gate = self._given
            behind = 0 if gate is None else len(gate.waiting)
            ranks = sorted({step[0] for step in (gate.under_way if behind and gate else ())})
        found = []
        if turns:
            steps = "a step waits for its turn" if turns == 1 else f"{turns} steps wait for turns"
            found.append(f"{steps}, which {self._where(self._giver)} gives")
        if behind:
            found.append(
                f"{behind} more steps get their turns when those of "
                f"{listing(map(self._where, ranks))} end"
            )
        found += [
            f"a fence waits for steps of {listing(map(self._where, missing))}" for missing in fences
        ]
        return found

    # -- turns

    def enter(self, bound: Bound, changes: bool, cancellation: Cancellation) -> Hashable:
        """Wait until a step may begin, and return what ``end`` takes; as of ``Order``."""
        step = self._number()
        waiter = Wakeup()
        with self._changed:
            self._turns[step] = waiter
        flags = (_CHANGES if changes else 0) | (_APART if bound.reads else 0)
        frame = Frame(Kind.ENTER, step, flags, bound.most)
        key = cancellation.add(lambda reason: waiter.wake())
        begun = False
        try:
            if self._giver == self._transport.rank:
                self._on_enter(self._giver, frame)
            else:
                self._transport.send(self._giver, frame)
            self._transport.wait(waiter)
            refused = cancellation.reason or self._refused.pop(step, None)
            if refused is not None:
                raise refused
            begun = True
        finally:
            cancellation.discard(key)
            with self._changed:
                del self._turns[step]
            if not begun:
                self.end(step)
        return step

    def end(self, step: Hashable) -> None:
        """Note that a step has ended, or does not wait any more."""
        assert isinstance(step, int)
        if self._giver == self._transport.rank:
            self._leave((self._giver, step))
        else:
            self._transport.send(self._giver, Frame(Kind.ENDED, step))

    def _on_enter(self, rank: int, frame: Frame) -> None:
        bound = Bound(frame.iteration, bool(frame.edge & _APART))
        step = (rank, frame.step)
        with self._changed:
            gate = self._given
            if gate is None or (gate.bound != bound and not gate.steps):
                gate = self._given = Gate(bound)
            fits = gate.bound == bound
            begins = fits and gate.enter(step, changes=bool(frame.edge & _CHANGES))
        if begins or not fits:
            self._answer(step, 0 if begins else _REFUSED)

    def _on_ended(self, rank: int, frame: Frame) -> None:
        self._leave((rank, frame.step))

    def _leave(self, step: tuple[int, int]) -> None:
        with self._changed:
            begin = [] if self._given is None else self._given.leave(step)
        for other in begin:
            self._answer(other, 0)

    def _answer(self, step: tuple[int, int], refused: int) -> None:
        rank, number = step
        frame = Frame(Kind.ENTERED, number, refused)
        if rank == self._transport.rank:
            self._on_entered(rank, frame)
        else:
            self._transport.send(rank, frame)

    def _on_entered(self, rank: int, frame: Frame) -> None:
        # A turn that came too late was given back already.
        with self._changed:
            waiter = self._turns.get(frame.step)
            if waiter is not None and frame.edge & _REFUSED:
                self._refused[frame.step] = ConfigError(
                    "sessions of several ranks do not agree on Config(consistency=...): steps "
                    "with another bound are under way; open all of them with the same setting"
                )
        if waiter is not None:
            waiter.wake()

    # -- fences

    @contextlib.contextmanager
    def fence(self, timeout: float) -> Iterator[None]:
        """Hold back steps of all ranks that change variables; as of ``Order``."""
        ticket = next(self._tickets)
        waiter = Wakeup()
        own = self._transport.rank
        quiet = functools.partial(self._answered, ticket, own)
        with self.passing():
            with self._changed:
                others = sorted(self._others)
                self._fences[ticket] = ({own, *others}, waiter)
            self.hold(quiet)
            try:
                for rank in others:
                    self._transport.send(rank, Frame(Kind.FENCE, edge=ticket))
                # A rank may have been lost since.
                for rank in set(others) - self._others:
                    self._answered(ticket, rank)
                self._await(ticket, waiter, timeout)
                yield
            finally:
                with self._changed:
                    self._fences.pop(ticket, None)
                self.release(quiet)
                for rank in others:
                    self._transport.send(rank, Frame(Kind.UNFENCE, edge=ticket))

    def _await(self, ticket: int, waiter: Wakeup, timeout: float) -> None:
        end = time.monotonic() + timeout
        while not self._transport.wait(waiter, max(end - time.monotonic(), 0.0)):
            if time.monotonic() >= end:
                with self._changed:
                    missing = sorted(self._fences[ticket][0])
                raise still_running(timeout, listing(map(self._where, missing)))

    def _answered(self, ticket: int, rank: int) -> None:
        with self._changed:
            missing, waiter = self._fences.get(ticket, (set(), None))
            missing.discard(rank)
        if waiter is not None and not missing:
            waiter.wake()

    def _on_fence(self, rank: int, frame: Frame) -> None:
        key = (rank, frame.edge)
        quiet = functools.partial(self._tell_quiet, rank, frame.edge)
        with self._changed:
            self._theirs[key] = quiet
        self.hold(quiet)

    def _tell_quiet(self, rank: int, ticket: int) -> None:
        self._transport.send(rank, Frame(Kind.FENCED, edge=ticket))

    def _on_fenced(self, rank: int, frame: Frame) -> None:
        self._answered(frame.edge, rank)

    def _on_unfence(self, rank: int, frame: Frame) -> None:
        self._unfence((rank, frame.edge))

    def _unfence(self, key: tuple[int, int]) -> None:
        with self._changed:
            quiet = self._theirs.pop(key, None)
        if quiet is not None:
            self.release(quiet)
