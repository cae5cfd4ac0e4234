"""Checks of parameters and values that distributions make where they are asked to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.dtypes import DType, int32
from headrace.errors import AttributeValueError, DTypeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape
from headrace.ops.assertions import (
    assert_equal,
    assert_less,
    assert_less_equal,
    assert_near,
    assert_non_negative,
)
from headrace.ops.constant import fill, ones
from headrace.ops.conversion import cast
from headrace.ops.elementwise import floor, select
from headrace.ops.identity import identity
from headrace.ops.nn import softmax
from headrace.ops.reduce import reduce_sum
from headrace.ops.shape_assertions import assert_rank_at_least, assert_same_float_dtype
from headrace.ops.transcendental import log, log1p, sigmoid


def parameters(validate_args: bool, checks: Callable[[], Sequence[Operation]], **given: Any) -> Any:
    """Return parameters as tensors of one floating dtype, behind checks where these are wanted.

    Args:
        validate_args: Whether they are.
        checks: Makes the checks.
        **given: The parameters, by the names that the tensors get.

    Raises:
        DTypeError: if their dtypes differ, or are no floating ones.
    """
    with control_dependencies(list(checks()) if validate_args else []):
        made = [identity(convert_to_tensor(value), name=name) for name, value in given.items()]
    assert_same_float_dtype(made)
    return made


def checked(value: Tensor, checks: Sequence[Operation]) -> Tensor:
    """Return a value that is there only where checks hold."""
    with control_dependencies(checks):
        return identity(value)


def defined(
    value: Any, where: Any, *, nan: bool, checks: Callable[[], Sequence[Operation]]
) -> Tensor:
    """Return a statistic where it is defined.

    Args:
        value: The statistic.
        where: Where it is defined, a bool tensor that broadcasts to it.
        nan: Whether it is NaN elsewhere.
        checks: Makes what fails elsewhere otherwise.
    """
    if not nan:
        return checked(value, checks())
    nothing = np.array(np.nan, value.dtype.as_numpy_dtype)
    return select(where, value, fill(shape(value), nothing))


def more_than_one(value: Tensor, message: str) -> Operation:
    """Return what fails where a parameter is at most 1."""
    return assert_less(ones([], dtype=value.dtype), value, message=message)


def whole(value: Any, dtype: DType | None = None) -> Tensor:
    """Return values that are whole numbers from 0 on, and fit a dtype, behind the checks.

    Args:
        value: The values.
        dtype: An integer dtype; None for any.
    """
    x = convert_to_tensor(value)
    checks = [assert_non_negative(x, message="Elements must be non-negative.")]
    if x.dtype.is_floating:
        what = "whole" if dtype is None else f"{dtype.name}-equivalent"
        checks.append(assert_equal(x, floor(x), message=f"Elements must be {what}."))
    if dtype is not None:
        most = int(dtype.max)
        largest = float(x.dtype.max) if x.dtype.is_floating else int(x.dtype.max)
        if largest > most and not x.dtype.is_floating:
            limit = cast(most, x.dtype)
            checks.append(assert_less_equal(x, limit, message=f"Elements cannot exceed {most}."))
    return checked(x, checks)


def categories(value: Tensor) -> Tensor:
    """Return parameters of categories, of which there must be two at least, in the last axis.

    Raises:
        AttributeValueError: if there are fewer, or the tensor is a scalar.
    """
    few = "A categorical-distribution parameter must have at least 2 events."
    flat = "A categorical-distribution parameter must have at least 1 dimension."
    dims = value.shape
    if dims.ndims == 0:
        raise AttributeValueError(flat)
    last = None if dims.ndims is None else dims.as_list()[-1]
    if last is None:
        number = shape(value)[-1]
        least = convert_to_tensor(2, dtype=int32)
        checks = [
            assert_rank_at_least(value, 1, message=flat),
            assert_less_equal(least, number, message=few),
        ]
        return checked(value, checks)
    if last < 2:
        raise AttributeValueError(few)
    return value


def logits_and_probs(
    logits: Any, probs: Any, *, several: bool, validate_args: bool, name: str
) -> tuple[Tensor, Tensor]:
    """Return log-odds and probabilities, of which one is given.

    Args:
        logits: Unnormalized logarithms of probabilities, or log-odds; or None.
        probs: Probabilities; or None.
        several: Whether the last axis has a category each; otherwise each element is the
            probability of 1, and its log-odds.
        validate_args: Whether they are checked in each step.
        name: The name of the scope.

    Raises:
        AttributeValueError: if not exactly one is given, or there are too few categories.
        DTypeError: if it is no floating tensor.
    """
    with name_scope(name):
        if (probs is None) == (logits is None):
            raise AttributeValueError("Must pass probs or logits, but not both.")
        if probs is None:
            odds = _floating(logits, "logits")
            if several:
                odds = categories(odds) if validate_args else odds
                return odds, softmax(odds, name="probs")
            return odds, sigmoid(odds, name="probs")
        likely = _floating(probs, "probs")
        if validate_args:
            likely = _probabilities(likely, several=several)
        with name_scope("logits"):
            if several:
                return log(likely), likely
            return log(likely) - log1p(-likely), likely


def _floating(value: Any, what: str) -> Tensor:
    found = convert_to_tensor(value, name=what)
    if not found.dtype.is_floating:
        raise DTypeError(f"{what} must have a floating dtype, got {found.dtype.name}")
    return found


def _probabilities(likely: Tensor, *, several: bool) -> Tensor:
    one = ones([], dtype=likely.dtype)
    with name_scope("validate_probs"):
        checks = [assert_non_negative(likely)]
        if several:
            likely = categories(likely)
            total = reduce_sum(likely, -1)
            checks.append(assert_near(total, one, message="probs does not sum to 1."))
        else:
            more = "probs has components greater than 1."
            checks.append(assert_less_equal(likely, one, message=more))
        return checked(likely, checks)
