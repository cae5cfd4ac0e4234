"""Kernels of lookup tables, which are on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace import DType, Shape
from headrace.errors import DTypeError, ResourceMismatchError, shown
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.kernels.numeric import Array
from headrace_cpu.kernels.text import one_string
from headrace_cpu.kernels.text_convert import number
from headrace_cpu.tables import LookupTable, lines_of

KERNELS = KernelTable()

_LINE_NUMBER, _WHOLE_LINE = -1, -2


KERNELS.resource("LookupTable")(LookupTable)


@KERNELS.stateful("LookupTableFind")
def find(ctx: KernelContext, table: LookupTable, keys: Array, default_value: Array) -> Array:
    """Look up keys."""
    return table.find(_host(keys), _host(default_value))


@KERNELS.stateful("LookupTableInitialize")
def initialize(ctx: KernelContext, table: LookupTable, keys: Array, values: Array) -> None:
    """Fill a static table."""
    table.initialize(_host(keys), _host(values))


@KERNELS.stateful("LookupTableInitializeFromFile")
def initialize_from_file(
    ctx: KernelContext,
    table: LookupTable,
    filename: Array,
    *,
    key_index: int,
    value_index: int,
    vocab_size: int,
    delimiter: str,
) -> None:
    """Fill a static table with the lines of a file."""
    path = one_string(filename, "filename").decode(errors="surrogateescape")
    key = _column(key_index, table.key_dtype, delimiter.encode(), path)
    value = _column(value_index, table.value_dtype, delimiter.encode(), path)
    keys, values = [], []
    for count, line in lines_of(path, vocab_size):
        keys.append(key(count, line))
        values.append(value(count, line))
    table.initialize(_array(keys, table.key_dtype), _array(values, table.value_dtype))


def _column(index: int, dtype: DType, delimiter: bytes, path: str) -> Callable[[int, bytes], Any]:
    """Return the function that reads a column of a line."""
    if index == _LINE_NUMBER:
        return lambda count, line: count

    def read(count: int, line: bytes) -> Any:
        if index == _WHOLE_LINE:
            return of(line, count, "")
        parts = line.split(delimiter)
        if index >= len(parts):
            raise ResourceMismatchError(
                f"line {count + 1} of {shown(path)} has {len(parts)} columns, no column {index}"
            )
        return of(parts[index], count, f"column {index} of ")

    def of(text: bytes, count: int, where: str) -> Any:
        if dtype.kind == "string":
            return text
        found = number(text, dtype.numpy)
        if found is None:
            raise ResourceMismatchError(
                f"{where}line {count + 1} of {shown(path)} is no {dtype}: {text[:60]!r}"
            )
        return found

    if dtype.kind == "string" or dtype.is_integer or dtype.is_floating:
        return read
    raise DTypeError(f"columns of files are strings, integers or floats, not {dtype}")


def _array(values: list[Any], dtype: DType) -> Array:
    made = np.empty(len(values), dtype.numpy)
    for i, value in enumerate(values):
        made[i] = value
    return made


def _host(array: Array) -> Array:
    # A string without dimensions is Python's bytes here and there.
    return array if isinstance(array, np.ndarray) else np.asarray(array, _dtype_of(array))


def _dtype_of(value: Any) -> Any:
    return object if isinstance(value, bytes) else None


@KERNELS.stateful("LookupTableInsert")
def insert(ctx: KernelContext, table: LookupTable, keys: Array, values: Array) -> None:
    """Put values under keys."""
    table.insert(_host(keys), _host(values))


@KERNELS.stateful("LookupTableRemove")
def remove(ctx: KernelContext, table: LookupTable, keys: Array) -> None:
    """Remove keys."""
    table.remove(_host(keys))


@KERNELS.stateful("LookupTableRestore")
def restore(ctx: KernelContext, table: LookupTable, part: Array, *, what: str) -> None:
    """Take a part of what was saved."""
    table.restore(what, _host(part))


@KERNELS.stateful("LookupTableSize")
def size(ctx: KernelContext, table: LookupTable) -> Array:
    """Return the number of keys."""
    return np.asarray(table.size(), np.int64)


@KERNELS.stateful("LookupTableExport")
def export(
    ctx: KernelContext,
    table: LookupTable,
    *,
    key_dtype: DType,
    value_dtype: DType,
    value_shape: Shape,
) -> tuple[Array, Array]:
    """Return all keys and values."""
    if (key_dtype, value_dtype) != (table.key_dtype, table.value_dtype):
        raise DTypeError(
            f"table {table.name!r} is from {table.key_dtype} to {table.value_dtype}, expected "
            f"from {key_dtype} to {value_dtype}"
        )
    return table.export()
