"""``StopAtStepHook``: ends the loop at a step."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from headrace_train.steps import global_step_read


class StopAtStepHook(SessionRunHook):
    """Requests a stop when the global step has reached a number."""

    def __init__(self, num_steps: int | None = None, last_step: int | None = None) -> None:
        """Choose the step.

        Args:
            num_steps: How many steps from where the first session starts.
            last_step: The global step after which to stop; one of both is given.

        Raises:
            AttributeValueError: if none or both are given.
        """
        if num_steps is None and last_step is None:
            raise AttributeValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise AttributeValueError("Only one of num_steps or last_step can be specified.")
        self._num_steps = num_steps
        self._last_step = last_step

    def begin(self) -> None:
        """Find the global step."""
        self._step = global_step_read("StopAtStepHook")
        self._request = SessionRunArgs(self._step)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Count from here, unless the last step is known."""
        del coord
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = int(session.run(self._step)) + self._num_steps

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step."""
        del run_context
        return self._request

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Request a stop at the last step."""
        assert self._last_step is not None
        # The step may have read it before or after it was changed.
        if (
            run_values.results + 1 >= self._last_step
            and run_context.session.run(self._step) >= self._last_step
        ):
            run_context.request_stop()
