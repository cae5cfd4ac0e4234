"""``FinalOpsHook``: fetches something at the end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from headrace.errors import OutOfRangeError
from headrace_train.hooks.session_run_hook import SessionRunHook

_log = logging.getLogger("headrace.train")


class FinalOpsHook(SessionRunHook):
    """Fetches tensors when the loop ends."""

    def __init__(
        self, final_ops: Any, final_ops_feed_dict: Mapping[Any, Any] | None = None
    ) -> None:
        """Choose what to fetch.

        Args:
            final_ops: As for ``Session.run``; None for nothing.
            final_ops_feed_dict: What to feed for it.
        """
        self._final_ops = final_ops
        self._final_ops_feed_dict = final_ops_feed_dict
        self._final_ops_values: Any = None

    @property
    def final_ops_values(self) -> Any:
        """The values, None before the end."""
        return self._final_ops_values

    def end(self, session: Any) -> None:
        """Fetch it.

        Raises:
            OutOfRangeError: if it takes another element of an input that has ended.
        """
        if self._final_ops is None:
            return
        try:
            self._final_ops_values = session.run(
                self._final_ops, feed_dict=self._final_ops_feed_dict
            )
        except (OutOfRangeError, StopIteration):
            _log.warning(
                "what FinalOpsHook fetches takes an element of an input that has ended; fetch what "
                "depends on variables only, such as the value of a metric and not its update"
            )
            raise
