"""``SummarySaverHook``: writes summaries every so often."""

from __future__ import annotations

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
from headrace_train.steps import global_step_read


class SummarySaverHook(SessionRunHook):
    """Computes summaries with a step now and then, and writes them to an event file."""

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] | None = None,
        summary_writer: Any = None,
        scaffold: Any = None,
        summary_op: Any = None,
    ) -> None:
        """Choose what to write, and how often.

        Args:
            save_steps: Steps from one time to the next.
            save_secs: Seconds from one time to the next; one of both is given.
            output_dir: The folder of the event file.
            summary_writer: What writes it, in place of one for ``output_dir``.
            scaffold: The scaffold whose ``summary_op`` to compute.
            summary_op: The summary, or a list of them, in place of the scaffold's.

        Raises:
            AttributeValueError: if not exactly one of scaffold and ``summary_op``, and one of
                ``save_steps`` and ``save_secs``, are given.
        """
        if (scaffold is None) == (summary_op is None):
            raise AttributeValueError("Exactly one of scaffold or summary_op must be provided.")
        self._summary_op = summary_op
        self._summary_writer = summary_writer
        self._output_dir = output_dir
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)

    def begin(self) -> None:
        """Find the global step, and open the file."""
        if self._summary_writer is None and self._output_dir:
            self._summary_writer = hr.summary.FileWriterCache.get(self._output_dir)
        self._next_step: Any = None
        self._step = global_step_read("SummarySaverHook")
        self._only_step = SessionRunArgs(self._step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step, and for the summaries where they are due."""
        del run_context
        self._request_summary = self._next_step is None or self._timer.should_trigger_for_step(
            self._next_step
        )
        if not self._request_summary:
            return self._only_step
        return SessionRunArgs([self._step, *self._get_summary_op()])

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write them."""
        if not self._summary_writer:
            return
        if not self._request_summary:
            self._next_step = run_values.results + 2
            return
        step = run_context.session.run(self._step)
        if self._next_step is None:
            log = protos.SessionLog(status="START")
            self._summary_writer.add_session_log(log, step)
        self._timer.update_last_triggered_step(step)
        for summary in run_values.results[1:]:
            self._summary_writer.add_summary(summary, step)
        self._next_step = step + 1

    def end(self, session: Any = None) -> None:
        """See that what was written is in the file."""
        del session
        if self._summary_writer:
            self._summary_writer.flush()

    def _get_summary_op(self) -> list[Any]:
        """Return the summaries, none where there are none."""
        found = self._summary_op
        if found is None:
            found = self._scaffold.summary_op
        if found is None:
            return []
        return found if isinstance(found, list) else [found]
