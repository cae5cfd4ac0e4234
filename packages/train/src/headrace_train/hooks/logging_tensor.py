"""``LoggingTensorHook``: logs values now and then."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, GraphError, shown, told
from headrace.extend.arguments import items, real
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from headrace_train.hooks.timer import NeverTriggerTimer, SecondOrStepTimer, Timer

_log = logging.getLogger("headrace.train")


class LoggingTensorHook(SessionRunHook):
    """Logs the values of tensors every so many steps or seconds, or at the end."""

    def __init__(
        self,
        tensors: Mapping[str, Any] | Iterable[Any],
        every_n_iter: int | None = None,
        every_n_secs: float | None = None,
        at_end: bool = False,
        formatter: Callable[[dict[Any, Any]], str] | None = None,
    ) -> None:
        """Choose what to log, and how often.

        Args:
            tensors: Tensors, or their names: a dict by what to call them, or a list.
            every_n_iter: Steps of this session from one time to the next.
            every_n_secs: Seconds from one time to the next.
            at_end: Whether to log them at the end.
            formatter: From a dict of the values to the text.

        Raises:
            AttributeValueError: if both intervals are given, or none without ``at_end``, or
                ``every_n_iter`` is not positive.
        """
        only_at_end = at_end and every_n_iter is None and every_n_secs is None
        if not only_at_end and (every_n_iter is None) == (every_n_secs is None):
            raise AttributeValueError(
                "either at_end and/or exactly one of every_n_iter and every_n_secs must be "
                "provided."
            )
        if every_n_iter is not None and real(every_n_iter, "every_n_iter") <= 0:
            raise AttributeValueError(f"invalid every_n_iter={told(every_n_iter)}.")
        if isinstance(tensors, dict):
            self._tensors: dict[Any, Any] = tensors
            self._tag_order: list[Any] = sorted(tensors)
        else:
            self._tag_order = items(tensors, "tensors")
            self._tensors = {item: item for item in self._tag_order}
        self._formatter = formatter
        self._timer: Timer = (
            NeverTriggerTimer()
            if only_at_end
            else SecondOrStepTimer(every_secs=every_n_secs, every_steps=every_n_iter)
        )
        self._log_at_end = at_end

    def begin(self) -> None:
        """Find the tensors."""
        self._timer.reset()
        self._iter_count = 0
        self._current_tensors = {tag: _element(t) for tag, t in self._tensors.items()}
        self._request = SessionRunArgs(self._current_tensors)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Ask for them, where it is due."""
        del run_context
        self._should_trigger = self._timer.should_trigger_for_step(self._iter_count)
        return self._request if self._should_trigger else None

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Log them."""
        del run_context
        if self._should_trigger:
            self._log_tensors(run_values.results)
        self._iter_count += 1

    def end(self, session: Any) -> None:
        """Log them once more, if asked for."""
        if self._log_at_end:
            self._log_tensors(session.run(self._current_tensors))

    def _log_tensors(self, tensor_values: dict[Any, Any]) -> None:
        seconds, _ = self._timer.update_last_triggered_step(self._iter_count)
        with np.printoptions(suppress=True):
            if self._formatter is not None:
                text = self._formatter(tensor_values)
            else:
                text = ", ".join(f"{tag} = {tensor_values[tag]}" for tag in self._tag_order)
                text += "" if seconds is None else f" ({seconds:.3f} sec)"
        _log.info("%s", text)


def _element(obj: Any) -> Any:
    """Return the element of the default graph that something is, or that a name stands for."""
    graph = hr.get_default_graph()
    if not isinstance(obj, str):
        if getattr(obj, "graph", None) is not graph:
            raise AttributeValueError(
                f"Passed {shown(obj, 200)} should have graph attribute that is equal to current "
                "graph "
                f"{graph!r}."
            )
        return obj
    if ":" in obj:
        return graph.as_graph_element(obj)
    element = graph.as_graph_element(f"{obj}:0")
    try:
        graph.as_graph_element(f"{obj}:1")
    except (GraphError, LookupError, ValueError):
        return element
    raise AttributeValueError(
        f"Name {told(obj)} is ambiguous, as this `Operation` has multiple outputs (at least 2)."
    )
