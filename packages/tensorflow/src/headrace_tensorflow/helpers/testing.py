"""``framework.test_util``: decorators that say in which modes a test runs; there is one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import headrace as hr

TensorFlowTestCase = hr.test.TestCase


def _unchanged(decorated: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return what is decorated, at once, or after arguments."""
    del args, kwargs
    if callable(decorated):
        return decorated
    return lambda late: late


assert_no_new_pyobjects_executing_eagerly = _unchanged
run_all_in_graph_and_eager_modes = _unchanged
run_deprecated_v1 = _unchanged
run_in_graph_and_eager_modes = _unchanged


def run_v1_only(reason: str) -> Callable[[Any], Any]:
    """Return what is decorated: this is version 1."""
    del reason
    return lambda decorated: decorated


def use_gpu() -> Any:
    """Let the session choose devices."""
    return nullcontext()
