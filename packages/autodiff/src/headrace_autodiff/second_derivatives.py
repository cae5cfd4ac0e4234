"""Second derivatives as whole matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import (
    Tensor,
    Variable,
    concat,
    convert_to_tensor,
    map_fn,
    name_scope,
    one_hot,
    reshape,
    shape,
    size,
    zeros_like,
)
from headrace import range as range_of
from headrace_autodiff.backward import differentiate
from headrace_autodiff.reverse_mode import gradients


def hessians(
    ys: Any,
    xs: Any,
    name: str = "hessians",
    colocate_gradients_with_ops: bool = False,
    gate_gradients: bool = False,
    aggregation_method: Any = None,
) -> list[Tensor]:
    """Return the second derivatives of the sum of ``ys`` with respect to each of ``xs``.

    Args:
        ys: A tensor, or a list of tensors.
        xs: A tensor or variable, or a list of these.
        name: The name scope of the nodes.
        colocate_gradients_with_ops: See ``gradients``.
        gate_gradients: See ``gradients``.
        aggregation_method: Ignored, as in ``gradients``.

    Returns:
        For each x of shape s a tensor of shape s + s.

    Raises:
        NoGradientError: if an operation in between has no gradient rule.
        GraphError: if no y depends on an x.
    """
    sources = list(xs) if isinstance(xs, list | tuple) else [xs]
    found = []
    with name_scope(name, "hessians"):
        for x in sources:
            whole = convert_to_tensor(x)
            (first,) = gradients(
                ys,
                [x],
                colocate_gradients_with_ops=colocate_gradients_with_ops,
                gate_gradients=gate_gradients,
                unconnected_gradients="zero",
            )
            flat = reshape(convert_to_tensor(first), [-1])
            rows = map_fn(_row_of(flat, x, whole), range_of(size(whole)), dtype=whole.dtype)
            made = reshape(rows, concat([shape(whole), shape(whole)], 0))
            made.set_shape(whole.spec.shape.concatenate(whole.spec.shape))
            found.append(made)
    return found


def _row_of(flat: Tensor, x: Any, whole: Tensor) -> Callable[[Any], Tensor]:
    """Return what builds the derivatives of one element of a gradient, inside a loop."""
    source = x.handle if isinstance(x, Variable) else x

    def row(i: Any) -> Tensor:
        chosen = one_hot(i, size(whole), dtype=flat.dtype)
        (second,) = differentiate([flat], [source], [chosen])
        return zeros_like(whole) if second is None else convert_to_tensor(second)

    return row
