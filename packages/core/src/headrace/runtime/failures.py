"""Failures: errors of kernels, told with the node, its inputs and the line of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.errors import (
    CancelledError,
    ExecutionError,
    HeadraceError,
    ResourceExhaustedError,
    ShapeError,
    UninitializedError,
    listing,
    shorten,
)
from headrace.graph.operation import Operation
from headrace.runtime.containers import VariableCell

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
    if getattr(error, "located", False) or isinstance(error, CancelledError):
        return error
    text = str(error)
    if isinstance(error, UninitializedError):
        names = sorted(_uninitialized(uses))
        if names:
            text = (
                f"{len(names)} variable{'s are' if len(names) > 1 else ' is'} not initialized: "
                f"{listing(names, 40)}; run hr.global_variables_initializer() first, or restore a "
                "checkpoint"
            )
        elif any(kind == "AssignVariable" and cell is values[0] for kind, cell in uses):
            text += (
                ", and this step assigns to it in no order with this read; an initial value that "
                "depends on another variable takes its initialized_value()"
            )
    given = ", ".join(_brief(value) for value in values) or "none"
    lines = [text, f"  in {op.type} {op.name!r}; inputs: {given}", f"  at {op.site}"]
    if isinstance(error, HeadraceError):
        kind: type[HeadraceError] = type(error)
    elif op.schema.elementwise and not _broadcast(values):
        # The array module says so in its own words.
        kind = ShapeError
        lines[0] = "the shapes of the inputs do not broadcast"
    elif isinstance(error, MemoryError):
        kind = ResourceExhaustedError
        lines[0] = f"{op.type} needs more memory than there is: {text or 'nothing is left'}"
    else:
        kind = ExecutionError
        lines[0] = f"{op.type} failed: {type(error).__name__}: {text}"
    named = kind(shorten(lines))
    named.located = True  # type: ignore[attr-defined]
    return named


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
    return f"{dtype}{list(shape)}" if shape is not None else type(value).__name__
