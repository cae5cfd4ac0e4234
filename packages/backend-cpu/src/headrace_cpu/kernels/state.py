"""Kernels of variables: what reads and replaces the value in a cell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from headrace.errors import OutOfRangeError
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace.extend.state import VariableCell
from headrace_cpu import rows as native_rows
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    check_indices,
    check_shape,
    narrowed,
    widened,
)
from headrace_cpu.kernels.segment import (
    unsorted_segment_max,
    unsorted_segment_min,
    unsorted_segment_prod,
)

KERNELS = KernelTable()


KERNELS.resource("VarHandle")(VariableCell)


@KERNELS.stateful("ReadVariable")
def read_variable(ctx: KernelContext, cell: VariableCell) -> Array:
    """Return the value."""
    return cell.read()


@KERNELS.stateful("VariableInitialized")
def variable_initialized(ctx: KernelContext, cell: VariableCell) -> Array:
    """Return whether there is a value."""
    return ctx.xp.asarray(cell.initialized)


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


# How the rows of a variable [rows, width] change: a function of the array module, the old rows,
# the indices of rows, and one update for each.
Change: TypeAlias = Callable[[Any, Array, Array, Array], Array]


@KERNELS.stateful("ScatterAddVariable")
def scatter_add_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Add to rows; rows named twice add up."""
    return _scatter(ctx, cell, indices, updates, _add)


@KERNELS.stateful("ScatterSubVariable")
def scatter_sub_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Subtract from rows; rows named twice add up."""
    return _scatter(ctx, cell, indices, updates, _subtract)


@KERNELS.stateful("ScatterMulVariable")
def scatter_mul_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Multiply rows."""
    return _scatter(ctx, cell, indices, updates, _multiply)


@KERNELS.stateful("ScatterDivVariable")
def scatter_div_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Divide rows."""
    if updates.dtype.kind in "iu" and bool((updates == 0).any()):
        raise ValueError(f"division by zero in the integer variable {cell.name!r}")
    return _scatter(ctx, cell, indices, updates, _divide)


@KERNELS.stateful("ScatterMinVariable")
def scatter_min_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Lower rows."""
    return _scatter(ctx, cell, indices, updates, _lower)


@KERNELS.stateful("ScatterMaxVariable")
def scatter_max_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Raise rows."""
    return _scatter(ctx, cell, indices, updates, _raise)


@KERNELS.stateful("ScatterUpdateVariable")
def scatter_update_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Replace rows; of rows named twice one wins."""
    return _scatter(ctx, cell, indices, updates, _replace)


@KERNELS.stateful("ScatterNdUpdateVariable")
def scatter_nd_update_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Replace slices; of those named twice one wins."""
    return _scatter_nd(ctx, cell, indices, updates, _replace)


@KERNELS.stateful("ScatterNdAddVariable")
def scatter_nd_add_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Add to slices; updates of those named twice add up."""
    return _scatter_nd(ctx, cell, indices, updates, _add)


@KERNELS.stateful("ScatterNdSubVariable")
def scatter_nd_sub_variable(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array
) -> Array:
    """Subtract from slices; updates of those named twice add up."""
    return _scatter_nd(ctx, cell, indices, updates, _subtract)


@KERNELS.stateful("CountUpTo")
def count_up_to_variable(ctx: KernelContext, cell: VariableCell, *, limit: int) -> Array:
    """Increment, and return the old value."""
    before: list[Array] = []

    def change(old: Array) -> Array:
        if old.ndim:
            raise ValueError(f"variable {cell.name!r} has shape {list(old.shape)}, not []")
        if int(old) >= limit:
            raise OutOfRangeError(f"variable {cell.name!r} has reached its limit {limit}")
        before.append(old)
        return _frozen(ctx.xp.asarray(old + 1, old.dtype))

    cell.update(change)
    return before[0]


# -- how rows change


def _add(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    total = widened(old).copy() if old.dtype == widened(old).dtype else widened(old)
    add_rows(xp, total, rows, widened(values))
    return narrowed(total, old.dtype)


def _subtract(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    return _add(xp, old, rows, -values)


def _replace(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    new = old.copy()
    new[rows] = values
    return new


def _multiply(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    count = np.asarray(old.shape[0])
    return old * unsorted_segment_prod(xp, values, rows, count)


def _lower(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    least = unsorted_segment_min(xp, values, rows, np.asarray(old.shape[0]))
    return xp.where(_named(xp, old, rows), xp.minimum(old, least), old)


def _raise(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    most = unsorted_segment_max(xp, values, rows, np.asarray(old.shape[0]))
    return xp.where(_named(xp, old, rows), xp.maximum(old, most), old)


def _named(xp: Any, old: Array, rows: Array) -> Array:
    """Return a column that says which rows are named."""
    named = xp.zeros((old.shape[0], 1), bool)
    named[rows] = True
    return named


def _divide(xp: Any, old: Array, rows: Array, values: Array) -> Array:
    """Divide rows as often as they are named, one after the other."""
    new = widened(old).copy()
    order = rows.argsort(kind="stable")
    while order.size:
        ids = rows[order]
        first = xp.concatenate((xp.ones((1,), bool), ids[1:] != ids[:-1]))
        now = order[first]
        new[rows[now]] = _quotient(xp, new[rows[now]], widened(values[now]))
        order = order[~first]
    return narrowed(new, old.dtype)


def _quotient(xp: Any, x: Array, y: Array) -> Array:
    """Return a quotient; one of integers is rounded towards zero."""
    if x.dtype.kind not in "iu":
        return x / y
    down = x // y
    return down + ((down < 0) & (down * y != x)).astype(x.dtype)


# -- which rows change


# Finds the rows: of the value's shape, the matrix of which rows change, the indices of these, and
# an update for each. It refuses what does not fit.
Locate: TypeAlias = Callable[[tuple[int, ...]], tuple[tuple[int, int], Array, Array]]


def _scatter(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array, change: Change
) -> Array:
    """Change the value as a matrix of rows."""
    xp = ctx.xp

    def locate(shape: tuple[int, ...]) -> tuple[tuple[int, int], Array, Array]:
        if not shape:
            raise ValueError(f"variable {cell.name!r} is a scalar and has no rows to update")
        wanted = (*indices.shape, *shape[1:])
        if updates.ndim:
            check_shape(updates, wanted, "updates")
        check_indices(indices, shape[0], f"the rows of variable {cell.name!r}")
        width = int(np.prod(shape[1:]))
        rows = indices.reshape(-1)
        values = updates if updates.ndim else xp.broadcast_to(updates, wanted)
        return (shape[0], width), rows, values.reshape((rows.size, width))

    return _change_rows(xp, cell, locate, change)


def _scatter_nd(
    ctx: KernelContext, cell: VariableCell, indices: Array, updates: Array, change: Change
) -> Array:
    """Change the value as a matrix with a row for each slice that indices can name."""
    xp = ctx.xp

    def locate(shape: tuple[int, ...]) -> tuple[tuple[int, int], Array, Array]:
        if not indices.ndim or indices.shape[-1] > len(shape):
            raise ValueError(
                f"indices of shape {list(indices.shape)} do not index variable {cell.name!r} of "
                f"shape {list(shape)}"
            )
        depth = indices.shape[-1]
        check_shape(updates, (*indices.shape[:-1], *shape[depth:]), "updates")
        count = int(np.prod(indices.shape[:-1]))
        places = indices.reshape((count, depth))
        rows = xp.zeros((count,), np.int64)
        for axis in range(depth):
            column = places[:, axis]
            check_indices(column, shape[axis], f"axis {axis} of variable {cell.name!r}")
            rows = rows * shape[axis] + column
        height, width = int(np.prod(shape[:depth])), int(np.prod(shape[depth:]))
        return (height, width), rows, updates.reshape((count, width))

    return _change_rows(xp, cell, locate, change)


def _change_rows(xp: Any, cell: VariableCell, locate: Locate, change: Change) -> Array:
    """Change rows of the value.

    In the processor's memory they are changed in place where nobody else holds the value: what a
    step costs depends on the rows that it names, not on how large the table is.
    """
    if xp is not np:

        def update(old: Array) -> Array:
            size, rows, values = locate(tuple(old.shape))
            return _frozen(change(xp, old.reshape(size), rows, values).reshape(old.shape))

        return cell.update(update)
    new, old = cell.take()
    try:
        size, rows, values = locate(new.shape)
        if change in (_add, _subtract) and new.flags.c_contiguous:
            new.flags.writeable = True
            table = new.reshape(size)
            if native_rows.add(table, rows, values, subtract=change is _subtract):
                cell.give(_frozen(new))
                return new
        if change is _replace:
            # What the rows were does not matter.
            named, changed = rows, values
        else:
            named, places = np.unique(rows, return_inverse=True)
            changed = change(np, new.reshape(size)[named], places.reshape(-1), values)
        new.flags.writeable = True
        new.reshape(size)[named] = changed
    except BaseException:
        cell.give(_frozen(old))
        raise
    cell.give(_frozen(new))
    return new


def _frozen(value: Array) -> Array:
    """Return an array that nobody can change by mistake, where the array module knows of that."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    return value
