"""Regularizers: functions of weights whose results are added to the loss."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, told
from headrace.extend import Tensor

Regularizer = Callable[[Any], Tensor | None]


def _nothing(weights: Any) -> None:
    """Regularize nothing."""


def _check(scale: Any, name: str) -> None:
    if isinstance(scale, numbers.Integral):
        raise AttributeValueError(f"{name} must be a float, got the integer {told(scale)}")
    if isinstance(scale, numbers.Real) and scale < 0:
        raise AttributeValueError(f"{name} must be at least 0, got {told(scale)}")


def l1_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """Return a regularizer, ``scale * sum(|weights|)``, which favours zeros.

    Args:
        scale: A float, or a scalar tensor; 0.0 regularizes nothing.
        scope: The name of the operations.

    Raises:
        AttributeValueError: if ``scale`` is an integer or negative.
    """
    _check(scale, "scale")
    if isinstance(scale, numbers.Real) and scale == 0:
        return _nothing

    def l1(weights: Any) -> Tensor:
        with hr.name_scope(scope, "l1_regularizer", [weights]) as full:
            factor = hr.convert_to_tensor(scale, weights.dtype, name="scale")
            return hr.multiply(factor, hr.reduce_sum(hr.abs(weights)), name=full or None)

    return l1


def l2_regularizer(scale: Any, scope: str | None = None) -> Regularizer:
    """Return a regularizer, ``scale * sum(weights ** 2) / 2``, which favours small values.

    Args:
        scale: A float, or a scalar tensor; 0.0 regularizes nothing.
        scope: The name of the operations.

    Raises:
        AttributeValueError: if ``scale`` is an integer or negative.
    """
    _check(scale, "scale")
    if isinstance(scale, numbers.Real) and scale == 0:
        return _nothing

    def l2(weights: Any) -> Tensor:
        with hr.name_scope(scope, "l2_regularizer", [weights]) as full:
            factor = hr.convert_to_tensor(scale, weights.dtype, name="scale")
            return hr.multiply(factor, hr.nn.l2_loss(weights), name=full or None)

    return l2


def l1_l2_regularizer(
    scale_l1: Any = 1.0, scale_l2: Any = 1.0, scope: str | None = None
) -> Regularizer:
    """Return the sum of an ``l1_regularizer`` and an ``l2_regularizer``.

    Args:
        scale_l1: The scale of the former, a float or a scalar tensor.
        scale_l2: The scale of the latter.
        scope: The name of the operations.

    Raises:
        AttributeValueError: if a scale is an integer or negative.
    """
    _check(scale_l1, "scale_l1")
    _check(scale_l2, "scale_l2")
    name = scope or "l1_l2_regularizer"
    if isinstance(scale_l1, numbers.Real) and scale_l1 == 0:
        return l2_regularizer(scale_l2, name)
    if isinstance(scale_l2, numbers.Real) and scale_l2 == 0:
        return l1_regularizer(scale_l1, name)
    first, second = l1_regularizer(scale_l1), l2_regularizer(scale_l2)

    def both(weights: Any) -> Tensor:
        with hr.name_scope(name, values=[weights]) as full:
            return hr.add_n([first(weights), second(weights)], name=full or None)

    return both
