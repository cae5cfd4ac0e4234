"""``GlobalStepWaiterHook``: lets a worker begin later than others."""

from __future__ import annotations

import logging
import time
from typing import Any

from headrace_train.hooks.session_run_hook import SessionRunContext, SessionRunHook
from headrace_train.steps import global_step_read

_log = logging.getLogger("headrace.train")
_GLANCE_S = 0.5
_STEPS_PER_LINE = 1000


class GlobalStepWaiterHook(SessionRunHook):
    """Waits before the first step until others have brought the global step to a number.

    So workers join one after the other, say at ``int(k * log(task + 1))``, with which asynchronous
    training begins more smoothly.
    """

    def __init__(self, wait_until_step: int) -> None:
        """Choose the step.

        Args:
            wait_until_step: The global step at which to begin.
        """
        self._wait_until_step = wait_until_step

    def begin(self) -> None:
        """Find the global step."""
        self._worker_is_started = False
        self._step = global_step_read("GlobalStepWaiterHook")

    def before_run(self, run_context: SessionRunContext) -> Any:
        """Wait, before the first step."""
        if self._worker_is_started:
            return
        if self._wait_until_step > 0:
            self._wait(run_context.session)
        self._worker_is_started = True

    def _wait(self, session: Any) -> None:
        _log.info("waiting for global step %d before training starts", self._wait_until_step)
        told = 0
        while (step := session.run(self._step)) < self._wait_until_step:
            if step - told > _STEPS_PER_LINE:
                _log.info("waiting for global step %d; it is %d", self._wait_until_step, step)
                told = step
            time.sleep(_GLANCE_S)
