"""Failures: errors of kernels, told with the node, its inputs and the line of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import errors
from headrace.errors import (
    CancelledError,
    HeadraceError,
    InvalidInputError,
    OpError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
    UnimplementedError,
    UninitializedError,
    UnknownError,
    listing,
)
from headrace.graph.operation import Operation
from headrace.runtime.state.containers import VariableCell

# What kernels and functions raise in Python's words, and the family that TensorFlow makes of it.
_FAMILIES: tuple[tuple[type[Exception], type[OpError]], ...] = (
    (NotImplementedError, UnimplementedError),
    (StopIteration, OutOfRangeError),
    (MemoryError, ResourceExhaustedError),
    (ValueError, InvalidInputError),
    (TypeError, InvalidInputError),
)

# The operations of a plan that take a resource, each with its type and the resource.
StateUses = Sequence[tuple[str, Any]]


def located(
    error: BaseException, op: Operation, values: Sequence[Any], uses: StateUses = ()
) -> BaseException:
    """Return an error of the same kind that names the node, its inputs and the user's line.

    Args:
        error: What the node's kernel raised.
        op: The node.
        values: Its inputs.
        uses: What else the plan does with resources.
    """
    if isinstance(error, CancelledError) or (isinstance(error, HeadraceError) and error.located):
        if isinstance(error, OpError) and error.node_def is None:
            error.concerns(op)
        return error
    text = str(error)
    if isinstance(error, UninitializedError):
        names = sorted(_uninitialized(uses))
        if names:
            text = (
                f"{len(names)} variable{'s are' if len(names) > 1 else ' is'} not initialized: "
                f"{listing(names, 40)}; run hr.global_variables_initializer() first, or restore a "
                "checkpoint; local ones, such as those of metrics, need "
                "hr.local_variables_initializer()"
            )
        elif any(kind == "AssignVariable" and cell is values[0] for kind, cell in uses):
            text += (
                ", and this step assigns to it in no order with this read; run "
                "hr.global_variables_initializer(), called after the last variable was made, "
                "first; an initial value that depends on another variable takes its "
                "initialized_value()"
            )
    given = ", ".join(_brief(value) for value in values) or "none"
    lines = [text, f"  in {op.type} {op.name!r}; inputs: {given}", f"  at {op.site}"]
    if isinstance(error, HeadraceError):
        kind: type[HeadraceError] = type(error)
    elif op.schema.elementwise and not _broadcast(values):
        # The array module says so in its own words.
        kind = ShapeError
        lines[0] = (
            "the shapes of the inputs do not broadcast; expected equal sizes or 1, counted from "
            "the last axis"
        )
    elif isinstance(error, MemoryError):
        kind = ResourceExhaustedError
        lines[0] = f"{op.type} needs more memory than there is: {text or 'nothing is left'}"
    else:
        refused = isinstance(error, IndexError | ArithmeticError)
        kind = InvalidInputError if refused else family(error)
        lines[0] = f"{op.type} failed: {type(error).__name__}: {text}"
    # What was noted on the way, such as whose kernel it is.
    lines[1:1] = getattr(error, "__notes__", ())
    return errors.located(kind, lines, op)


def family(error: BaseException) -> type[OpError]:
    """Return the class of Headrace's errors for what a Python function raised."""
    for cause, kind in _FAMILIES:
        if isinstance(error, cause):
            return kind
    return UnknownError


def _uninitialized(uses: StateUses) -> set[str]:
    """Return the variables that a plan needs, that have no value, and that it does not assign."""
    needed: dict[str, VariableCell] = {}
    assigned: set[str] = set()
    for kind, cell in uses:
        if not isinstance(cell, VariableCell) or kind == "VariableInitialized":
            continue
        if kind == "AssignVariable":
            assigned.add(cell.name)
        else:
            needed[cell.name] = cell
    return {name for name, c in needed.items() if not c.initialized and name not in assigned}


def _broadcast(values: Sequence[Any]) -> bool:
    """Whether the shapes of arrays broadcast to one; True where one has none."""
    shapes = [getattr(value, "shape", None) for value in values]
    sizes: dict[int, int] = {}
    for shape in shapes:
        for place, size in enumerate(reversed(shape or ())):
            if size != 1 and sizes.setdefault(place, size) != size:
                return False
    return True


def _brief(value: Any) -> str:
    if isinstance(value, VariableCell):
        return f"variable {value.name!r} {value.dtype}{value.shape}"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    return f"{dtype}{list(shape)}" if isinstance(shape, tuple) else type(value).__name__
