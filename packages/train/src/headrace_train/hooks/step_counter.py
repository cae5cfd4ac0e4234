"""``StepCounterHook``: how many steps a second a loop makes."""

from __future__ import annotations

import logging
import os
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError
from headrace_io import protos
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from headrace_train.hooks.timer import SecondOrStepTimer
from headrace_train.steps import get_global_step, global_step_read

_log = logging.getLogger("headrace.train")
_WARNINGS = 5


class StepCounterHook(SessionRunHook):
    """Logs steps per second, and writes them as the summary ``global_step/sec``."""

    def __init__(
        self,
        every_n_steps: int | None = 100,
        every_n_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: Any = None,
    ) -> None:
        """Choose how often.

        Args:
            every_n_steps: Steps from one measurement to the next.
            every_n_secs: Seconds from one to the next; one of both is given.
            output_dir: The folder for summaries; none are written if None.
            summary_writer: What writes them, in place of one for ``output_dir``.

        Raises:
            AttributeValueError: if none or both of the intervals are given.
        """
        if (every_n_steps is None) == (every_n_secs is None):
            raise AttributeValueError(
                "exactly one of every_n_steps and every_n_secs should be provided."
            )
        self._timer = SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_steps)
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._last_global_step: int | None = None
        self._warned = 0

    def begin(self) -> None:
        """Find the global step, and open the file."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = hr.summary.FileWriterCache.get(self._output_dir)
        self._step = global_step_read("StepCounterHook")
        self._request = SessionRunArgs(self._step)
        counter = get_global_step()
        assert counter is not None
        self._summary_tag = counter.op.name + "/sec"

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step."""
        del run_context
        return self._request

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Tell of the steps since the last time, where it is due."""
        stale = run_values.results
        if self._timer.should_trigger_for_step(stale + 1):
            step = run_context.session.run(self._step)
            if self._timer.should_trigger_for_step(step):
                seconds, steps = self._timer.update_last_triggered_step(step)
                if seconds is not None:
                    self._log_and_record(steps, seconds, step)
        if stale == self._last_global_step and self._warned < _WARNINGS:
            self._warned += 1
            _log.warning(
                "the global step has stayed at %s since the last step; pass "
                "hr.train.get_global_step() to minimize or apply_gradients of the optimizer",
                stale,
            )
        self._last_global_step = stale

    def _log_and_record(self, elapsed_steps: Any, elapsed_time: float, global_step: Any) -> None:
        """Log steps per second, and write the summary; subclasses may do something else."""
        rate = elapsed_steps / elapsed_time if elapsed_time > 0 else float("inf")
        if self._summary_writer is not None:
            summary = protos.Summary()
            summary.value.add(tag=self._summary_tag, simple_value=rate)
            self._summary_writer.add_summary(summary, global_step)
        _log.info("%s: %g", self._summary_tag, rate)
