"""Kernels of variables: what reads and replaces the value in a cell."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.extend import DType, KernelContext, KernelTable, Shape
from headrace.runtime.containers import VariableCell
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    check_indices,
    check_shape,
    narrowed,
    widened,
)

KERNELS = KernelTable()


@KERNELS.stateful("VarHandle")
def var_handle(
    ctx: KernelContext, *, dtype: DType, shape: Shape, container: str, shared_name: str
) -> VariableCell:
    """Find the cell of a variable, made when first asked for."""
    return ctx.container(container).get_or_create(
        shared_name, VariableCell, lambda: VariableCell(shared_name, dtype, shape)
    )


@KERNELS.stateful("ReadVariable")
def read_variable(ctx: KernelContext, cell: VariableCell) -> Array:
    """Return the value."""
    return cell.read()


@KERNELS.stateful("VariableInitialized")
def variable_initialized(ctx: KernelContext, cell: VariableCell) -> Array:
    """Return whether there is a value."""
    return ctx.xp.asarray(cell.value is not None)


@KERNELS.stateful("AssignVariable")
def assign_variable(
    ctx: KernelContext, cell: VariableCell, value: Array, *, validate_shape: bool
) -> Array:
    """Replace the value by a copy of ``value``."""
    if validate_shape and not cell.shape.is_compatible_with(value.shape):
        raise ValueError(
            f"variable {cell.name!r} has shape {cell.shape}, expected a value of it, got shape "
            f"{list(value.shape)}"
        )
    return cell.assign(_frozen(ctx.xp.array(value)))


@KERNELS.stateful("AssignAddVariable")
def assign_add_variable(ctx: KernelContext, cell: VariableCell, value: Array) -> Array:
    """Add to the value."""
    return cell.update(lambda old: _frozen(_alike(cell, old, value) + value))


@KERNELS.stateful("AssignSubVariable")
def assign_sub_variable(ctx: KernelContext, cell: VariableCell, value: Array) -> Array:
    """Subtract from the value."""
    return cell.update(lambda old: _frozen(_alike(cell, old, value) - value))


def _alike(cell: VariableCell, old: Array, value: Array) -> Array:
    if old.shape != value.shape:
        raise ValueError(
            f"variable {cell.name!r} has shape {list(old.shape)}, expected a value of it, got "
            f"shape {list(value.shape)}"
        )
    return old


@KERNELS.stateful("ScatterAddVariable")
def scatter_add_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Add to rows; rows named twice add up."""

    def change(old: Array, rows: Array, values: Array) -> Array:
        total = widened(old).copy() if old.dtype == widened(old).dtype else widened(old)
        add_rows(ctx.xp, total, rows, widened(values))
        return narrowed(total, old.dtype)

    return _scatter(cell, indices, updates, change)


@KERNELS.stateful("ScatterSubVariable")
def scatter_sub_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Subtract from rows; rows named twice add up."""
    return scatter_add_variable(ctx, cell, indices, -updates)


@KERNELS.stateful("ScatterUpdateVariable")
def scatter_update_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Replace rows; of rows named twice one wins."""

    def change(old: Array, rows: Array, values: Array) -> Array:
        new = old.copy()
        new[rows] = values
        return new

    return _scatter(cell, indices, updates, change)


def _scatter(
    cell: VariableCell,
    indices: Array,
    updates: Array,
    change: Callable[[Array, Array, Array], Array],
) -> Array:
    """Replace the value by ``change`` of it as a matrix of rows, the rows' indices and updates."""

    def update(old: Array) -> Array:
        if not old.ndim:
            raise ValueError(f"variable {cell.name!r} is a scalar and has no rows to update")
        shape = tuple(old.shape)
        check_shape(updates, (*indices.shape, *shape[1:]), "updates")
        check_indices(indices, shape[0], f"the rows of variable {cell.name!r}")
        width = int(np.prod(shape[1:]))
        rows = indices.reshape(-1)
        new = change(old.reshape((shape[0], width)), rows, updates.reshape((rows.size, width)))
        return _frozen(new.reshape(shape))

    return cell.update(update)


def _frozen(value: Array) -> Array:
    """Return an array that nobody can change by mistake, where the array module knows of that."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value
