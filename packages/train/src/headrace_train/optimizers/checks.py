"""Validation in optimizers: losses, variables, gradients and counters that do not fit."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, TypeAlias

import headrace as hr
from headrace import DType, IndexedSlices, Tensor, Variable
from headrace.errors import (
    DTypeError,
    GraphError,
    ShapeError,
    UnimplementedError,
    listing,
    shown,
)
from headrace.extend.arguments import items, nesting

Gradient: TypeAlias = Tensor | IndexedSlices


def check_loss(owner: str, loss: Tensor, valid: Collection[DType], what: str = "a loss") -> None:
    """Refuse a loss of a dtype that has no gradient.

    Raises:
        DTypeError: if its dtype is not among the valid ones.
    """
    if loss.dtype not in valid:
        raise DTypeError(
            f"{owner}: {what} must be floating, got {shown(loss)}; convert it with hr.cast"
        )


def flat_sources(owner: str, var_list: Any) -> list[Variable | Tensor]:
    """Return what to differentiate by: variables and tensors of nested lists, in order.

    Raises:
        GraphError: if there is nothing, or something else, or something twice.
    """
    found: list[Variable | Tensor] = []
    with nesting("var_list"):
        listed = items(_flat(var_list), "var_list")
    for item in listed:
        if not isinstance(item, Variable | Tensor):
            raise GraphError(f"{owner} changes variables, got {shown(item)} in var_list")
        found.append(item)
    if not found:
        raise GraphError(f"{owner}: var_list is empty, there is nothing to change")
    _check_once(owner, found)
    return found


def _flat(items: Any) -> Iterator[Any]:
    if isinstance(items, dict):
        items = [items[key] for key in sorted(items)]
    if isinstance(items, Variable | Tensor | str) or not isinstance(items, Iterable):
        yield items
        return
    for item in items:
        yield from _flat(item)


def check_variables(owner: str, variables: Iterable[Any]) -> None:
    """Refuse what cannot be changed together.

    Raises:
        UnimplementedError: if something is a tensor.
        GraphError: if something is no variable, is listed twice, or is of another graph.
    """
    listed = list(variables)
    for variable in listed:
        if isinstance(variable, Tensor):
            raise UnimplementedError(
                f"{owner} changes variables, got {shown(variable)}; make it with hr.Variable or "
                "hr.get_variable"
            )
        if not isinstance(variable, Variable):
            raise GraphError(f"{owner} changes variables, got {shown(variable)}")
    _check_once(owner, listed)


def _check_once(owner: str, items: Iterable[Variable | Tensor]) -> None:
    seen: list[Variable | Tensor] = []
    known: set[Variable | Tensor] = set()
    for item in items:
        if item in known:
            raise GraphError(f"{owner}: {_name(item)!r} is listed twice")
        if seen and item.graph is not seen[0].graph:
            raise GraphError(
                f"{owner}: {_name(seen[0])!r} and {_name(item)!r} belong to different graphs"
            )
        seen.append(item)
        known.add(item)


def _name(item: Variable | Tensor) -> str:
    return item.op_name if isinstance(item, Variable) else item.name


def check_dtypes(owner: str, variables: Iterable[Variable], valid: Collection[DType]) -> None:
    """Refuse variables that have a gradient, but a dtype that the optimizer does not compute with.

    Raises:
        DTypeError: if there are some.
    """
    wrong = [f"{v.op_name} ({v.dtype})" for v in variables if v.dtype not in valid]
    if wrong:
        raise DTypeError(
            f"{owner} changes floating variables only, got {listing(wrong)}; make them "
            "with trainable=False, or leave them out of var_list"
        )


def checked_gradient(owner: str, gradient: Any, variable: Variable) -> Gradient:
    """Return a gradient as a tensor or as rows that know the shape of the whole.

    Raises:
        DTypeError: if it does not have its variable's dtype.
        ShapeError: if it does not fit its variable.
    """
    checked: Gradient
    if isinstance(gradient, IndexedSlices):
        checked = gradient
        if gradient.dense_shape is None:
            whole = hr.shape(variable.value())
            checked = IndexedSlices(gradient.values, gradient.indices, whole)
        shape, expected = gradient.values.spec.shape[1:], variable.shape.plain[1:]
        what = "rows of the gradient"
    else:
        checked = hr.convert_to_tensor(gradient, preferred_dtype=variable.dtype)
        shape, expected = checked.spec.shape, variable.shape.plain
        what = "gradient"
    if checked.dtype != variable.dtype:
        raise DTypeError(
            f"{owner}: the gradient of {variable.op_name!r} is {checked.dtype}, expected "
            f"{variable.dtype}; convert it with hr.cast"
        )
    if not expected.is_compatible_with(shape):
        raise ShapeError(
            f"{owner}: the {what} of {variable.op_name!r} has shape {shape}, expected {expected}"
        )
    return checked


def checked_step(global_step: Any, *, whole: bool = True) -> Variable:
    """Return the variable that counts steps.

    Args:
        global_step: The variable.
        whole: Whether it must hold integers, as where steps are compared with each other; a
            floating one only counts.

    Raises:
        DTypeError: if it is no such variable.
    """
    if isinstance(global_step, Variable):
        dtype = global_step.dtype
        if dtype.is_integer or (dtype.is_floating and not whole):
            return global_step
    wanted = "an integer" if whole else "an integer or floating"
    raise DTypeError(
        f"global_step must be {wanted} variable, got {shown(global_step)}; make one with "
        "hr.train.get_or_create_global_step()"
    )


def checked_counter(global_step: Any) -> Variable | Tensor:
    """Return what says how many steps there were.

    Raises:
        DTypeError: if it is no integer scalar.
    """
    fits = isinstance(global_step, Variable | Tensor) and global_step.dtype.is_integer
    if not fits or not global_step.shape.is_compatible_with(()):
        raise DTypeError(
            f"global_step must be an integer scalar variable or tensor, got {shown(global_step)}; "
            "make "
            "one with hr.train.get_or_create_global_step()"
        )
    counter: Variable | Tensor = global_step
    return counter
