"""``framework.smart_cond``, ``ops.control_flow_ops``: what decides, and what comes first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr


def smart_constant_value(pred: Any) -> bool | None:
    """Return what a condition is known to be, None if it is not.

    Args:
        pred: [], a bool, 0 or 1, or a tensor.
    """
    if isinstance(pred, hr.Tensor):
        found = hr.get_static_value(pred)
        return None if found is None else bool(found)
    return None if isinstance(pred, hr.Variable) else bool(pred)


def smart_cond(
    pred: Any,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    name: str | None = None,
) -> Any:
    """Return what one of two functions returns, chosen now where the condition is known."""
    known = smart_constant_value(pred)
    if known is None:
        return hr.cond(pred, true_fn, false_fn, name=name)
    return true_fn() if known else false_fn()


constant_value = smart_constant_value


def with_dependencies(dependencies: Any, output_tensor: Any, name: str | None = None) -> Any:
    """Return a tensor that is there after some operations have run."""
    values = [*dependencies, output_tensor]
    scope = hr.name_scope(name, "control_dependency", values)
    with scope, hr.control_dependencies(dependencies):
        return hr.identity(output_tensor)


def GraphOrParentsInXlaContext(graph: Any) -> bool:  # noqa: N802 - TensorFlow's name
    """Tell whether a graph is compiled by XLA: none is."""
    del graph
    return False
