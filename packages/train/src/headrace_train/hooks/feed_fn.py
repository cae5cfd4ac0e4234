"""``FeedFnHook``: feeds each step what a function returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
)


class FeedFnHook(SessionRunHook):
    """Feeds each step what a function returns."""

    def __init__(self, feed_fn: Callable[[], Mapping[Any, Any]]) -> None:
        """Choose the function.

        Args:
            feed_fn: Takes nothing, and returns a dict of values by tensor.
        """
        self.feed_fn = feed_fn

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Call it."""
        del run_context
        return SessionRunArgs(fetches=None, feed_dict=self.feed_fn())
