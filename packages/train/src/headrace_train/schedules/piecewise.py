"""Piecewise constant learning rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import DType, Tensor
from headrace.errors import AttributeValueError, DTypeError


def piecewise_constant(
    x: Any, boundaries: Sequence[Any], values: Sequence[Any], name: str | None = None
) -> Tensor:
    """Return the value for the interval in which ``x`` lies.

    That is ``values[0]`` up to and with ``boundaries[0]``, ``values[1]`` from there up to and with
    ``boundaries[1]``, and so on; the last one above the last boundary.

    Args:
        x: Where it stands, such as the global step: a scalar variable, tensor or number.
        boundaries: Numbers or scalar tensors of the dtype of ``x``, which rise.
        values: Numbers or tensors of one dtype, one more than there are boundaries.
        name: Prefix of the operations.

    Returns:
        A tensor like one of ``values``.

    Raises:
        AttributeValueError: if there is not one value more than boundaries.
        DTypeError: if dtypes differ.
    """
    if len(values) != len(boundaries) + 1 or not boundaries:
        raise AttributeValueError(
            "piecewise_constant: there must be at least one boundary, and one value more than "
            f"boundaries, got {len(boundaries)} boundaries and {len(values)} values"
        )
    with hr.name_scope(name, "PiecewiseConstant"):
        at = hr.convert_to_tensor(x)
        borders = [_border(border, at.dtype) for border in boundaries]
        choices = [hr.convert_to_tensor(value) for value in values]
        kinds = dict.fromkeys(choice.dtype for choice in choices)
        if len(kinds) > 1:
            raise DTypeError(
                "piecewise_constant: values must be of one dtype, got "
                + " and ".join(str(kind) for kind in kinds)
            )
        passed = hr.reduce_sum(hr.cast(at > hr.stack(borders), hr.int32))
        chosen: Tensor = hr.gather(hr.stack(choices), passed)
        return chosen


# The name that TensorFlow gives it beside the other decays.
piecewise_constant_decay = piecewise_constant


def _border(value: Any, dtype: DType) -> Tensor:
    border = hr.convert_to_tensor(value)
    # Steps are often int64, and numbers int32.
    widened = (border.dtype, dtype) == (hr.int32, hr.int64)
    if border.dtype != dtype and not widened:
        raise DTypeError(
            f"piecewise_constant: boundaries must be {dtype} as x is, got {border.dtype}"
        )
    same: Tensor = hr.cast(border, dtype)
    return same
