"""Cumulative ops: sums and products of all elements up to each one along an axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.aliases import flag
from headrace.ops.arguments import as_int
from headrace.ops.array import concat, reshape, shape
from headrace.ops.constant import zeros_like
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating, Numeric
from headrace.ops.reduce import axis_last, check_possible
from headrace.shapes import normalize_axis


def _along(x: TensorSpec, axis: int) -> TensorSpec:
    check_possible(axis)
    if x.rank is not None:
        normalize_axis(axis, x.rank)
    return like(x)


def _summed_early(x: Any, axis: int, exclusive: bool, reverse: bool) -> Any:
    return None if exclusive or reverse else np.cumsum(x, axis)


@op("Cumsum", early=_summed_early, public="")
def _cumsum(x: Numeric, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Spec:
    """Sums of the elements up to each one along an axis.

    Args:
        x: [...], numeric, at least one dimension.
        axis: The axis.
        exclusive: Leave each element itself out of its sum.
        reverse: Start at the end.

    Returns:
        [...], the dtype of ``x``.
    """
    return _along(x, axis)


@op("Cumprod", public="")
def _cumprod(x: Numeric, axis: int = 0, exclusive: bool = False, reverse: bool = False) -> Spec:
    """Products of the elements up to each one along an axis.

    Args:
        x: [...], numeric, at least one dimension.
        axis: The axis.
        exclusive: Leave each element itself out of its product.
        reverse: Start at the end.

    Returns:
        [...], the dtype of ``x``.
    """
    return _along(x, axis)


@op("CumulativeLogsumexp", public="")
def _cumulative_logsumexp(x: Floating, axis: int = 0, reverse: bool = False) -> Spec:
    """``log(sum(exp(x)))`` of the elements up to each one along an axis, without overflow.

    Args:
        x: [...], floating, at least one dimension.
        axis: The axis.
        reverse: Start at the end.

    Returns:
        [...], the dtype of ``x``.
    """
    return _along(x, axis)


@op("LinearRecurrence", public="")
def linear_recurrence(a: Numeric, b: Numeric, axis: int = 0, reverse: bool = False) -> Spec:
    """``y[i] = a[i] * y[i - 1] + b[i]`` along an axis, where ``y[-1]`` is 0.

    Args:
        a: [...], numeric, at least one dimension. The first element along the axis is not used.
        b: The shape and dtype of ``a``.
        axis: The axis.
        reverse: Start at the end: ``y[i] = a[i] * y[i + 1] + b[i]``.

    Returns:
        [...], the dtype of ``a``.
    """
    if not a.shape.is_compatible_with(b.shape):
        raise ShapeError(f"a {a.shape} and b {b.shape} must have one shape")
    return _along(TensorSpec(a.dtype, a.shape.merge_with(b.shape)), axis)


def cumsum(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Sums of the elements up to each one along an axis.

    Args:
        x: [...], numeric, at least one dimension.
        axis: The axis, an integer or a scalar integer tensor.
        exclusive: Leave each element itself out of its sum: ``[0, a, a + b]`` of ``[a, b, c]``.
        reverse: Start at the end: ``[a + b + c, b + c, c]``.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        ShapeError: if there is no such axis.
    """
    return _scan(_cumsum, x, axis, exclusive, reverse, name)


def cumprod(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Products of the elements up to each one along an axis.

    Args:
        x: [...], numeric, at least one dimension.
        axis: The axis, an integer or a scalar integer tensor.
        exclusive: Leave each element itself out of its product: ``[1, a, a * b]`` of
            ``[a, b, c]``.
        reverse: Start at the end: ``[a * b * c, b * c, c]``.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        ShapeError: if there is no such axis.
    """
    return _scan(_cumprod, x, axis, exclusive, reverse, name)


def cumulative_logsumexp(
    x: Any,
    axis: Any = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """``log(sum(exp(x)))`` of the elements up to each one along an axis, without overflow.

    Args:
        x: [...], floating, at least one dimension.
        axis: The axis, an integer or a scalar integer tensor.
        exclusive: Leave each element itself out of its sum. The first is then the lowest finite
            number of the dtype, in place of -inf.
        reverse: Start at the end.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``x``.

    Raises:
        ShapeError: if there is no such axis.
    """
    backwards = flag("reverse", reverse)
    with name_scope(name, "CumulativeLogsumexp"):
        tensor = convert_to_tensor(x)
        moved, back = axis_last(tensor, as_int(axis, "axis"))
        if flag("exclusive", exclusive):
            none = zeros_like(moved[..., :1]) + tensor.dtype.min
            parts = [moved[..., 1:], none] if backwards else [none, moved[..., :-1]]
            moved = concat(parts, -1)
        result = back(_cumulative_logsumexp(moved, -1, backwards))
        return result if tensor.shape.rank is None else reshape(result, shape(tensor))


def _scan(
    primitive: Any, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None
) -> Tensor:
    where = as_int(axis, "axis")
    modes = flag("exclusive", exclusive), flag("reverse", reverse)
    result: Tensor
    if not isinstance(where, Tensor):
        result = primitive(x, where, *modes, name=name)
        return result
    with name_scope(name, primitive.schema.type):
        tensor = convert_to_tensor(x)
        moved, back = axis_last(tensor, where)
        result = back(primitive(moved, -1, *modes))
        return result if tensor.shape.rank is None else reshape(result, shape(tensor))
