"""Checks of values."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.control import group
from headrace.ops.declare import Spec
from headrace.ops.kinds import Floating
from headrace.ops.pointwise import like, pointwise


@pointwise("CheckNumerics", aliases=["tensor"])
def check_numerics(tensor: Floating, message: str) -> Spec:
    """``tensor``, after a check that raises when it runs and finds infinity or NaN.

    Args:
        tensor: [...], floating.
        message: What the error says first.

    Returns:
        [...], the dtype of ``tensor``.
    """
    return like(tensor)


def verify_tensor_all_finite(
    t: Any = None,
    msg: str | None = None,
    name: str | None = None,
    x: Any = None,
    message: str | None = None,
) -> Tensor:
    """Return a tensor after a check that raises when it runs and finds infinity or NaN.

    Args:
        t: [...], floating.
        msg: What the error says first.
        name: The name of the operations.
        x: Another name of ``t``.
        message: Another name of ``msg``.

    Returns:
        [...], the dtype of ``t``.

    Raises:
        AttributeValueError: if the tensor or the message is missing, or given twice.
    """
    if (t is None) == (x is None):
        raise AttributeValueError("verify_tensor_all_finite: give one of t and x")
    text = msg if message is None else message
    if text is None or (msg is not None and message is not None):
        raise AttributeValueError("verify_tensor_all_finite: give one of msg and message")
    with name_scope(name, "VerifyFinite"):
        return check_numerics(convert_to_tensor(x if t is None else t), text)


def add_check_numerics_ops() -> Operation:
    """Check every floating tensor that the default graph has now.

    Returns:
        An operation to run beside others; it raises where a tensor is infinite or NaN, and names
        the tensor.
    """
    graph = get_default_graph()
    tensors = [t for op in graph.operations for t in op.outputs if t.dtype.is_floating]
    return group(*(check_numerics(t, t.name) for t in tensors))
