"""``EarlyStoppingHook``: ends a loop that does not get better any more."""

from __future__ import annotations

import logging
import math
from typing import Any, Literal

import headrace as hr
from headrace.errors import AttributeValueError, shown, told
from headrace.extend.arguments import real, whole
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from headrace_train.resumption.run_state import keep
from headrace_train.steps import global_step_read

_log = logging.getLogger("headrace.train")


class EarlyStoppingHook(SessionRunHook):
    """Measures every so many steps, and requests a stop when it has not improved for a while.

    What it knows is saved with checkpoints: a program that is started again counts on. A tensor
    that was fetched in the very step of a checkpoint is known there only if this hook comes before
    the one that saves, among ``chief_only_hooks``.

    Attributes:
        best: The best value so far, None before the first.
        best_step: The global step of it.
        waited: How many measurements in a row were no better.

    References:
        L. Prechelt, "Early Stopping - But When?", in Neural Networks: Tricks of the Trade, 1998.
    """

    def __init__(
        self,
        metric: Any,
        patience: int,
        every_n_steps: int = 100,
        mode: Literal["min", "max"] = "min",
        min_delta: float = 0.0,
    ) -> None:
        """Choose what to measure, and how long to wait.

        Args:
            metric: [], a tensor that is fetched with the step, or a function of the session that
                returns a number, such as the loss on validation data.
            patience: After how many measurements in a row without improvement to stop.
            every_n_steps: Steps from one measurement to the next.
            mode: Whether less is better, or more.
            min_delta: By how much better counts as an improvement.

        Raises:
            AttributeValueError: if a number is too small, or the mode another word.
        """
        for name, value, least in (("patience", patience, 1), ("every_n_steps", every_n_steps, 1)):
            if whole(value, name) < least:
                raise AttributeValueError(f"{name} must be at least {least}, got {value}")
        if mode not in ("min", "max"):
            raise AttributeValueError(f"mode must be 'min' or 'max', got {shown(mode)}")
        if not real(min_delta, "min_delta") >= 0:
            raise AttributeValueError(f"min_delta must be at least 0, got {told(min_delta)}")
        self._metric = metric
        self._patience = patience
        self._every_n_steps = every_n_steps
        self._sign = 1.0 if mode == "min" else -1.0
        self._min_delta = min_delta
        self.best: float | None = None
        self.best_step: int | None = None
        self.waited = 0
        self._measured_at: int | None = None

    def begin(self) -> None:
        """Find the global step."""
        self._step = global_step_read("EarlyStoppingHook")
        self._only_step = SessionRunArgs([self._step])
        self._with_metric = SessionRunArgs([self._step, self._metric])
        keep(hr.get_default_graph(), "early_stopping", self._state, self._go_on)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Count from here; measure what a run that ended had no time to."""
        step = int(session.run(self._step))
        self._next_step = step + 1
        if self._measured_at is None:
            self._measured_at = step
        if step >= self._measured_at + self._every_n_steps and callable(self._metric):
            self._note(self._metric(session), step)
        if self.waited >= self._patience:
            # It stopped here before.
            coord.request_stop()

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step, and for the metric where it is due."""
        del run_context
        assert self._measured_at is not None
        self._is_due = self._next_step >= self._measured_at + self._every_n_steps
        return self._with_metric if self._is_due and not callable(self._metric) else self._only_step

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Measure, where it is due."""
        # The step may have read it before or after it was changed.
        step = int(run_values.results[0]) + 1
        if self._is_due:
            session = run_context.session
            step = int(session.run(self._step))
            value = self._metric(session) if callable(self._metric) else run_values.results[1]
            if self._note(value, step):
                run_context.request_stop()
        self._next_step = step + 1

    def _note(self, measured: Any, step: int) -> bool:
        """Take a measurement; return whether it is time to stop."""
        value = float(measured)
        self._measured_at = step
        gain = math.inf if self.best is None else self._sign * (self.best - value)
        if math.isfinite(value) and gain > (0 if self.best is None else self._min_delta):
            self.best, self.best_step, self.waited = value, step, 0
            return False
        self.waited += 1
        if self.waited < self._patience:
            return False
        _log.info(
            "stopping at step %d: the last %d measurements were no better than %s at step %s",
            step,
            self.waited,
            self.best,
            self.best_step,
        )
        return True

    def _state(self) -> dict[str, Any]:
        return {
            "best": self.best,
            "best_step": self.best_step,
            "waited": self.waited,
            "measured_at": self._measured_at,
        }

    def _go_on(self, state: dict[str, Any]) -> None:
        self.best = state["best"]
        self.best_step = state["best_step"]
        self.waited = state["waited"]
        self._measured_at = state["measured_at"]
