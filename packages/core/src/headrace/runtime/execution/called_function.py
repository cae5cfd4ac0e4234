"""Functions that kernels call while they run, such as those of input pipelines."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.runtime.concurrency.cancellation import Cancellation
from headrace.runtime.execution.executor import execute
from headrace.runtime.execution.plan import Plan
from headrace.runtime.execution.step import Step
from headrace.runtime.transfers.rendezvous import LocalRendezvous


@final
class CalledFunction:
    """A function with a plan of its own, which any thread may run, several at once.

    It is planned when it first runs.
    """

    __slots__ = ("_lock", "_make", "_plan", "_whole")

    def __init__(self, make: Callable[[], Plan]) -> None:
        self._make = make
        self._plan: Plan | None = None
        self._whole: Callable[[Sequence[Any]], list[Any]] | None = None
        self._lock = threading.Lock()

    def __call__(
        self, values: Sequence[Any], cancellation: Cancellation | None = None
    ) -> list[Any]:
        """Return the results for values of the parameters, captured ones last.

        Args:
            values: The values.
            cancellation: What ends the call where something in it waits.

        Raises:
            HeadraceError: what an operation inside raises, with the user's line.
        """
        whole = self._whole
        if whole is not None:
            return whole(values)
        plan = self._plan
        if plan is None:
            plan = self._planned()
        if plan.whole is not None:
            self._whole = plan.whole
            return plan.whole(values)
        # A flag of its own: a call that fails is over, and whoever called it is not.
        own = Cancellation()
        step = Step(0, values, plan.fetches, LocalRendezvous(), own)
        if cancellation is None:
            execute(plan, step)
            return step.fetches
        key = cancellation.add(own.cancel)
        try:
            execute(plan, step)
        finally:
            cancellation.discard(key)
        return step.fetches

    def _planned(self) -> Plan:
        with self._lock:
            if self._plan is None:
                self._plan = self._make()
            return self._plan
