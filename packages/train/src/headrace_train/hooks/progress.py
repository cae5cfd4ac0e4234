"""``ProgressHook``: shows how far a loop is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TextIO

from headrace.extend.arguments import mapping
from headrace_train.hooks.session_run_hook import (
    OwningHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunValues,
)
from headrace_train.progress import Progress
from headrace_train.steps import global_step_read


class ProgressHook(OwningHook):
    """Shows the global step, the rate, the time left, and values, as ``hr.train.Progress`` does.

    On a terminal that is a bar; elsewhere a plain line every ten seconds. Of the ranks of a job
    only the chief shows it. Values are fetched with the steps after which they are shown.
    """

    def __init__(
        self,
        last_step: int,
        tensors: Mapping[str, Any] | None = None,
        label: str = "training",
        *,
        stream: TextIO | None = None,
        interval_s: float | None = None,
    ) -> None:
        """Choose what to show.

        Args:
            last_step: The global step at which the loop ends.
            tensors: Scalars by the name under which to show them.
            label: What the line begins with.
            stream: Where to write; standard error if None.
            interval_s: Least seconds between two lines; chosen by the kind of ``stream`` if None.
        """
        self._last_step = last_step
        self._tensors = mapping(tensors, "tensors")
        self._label = label
        self._stream = stream
        self._interval_s = interval_s
        self._progress: Progress | None = None

    def begin(self) -> None:
        """Find the global step."""
        self._step = global_step_read("ProgressHook")
        self._plain = SessionRunArgs([self._step])
        self._with_values = SessionRunArgs([self._step, self._tensors])

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Start the clock at the step where the session starts."""
        del coord
        if self._progress is None:
            self._progress = Progress(
                self._last_step,
                self._label,
                stream=self._stream,
                interval_s=self._interval_s,
                begun=int(session.run(self._step)),
            )

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step, and for the values where they are going to be shown."""
        del run_context
        assert self._progress is not None
        return self._with_values if self._progress.is_due() else self._plain

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Show it, where it is time."""
        assert self._progress is not None
        step, *values = run_values.results
        if values:
            step = run_context.session.run(self._step)
            self._progress.update(int(step) - self._progress.done, **values[0])

    def end(self, session: Any) -> None:
        """Show the last state."""
        if self._progress is not None:
            self._progress.update(int(session.run(self._step)) - self._progress.done)

    def release(self) -> None:
        """End the line."""
        if self._progress is not None:
            self._progress.close()
            self._progress = None
