"""Consistency: the order in which steps of several sessions begin, bounds on staleness, fences.

A step that changes variables was computed from what it read when it began. What others change until
it ends makes it *stale*; a ``Gate`` lets steps begin so that none is stale by more than a bound. A
*fence* holds back all steps that would change variables, until those under way have ended, for as
long as somebody wants to look at variables that belong together.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, NamedTuple, TypeVar, final

from headrace.errors import ConfigError, DeadlineExceededError, shown
from headrace.runtime.concurrency.cancellation import Cancellation

RELAXED = "relaxed"
SEQUENTIAL = "sequential"
_BOUNDED = re.compile(r"bounded:(0|[1-9][0-9]{0,8})")


class Bound(NamedTuple):
    """What steps wait for before they begin.

    Attributes:
        most: How many steps may change variables between the beginning and the end of one that
            changes variables, too.
        reads: Whether no step that reads variables runs beside one that changes some.
    """

    most: int
    reads: bool = False


def bound_of(consistency: str) -> Bound | None:
    """Return what ``Config(consistency=...)`` asks for, None for nothing.

    Raises:
        ConfigError: if it is none of the values that there are.
    """
    if isinstance(consistency, str):
        if consistency == RELAXED:
            return None
        if consistency == SEQUENTIAL:
            return Bound(0, reads=True)
        found = _BOUNDED.fullmatch(consistency)
        if found is not None:
            return Bound(int(found[1]))
    raise ConfigError(
        "consistency must be 'relaxed', 'sequential', or 'bounded:k' with a whole number k, such "
        f"as 'bounded:4', got {shown(consistency)}"
    )


StepT = TypeVar("StepT", bound=Hashable)


@final
class Gate(Generic[StepT]):
    """Decides which steps begin, in the order in which they come; its caller holds a lock.

    A step counts as changing variables from its beginning to its end. Of each that is under way the
    gate knows how many others were so at any time meanwhile, and lets none begin that would be one
    too many for somebody.

    Attributes:
        bound: What steps wait for.
    """

    def __init__(self, bound: Bound) -> None:
        """Know of no steps.

        Args:
            bound: What they wait for.
        """
        self.bound = bound
        # Steps that change variables, with how many others did so beside them; and those that read.
        self._changing: dict[StepT, int] = {}
        self._reading: set[StepT] = set()
        self._line: deque[tuple[StepT, bool]] = deque()

    def enter(self, step: StepT, *, changes: bool) -> bool:
        """Take in a step; return whether it may begin at once.

        Args:
            step: What stands for it.
            changes: Whether it changes variables; otherwise it reads some.
        """
        self._line.append((step, changes))
        return step in self._admit()

    def leave(self, step: StepT) -> list[StepT]:
        """Note that a step has ended, or does not wait any more; return those that now begin."""
        if self._changing.pop(step, None) is None and step not in self._reading:
            self._line = deque(entry for entry in self._line if entry[0] != step)
        self._reading.discard(step)
        return self._admit()

    @property
    def under_way(self) -> list[StepT]:
        """The steps that have begun, and have not ended."""
        return [*self._changing, *self._reading]

    @property
    def waiting(self) -> list[StepT]:
        """The steps that have not begun, in their order."""
        return [step for step, _ in self._line]

    @property
    def steps(self) -> list[StepT]:
        """All steps that it knows."""
        return self.under_way + self.waiting

    def _admit(self) -> list[StepT]:
        # Nobody overtakes: who waits longest would otherwise wait for ever.
        admitted: list[StepT] = []
        while self._line:
            step, changes = self._line[0]
            if not (self._may_change() if changes else self._may_read()):
                break
            self._line.popleft()
            admitted.append(step)
            if changes:
                for other in self._changing:
                    self._changing[other] += 1
                self._changing[step] = len(self._changing)
            else:
                self._reading.add(step)
        return admitted

    def _may_change(self) -> bool:
        if self.bound.reads and self._reading:
            return False
        most = self.bound.most
        return len(self._changing) <= most and all(n < most for n in self._changing.values())

    def _may_read(self) -> bool:
        return not (self.bound.reads and self._changing)


class Order:
    """The order of the steps of some sessions among each other, within one process.

    Attributes:
        running: Has an entry for each step under way that changes variables.
        held: How many fences hold such steps back.
    """

    def __init__(self) -> None:
        """Let every step begin when it comes."""
        self.running: list[None] = []
        self.held = 0
        self._gate: Gate[Hashable] | None = None
        self._entered: set[Hashable] = set()
        # What is called when no step changes variables, for each fence that waits for it.
        self._quiet: list[Callable[[], None]] = []
        # Threads whose steps no fence holds back, for they put one up.
        self._fencers: Counter[int] = Counter()
        self._asked: dict[Hashable, str] = {}
        self._changed = threading.Condition()

    # -- agreeing

    def join(self, session: Hashable, consistency: str) -> None:
        """Take in a session that changes variables.

        Args:
            session: What stands for it.
            consistency: As ``Config(consistency=...)``.

        Raises:
            ConfigError: if another session that does so asks for something else.
        """
        with self._changed:
            for theirs in self._asked.values():
                if theirs != consistency:
                    raise ConfigError(disagreement(consistency, theirs, "another session"))
            self._asked[session] = consistency

    def leave(self, session: Hashable) -> None:
        """Forget a session."""
        with self._changed:
            if self._asked.pop(session, None) is not None and not self._asked:
                self._gate = None

    # -- fences

    def hold_back(self, cancellation: Cancellation) -> None:
        """Wait until no fence is up, with the caller's entry taken out of ``running`` meanwhile.

        Args:
            cancellation: Ends the waiting.
        """
        if self._fencers[threading.get_ident()]:
            return
        # Another one may go up before the entry is back.
        while self.held:
            self.running.pop()
            try:
                self.left()
                self._wait(lambda: not self.held, cancellation)
            finally:
                self.running.append(None)

    def left(self) -> None:
        """Note that a step that changes variables has ended while a fence was up."""
        with self._changed:
            self._changed.notify_all()
            told = [] if self.running else self._quiet
            if told:
                self._quiet = []
        for call in told:
            call()

    def hold(self, quiet: Callable[[], None]) -> None:
        """Put up a fence.

        Args:
            quiet: Is called once, when no step changes variables any more. It must not wait.
        """
        with self._changed:
            self.held += 1
            now = not self.running
            if not now:
                self._quiet.append(quiet)
        if now:
            quiet()

    def release(self, quiet: Callable[[], None]) -> None:
        """Take down a fence that ``hold`` has put up with the same function."""
        with self._changed:
            self.held -= 1
            if quiet in self._quiet:
                self._quiet.remove(quiet)
            self._changed.notify_all()

    @contextlib.contextmanager
    def fence(self, timeout: float) -> Iterator[None]:
        """Hold back steps of other threads that change variables, while the block runs.

        Args:
            timeout: How many seconds to wait for those under way.

        Raises:
            DeadlineExceededError: if they take longer.
        """
        quiet = threading.Event()
        with self.passing():
            self.hold(quiet.set)
            try:
                if not quiet.wait(timeout):
                    raise still_running(timeout, f"{len(self.running)} of them")
                yield
            finally:
                self.release(quiet.set)

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Let the steps of this thread pass fences."""
        me = threading.get_ident()
        with self._changed:
            self._fencers[me] += 1
        try:
            yield
        finally:
            with self._changed:
                self._fencers[me] -= 1
                if not self._fencers[me]:
                    del self._fencers[me]

    # -- turns

    def enter(self, bound: Bound, changes: bool, cancellation: Cancellation) -> Hashable:
        """Wait until a step may begin, and return what ``end`` takes.

        Args:
            bound: What it waits for.
            changes: Whether it changes variables.
            cancellation: Ends the waiting.
        """
        step = object()
        with self._changed:
            if self._gate is None:
                self._gate = Gate(bound)
            if self._gate.enter(step, changes=changes):
                return step
        try:
            self._wait(lambda: step in self._entered, cancellation)
        except BaseException:
            self.end(step)
            raise
        finally:
            self._entered.discard(step)
        return step

    def end(self, step: Hashable) -> None:
        """Note that a step has ended; takes what ``enter`` returned."""
        with self._changed:
            if self._gate is not None:
                self._entered.update(self._gate.leave(step))
                self._changed.notify_all()

    def _wait(self, over: Callable[[], bool], cancellation: Cancellation) -> None:
        key = cancellation.add(self._wake)
        try:
            with self._changed:
                while not over() and cancellation.reason is None:
                    self._changed.wait()
        finally:
            cancellation.discard(key)
        if cancellation.reason is not None:
            raise cancellation.reason

    def _wake(self, reason: BaseException) -> None:
        with self._changed:
            self._changed.notify_all()


def disagreement(mine: str, theirs: str, whose: str) -> str:
    """Return why two sessions cannot change variables at one time."""
    return (
        "sessions that change the same variables do not agree on Config(consistency=...):\n"
        f"  {mine!r}: this session\n  {theirs!r}: {whose}\n"
        "  a bound holds where all of them keep it: open them with the same setting"
    )


def still_running(timeout: float, who: str) -> DeadlineExceededError:
    """Return the error of a fence that has waited for too long."""
    return DeadlineExceededError(
        f"steps that change variables were still under way after {timeout:g} s: {who}; a step that "
        "waits for what only a step that is held back would bring never ends: run that one without "
        "changing variables, or save without a fence"
    )


def seconds_left(deadline: float | None) -> float | None:
    """Return the seconds until a time of ``time.monotonic``, None for ever."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.001)
