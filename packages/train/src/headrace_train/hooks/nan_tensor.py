"""``NanTensorHook``: ends a loop whose loss is no number any more."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)

_log = logging.getLogger("headrace.train")


class NanLossDuringTrainingError(HeadraceError, RuntimeError):
    """The loss became NaN."""

    def __str__(self) -> str:
        return "NaN loss during training."


class NanTensorHook(SessionRunHook):
    """Looks at the loss after each step, and raises, or ends the loop, where it is NaN."""

    def __init__(self, loss_tensor: Any, fail_on_nan_loss: bool = True) -> None:
        """Choose the loss.

        Args:
            loss_tensor: [], the loss.
            fail_on_nan_loss: Whether to raise ``NanLossDuringTrainingError``; else the loop ends
                as if it were done.
        """
        self._loss_tensor = loss_tensor
        self._fail_on_nan_loss = fail_on_nan_loss
        self._request = SessionRunArgs(loss_tensor)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the loss."""
        del run_context
        return self._request

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Raise, or request a stop, where it is NaN."""
        if not np.isnan(run_values.results):
            return
        message = "the model diverged: the loss is NaN"
        if self._fail_on_nan_loss:
            _log.error(message)
            raise NanLossDuringTrainingError
        _log.warning(message)
        run_context.request_stop()
