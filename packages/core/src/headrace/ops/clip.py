"""Limiting values, and the norms of tensors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from headrace.arguments import items
from headrace.errors import ArgumentTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity, size
from headrace.ops.constant import constant, ones_like
from headrace.ops.conversion import cast
from headrace.ops.elementwise import (
    add_n,
    greater,
    is_finite,
    maximum,
    minimum,
    reciprocal,
    select,
    square,
)
from headrace.ops.nn import l2_loss
from headrace.ops.reduce import reduce_sum
from headrace.ops.transcendental import rsqrt, sqrt


@dispatched("t", "clip_value_min", "clip_value_max")
@names_result
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Limit values from below and above.

    Args:
        t: [...], real; or ``IndexedSlices``, of which the rows are limited.
        clip_value_min: A scalar or a shape that broadcasts to that of ``t``, its dtype.
        clip_value_max: As ``clip_value_min``. Where it is smaller, the minimum is taken.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``t``; NaN where it is.

    Raises:
        ShapeError: if a limit has more dimensions than ``t``, or does not broadcast to it.
    """
    with name_scope(name, "clip_by_value"):
        values = _values(t)
        limited = maximum(minimum(values, clip_value_max), clip_value_min)
        _check_kept(values, limited, "the limits")
        return _like(t, limited)


@names_result
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scale a tensor down to an L2-norm where its own is larger.

    Args:
        t: [...], floating; or ``IndexedSlices``, of which the rows are scaled.
        clip_norm: The largest norm: a positive scalar, or a shape that broadcasts to that of
            ``t``.
        axes: The axes over which the norm is taken, all if None.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``t``.

    Raises:
        ShapeError: if ``clip_norm`` does not broadcast to ``t``.
    """
    with name_scope(name, "clip_by_norm", [t]):
        values = _values(t)
        squares = reduce_sum(square(values), axes, keepdims=True)
        positive = greater(squares, 0)
        # The root of 0 has no derivative.
        norm = select(positive, sqrt(select(positive, squares, ones_like(squares))), squares)
        scaled = values * clip_norm
        _check_kept(values, scaled, "clip_norm")
        return _like(t, identity(scaled / maximum(norm, clip_norm)))


@names_result
def clip_by_average_norm(t: Any, clip_norm: Any, name: str | None = None) -> Tensor:
    """Scale a tensor down to an average L2-norm where its own is larger.

    The average norm is the L2-norm divided by the number of elements.

    Args:
        t: [...], floating.
        clip_norm: [], the largest average norm, positive.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``t``.
    """
    with name_scope(name, "clip_by_average_norm"):
        values = convert_to_tensor(t)
        limit = convert_to_tensor(clip_norm, preferred_dtype=values.dtype)
        count = cast(size(values), values.dtype)
        inverse = rsqrt(reduce_sum(square(values)))
        return values * limit * minimum(inverse * count, reciprocal(limit))


def global_norm(t_list: Iterable[Any], name: str | None = None) -> Tensor:
    """The L2-norm of all elements of several tensors together.

    Args:
        t_list: Tensors, ``IndexedSlices`` or None; those that are None are left out.
        name: The name of the operations.

    Returns:
        [], the dtype of the tensors; 0 where there are none.

    Raises:
        ArgumentTypeError: if it is no list of tensors.
    """
    tensors = _listed(t_list)
    with name_scope(name, "global_norm"):
        halves = [l2_loss(_values(t)) for t in tensors if t is not None]
        if not halves:
            return constant(0.0, name="global_norm")
        return sqrt(add_n(halves) * 2.0, name="global_norm")


def clip_by_global_norm(
    t_list: Iterable[Any], clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list[Any], Tensor]:
    """Scale several tensors by one number, so that their norm together is at most ``clip_norm``.

    Pascanu, Mikolov, Bengio, On the Difficulty of Training Recurrent Neural Networks, 2013.

    Args:
        t_list: Tensors, ``IndexedSlices`` or None, which stays None.
        clip_norm: [], the largest norm, positive.
        use_norm: [], the norm, where it is known; else it is computed by ``global_norm``.
        name: The name of the operations.

    Returns:
        The scaled tensors, and the norm before. All are NaN where the norm is infinite or NaN.

    Raises:
        ArgumentTypeError: if ``t_list`` is no list of tensors.
    """
    tensors = _listed(t_list)
    norm = global_norm(tensors, name) if use_norm is None else convert_to_tensor(use_norm)
    with name_scope(name, "clip_by_global_norm", tensors) as scope:
        limit = convert_to_tensor(clip_norm, preferred_dtype=norm.dtype)
        scale = limit * minimum(reciprocal(norm), reciprocal(limit))
        scale = select(is_finite(norm), scale, np.array(np.nan).astype(norm.dtype.numpy))
        scaled: list[Any] = []
        for i, tensor in enumerate(tensors):
            if tensor is None:
                scaled.append(None)
                continue
            values = _scaled(_values(tensor), scale)
            scaled.append(_like(tensor, identity(values, name=f"{scope}_{i}")))
        return scaled, norm


def _scaled(values: Tensor, scale: Tensor) -> Tensor:
    factor: Tensor = cast(scale, values.dtype)
    return values * factor


def _values(t: Any) -> Tensor:
    return t.values if isinstance(t, IndexedSlices) else convert_to_tensor(t)


def _like(t: Any, values: Tensor) -> Any:
    if isinstance(t, IndexedSlices):
        return IndexedSlices(values, t.indices, t.dense_shape)
    return values


def _check_kept(values: Tensor, result: Tensor, label: str) -> None:
    if not values.shape.is_compatible_with(result.shape):
        raise ShapeError(
            f"{label} must broadcast to the shape {values.spec.shape}, not extend it to "
            f"{result.spec.shape}"
        )


def _listed(t_list: Any) -> list[Any]:
    listed = isinstance(t_list, list | tuple) or hasattr(t_list, "__next__")
    if not listed:
        raise ArgumentTypeError(f"t_list must be a list of tensors, got {shown(t_list)}")
    return items(t_list, "t_list")
