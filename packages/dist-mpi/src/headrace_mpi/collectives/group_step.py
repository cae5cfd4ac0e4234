"""One step of a group: its collectives, and how it fails on all ranks.

The steps of a group have numbers, the same on all ranks. The first time that a rank runs a step of
some collectives it tells the others what these are (their *plan*), and waits for what they tell.
Every later frame carries a hash of the plan, so that ranks that run different steps under one
number are told apart at once, and not by what comes of it.
"""

from __future__ import annotations

import functools
import json
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from headrace.errors import (
    AbortedError,
    ClusterError,
    HeadraceError,
    InvalidArgumentError,
    TaskLostError,
    shorten,
)
from headrace_mpi.collectives.parts import Array, LocalPart, RemotePart
from headrace_mpi.collectives.planning import text_of
from headrace_mpi.collectives.values import Algorithm, Value
from headrace_mpi.steps import remote_errors
from headrace_mpi.transport.wire import Frame, Kind

if TYPE_CHECKING:
    from headrace.extend.runtime import Cancellation
    from headrace_mpi.collectives.group import Group

Done = Callable[[Any], None]

_PHASES = 16
# From here on a rank reads a value in the memory of another rather than have it sent, and has to
# thank for it. To send it through memory that both share is one copy, too.
READ_BYTES = 32 * 1024
READ_BYTES_NEAR = 1 << 20
# Set in the phase of a frame that says where a value is.
_REFERENCE = 8


@functools.lru_cache(maxsize=256)
def digest_of(plan: tuple[str, ...]) -> int:
    """Return a hash of a plan, the same in every process."""
    return zlib.crc32("\n".join(plan).encode())


@final
class GroupStep:
    """The part of this rank in one step of a group. All is called with the group's lock held.

    Attributes:
        number: The number of the step.
        plan: The lines that describe its collectives.
        digest: The hash of the plan.
        cancellation: That of the step on this rank, which tells the step from others.
        error: What it failed with.
        moved: When it was last seen to go on, in seconds of the monotonic clock.
    """

    def __init__(
        self, group: Group, number: int, plan: tuple[str, ...], cancellation: Cancellation
    ) -> None:
        self.number = number
        self.plan = plan
        self.digest = digest_of(plan)
        self.cancellation = cancellation
        self.error: BaseException | None = None
        self.moved = time.monotonic()
        self._group = group
        self._left = -1
        self._agreed = not self._untold()
        self._differing: set[int] = set()
        self._exchanges: dict[int, Exchange] = {}
        self._inbox: dict[int, dict[tuple[int, int], Value]] = {}
        if self.digest not in group.announced:
            group.announced.add(self.digest)
            announcement = json.dumps({"plan": plan, "handle": group.probe.handle}).encode()
            for rank in group.others:
                group.send(rank, self._frame(Kind.COLLECTIVE_PLAN, 0, announcement))

    def _frame(self, kind: Kind, edge: int, payload: Any) -> Frame:
        return Frame(kind, self.number, edge, self.digest, payload=payload)

    def _untold(self) -> list[int]:
        """Return the ranks that are not known to have the plan."""
        return sorted(set(self._group.others) - self._group.having.get(self.digest, set()))

    def agree(self) -> None:
        """Begin to exchange values, if all ranks are known now to have the plan."""
        if self._agreed or self._untold() or self.over:
            return
        self._agreed = True
        for exchange in list(self._exchanges.values()):
            self._run(exchange)

    @property
    def over(self) -> bool:
        """Whether nothing of it is under way any more."""
        return self.error is not None or self._left == 0

    # -- the collectives of this rank

    def start(self, place: int, count: int, what: str, algorithm: Algorithm, done: Done) -> None:
        """Begin a collective.

        Args:
            place: Which of the step's it is.
            count: How many the step has.
            what: The collective, for messages.
            algorithm: What it does.
            done: Gets its outputs, or an error.
        """
        if self.error is not None:
            done(self.error)
            return
        if self._left < 0:
            self._left = count
        exchange = Exchange(self, place, what, algorithm, done)
        self._exchanges[place] = exchange
        if self._agreed:
            self._run(exchange)

    def _run(self, exchange: Exchange) -> None:
        try:
            outputs = exchange.advance(self._inbox.setdefault(exchange.place, {}))
        except HeadraceError as error:
            self.fail(error)
            return
        except Exception as error:
            failed = AbortedError(f"{exchange.what} failed: {type(error).__name__}: {error}")
            failed.__cause__ = error
            self.fail(failed)
            return
        if outputs is None:
            self.check_gone()
            return
        del self._exchanges[exchange.place]
        self._inbox.pop(exchange.place, None)
        self._left -= 1
        if not self._left:
            self._group.finished(self)
        exchange.done(outputs)

    def waits(self) -> list[tuple[str, list[int]]]:
        """Return the collectives that wait, each with the ranks that it waits for."""
        missing = self._untold()
        found = []
        for exchange in self._exchanges.values():
            known = self._inbox.get(exchange.place, {})
            found.append((exchange.what, exchange.missing(known) if self._agreed else missing))
        return found

    def check_gone(self) -> None:
        """Fail if a collective waits for a rank that will not come any more."""
        for what, ranks in self.waits():
            for rank in ranks:
                reason = self._group.gone.get(rank)
                if reason is not None:
                    self.fail(_gone_error(rank, reason, self._group.rank, what), told_by=rank)
                    return

    # -- what comes from other ranks

    def arrived(self, rank: int, frame: Frame) -> None:
        """Take a frame of another rank."""
        self.moved = time.monotonic()
        if self.error is not None:
            return
        if frame.kind is Kind.COLLECTIVE_FAILED:
            where = self._group.name(rank)
            self.fail(remote_errors.unpack(frame.payload, where), told_by=rank)
            return
        if frame.iteration != self.digest:
            self._differing.add(rank)
        if self._differing:
            self._tell_difference()
            return
        if frame.kind is Kind.COLLECTIVE_PLAN:
            self.agree()
            return
        place, phase = divmod(frame.edge, _PHASES)
        value = self._value(rank, phase, frame.payload)
        self._inbox.setdefault(place, {})[phase % _REFERENCE, rank] = value
        if self._agreed and place in self._exchanges:
            self._run(self._exchanges[place])

    def _value(self, rank: int, phase: int, payload: Array) -> Value:
        if phase < _REFERENCE:
            flat = payload.reshape(-1)
            return Value(LocalPart(flat), payload.dtype, payload.shape)
        address, code, *dims = payload.tolist()
        dtype = self._group.dtype(code)
        size = int(np.prod(dims))
        part = RemotePart(rank, self._group.readable[rank], address, size, dtype.itemsize)
        return Value(part, dtype, tuple(dims))

    def give(self, place: int, rank: int, phase: int, array: Array) -> bool:
        """Send an array to another rank, or where it is; return whether the rank reads it there."""
        group = self._group
        edge = place * _PHASES + phase
        nbytes = array.nbytes
        reads = (
            nbytes > READ_BYTES
            and bool(group.readable.get(rank))
            and not array.dtype.hasobject
            and (nbytes > READ_BYTES_NEAR or not group.is_near(rank))
        )
        if reads:
            where = [array.ctypes.data, group.dtype_code(array.dtype), *array.shape]
            edge, array = edge + _REFERENCE, np.array(where, np.int64)
        group.send(rank, self._frame(Kind.COLLECTIVE, edge, array))
        return reads

    # -- failing

    def _tell_difference(self) -> None:
        """Fail, as soon as it is known what the ranks that run something else run."""
        group = self._group
        plans = {group.rank: self.plan}
        for rank in self._differing:
            digest = group.digests.get((rank, self.number))
            plan = group.plans.get(digest) if digest is not None else None
            if plan is None:
                return
            plans[rank] = plan
        self.fail(InvalidArgumentError(difference(plans)))

    def fail(self, error: BaseException, told_by: int | None = None) -> None:
        """End the step here, and on the other ranks."""
        if self.over:
            return
        self.error = error
        self._group.finished(self)
        if told_by is None:
            payload = remote_errors.pack(error)
            for rank in self._group.others:
                self._group.send(rank, self._frame(Kind.COLLECTIVE_FAILED, 0, payload))
        for exchange in self._exchanges.values():
            exchange.close()
            exchange.done(error)
        self._exchanges.clear()
        self._inbox.clear()


@final
class Exchange:
    """A collective that is under way on this rank.

    Attributes:
        place: Which of its step's it is.
        what: What it is, for messages.
        done: Gets its outputs, or an error.
    """

    __slots__ = ("_algorithm", "_wanted", "done", "place", "what")

    def __init__(
        self, step: GroupStep, place: int, what: str, algorithm: Algorithm, done: Done
    ) -> None:
        self.place = place
        self.what = what
        self.done = done
        self._algorithm = algorithm
        self._wanted: tuple[int, Sequence[int]] | None = None

    def advance(self, inbox: dict[tuple[int, int], Value]) -> list[Any] | None:
        """Go on as far as what has come allows; return the outputs at the end."""
        try:
            if self._wanted is None:
                self._wanted = next(self._algorithm)
            while True:
                phase, ranks = self._wanted
                if any((phase, rank) not in inbox for rank in ranks):
                    return None
                given = {rank: inbox.pop((phase, rank)) for rank in ranks}
                self._wanted = self._algorithm.send(given)
        except StopIteration as stop:
            outputs: list[Any] = stop.value
            return outputs

    def missing(self, inbox: dict[tuple[int, int], Value]) -> list[int]:
        """Return the ranks that it waits for."""
        if self._wanted is None:
            return []
        phase, ranks = self._wanted
        return [rank for rank in ranks if (phase, rank) not in inbox]

    def close(self) -> None:
        """Let go of what it holds."""
        self._algorithm.close()


def _gone_error(rank: int, reason: BaseException, waiting: int, what: str) -> BaseException:
    if isinstance(reason, TaskLostError):
        return TaskLostError(f"{reason}; rank {waiting} waits for it in {what}")
    return ClusterError(
        f"rank {rank} takes part in no collective any more ({reason}), but rank {waiting} waits "
        f"for it in {what}; all ranks must run the same number of steps"
    )


def difference(plans: dict[int, tuple[str, ...]]) -> str:
    """Return what to say where ranks run steps of different collectives."""
    ranks = sorted(plans)
    first = plans[ranks[0]]
    longest = max(len(plan) for plan in plans.values())
    place = next(
        (
            i
            for i in range(longest)
            if any(plan[i : i + 1] != first[i : i + 1] for plan in plans.values())
        ),
        0,
    )
    lines = [f"the ranks run different collectives in one step; they differ in number {place + 1}"]
    for rank in ranks:
        plan = plans[rank]
        got = text_of(plan[place]) if place < len(plan) else "nothing"
        lines.append(f"  rank {rank}: {got} (of {len(plan)} in the step)")
    lines.append("  all ranks must build and run the same collectives, in the same order")
    return shorten(lines)
