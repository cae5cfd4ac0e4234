"""A plan that runs again and again, gone on with by whoever ends its wait.

A thread that fills a queue runs one step over and over, and waits in each run until somebody takes
elements out. If it went on by itself then, two threads would run Python at a time, each of which
keeps the other from it: where a run is short, waking its thread, handing over the interpreter's
lock, and moving what both use from one core to the other take longer than the run. So the thread
that has made room goes on with the run itself, as it goes on with whoever else waits in the queue:
it ends the run, begins the next, and leaves that where it waits again.

That is done where it holds nobody up: the runs are short, and all that the next one waits for, but
for the last thing, would be answered at once (``Pollable``). Otherwise the thread that was there
first is woken, and goes on. Which thread runs what cannot be told from what the runs do: one
follows the other, each as a run by itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from headrace.errors import CancelledError
from headrace.interrupts import uninterrupted
from headrace.runtime.concurrency.stalls import Wait
from headrace.runtime.concurrency.wakeup import Wakeup
from headrace.runtime.execution.chain import ChainRun
from headrace.runtime.execution.executor import active, come_first, execute, wait_for
from headrace.runtime.execution.plan import Plan
from headrace.runtime.execution.pollable import Pollable
from headrace.runtime.execution.step import Step

# A run of a reader that reads, checks and parses some hundred records takes a quarter of that.
SHORT_S: Final = 0.0005
# For how long a thread goes on with runs, where there is room for many, before it gets back to what
# it is there for: the first thread does the rest beside it.
BORROWED_S: Final = 0.002
# Of how many runs the last ones count, about; a run that took many times longer counts as long.
_RUNS = 8
_LONGEST_S = 4 * SHORT_S


@final
class Pace:
    """How long runs take, on the mean of the last ones.

    Attributes:
        seconds: How long.
    """

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        """Begin with what is no short run: the first ones compile."""
        self.seconds = _LONGEST_S

    def note(self, seconds: float) -> None:
        """Take note of how long a run took."""
        self.seconds += (min(seconds, _LONGEST_S) - self.seconds) / _RUNS

    @property
    def short(self) -> bool:
        """Whether they are short."""
        return self.seconds <= SHORT_S


def polled(plan: Plan) -> tuple[tuple[Pollable, tuple[Any, ...]], ...] | None:
    """Return what a plan waits for but for the last thing, and what it asks of each.

    Args:
        plan: A plan.

    Returns:
        None where it is not known ahead whether a run would wait for more than the last thing, or
        where runs take something from the step, or hand it something.
    """
    chain = plan.chain
    if chain is None or chain.late or plan.fetches or plan.transfers:
        return None
    found = []
    for link in chain.links[:-1]:
        first, *asked = [plan.slots[i] for i in link.node.inputs] or [None]
        if not isinstance(first, Pollable) or any(value is None for value in asked):
            return None
        found.append((first, tuple(asked)))
    return tuple(found)


@final
class RepeatedRuns:
    """Runs of one plan, one after the other.

    Attributes:
        runs: How many have begun.
        gone_on: How many of them by the thread that has ended the wait of the one before.
    """

    def __init__(
        self,
        plan: Plan,
        asked: Sequence[tuple[Pollable, tuple[Any, ...]]],
        step: Step,
        condition: Callable[[], bool],
    ) -> None:
        """Take a plan.

        Args:
            plan: The plan.
            asked: What ``polled`` returned for it.
            step: The step in which all of them run.
            condition: Whether there is to be another run; called before each, by any thread.
        """
        assert plan.chain is not None
        self._plan = plan
        self._chain = plan.chain
        self._asked = asked
        self._step = step
        self._condition = condition
        self._wakeup = Wakeup()
        self._pace = Pace()
        # Of the run at hand, which one thread at a time has: who began it, until it waits, and
        # then who ends the wait.
        self._run: ChainRun | None = None
        self._failure: BaseException | None = None
        self._over = False
        # How many runs had begun when somebody asked what is waited for.
        self._seen = -1
        self.runs = self.gone_on = 0

    def run(self) -> None:
        """Run until the condition does not hold.

        Raises:
            HeadraceError: what a node raised, with the node and the user's line.
        """
        while True:
            if self._run is not None:
                ended = self._run.advance()
            elif self._condition():
                # Without what it takes to get the interpreter's lock.
                began = time.thread_time()
                ended = self._begin().advance()
                self._pace.note(time.thread_time() - began)
            else:
                return
            if ended:
                self._run = None
                continue
            come_first()
            wait_for(self, self._step, self._wakeup)
            self._step.borrowed = False
            if self._failure is not None:
                raise self._failure
            if self._over:
                return

    def abort(self, reason: BaseException) -> None:
        """End the run where it waits: its step was cancelled."""
        run = self._run
        if run is not None:
            run.abort(reason)

    def waits(self) -> list[Wait]:
        """Return what it waits for, nothing if it went on since this was asked; for messages."""
        run, seen, self._seen = self._run, self._seen, self.runs
        return run.waits() if run is not None and seen == self.runs else []

    def _begin(self) -> ChainRun:
        reason = self._step.cancellation.reason
        if reason is not None:
            raise reason
        self.runs += 1
        self._run = ChainRun(self._plan, self._chain, self._step, self._wake, execute)
        return self._run

    def _wake(self) -> None:
        if not self._go_on():
            self._wakeup.wake()

    @uninterrupted
    def _go_on(self) -> bool:
        """Go on until something has to be waited for; False where the first thread has to."""
        run = self._run
        assert run is not None
        self._step.borrowed = True
        try:
            if not (run.at_last and self._pace.short):
                return False
            with active(self._plan):
                # What has come ends the run.
                ended, last = run.advance(), time.perf_counter() + BORROWED_S
                while ended:
                    self._run = None
                    began = time.perf_counter()
                    if began > last or not self._is_ready():
                        return False
                    if not self._condition():
                        self._over = True
                        return False
                    run = self._begin()
                    self.gone_on += 1
                    # Where it waits, somebody else may be at work on it from then on.
                    ended = run.advance()
                    self._pace.note(time.perf_counter() - began)
        except Exception as error:
            self._failure = error
            return False
        except BaseException as error:
            # It is this thread's. The first one has to know that the run did not end.
            self._failure = CancelledError(f"the step was interrupted: {error!r}")
            self._wakeup.wake()
            raise
        return True

    def _is_ready(self) -> bool:
        """Whether another run would be short, and wait for nobody before the last thing."""
        return self._pace.short and all(source.is_ready(*asked) for source, asked in self._asked)
