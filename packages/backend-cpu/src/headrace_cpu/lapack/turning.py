"""Transposed copies of matrices in plans.

OpenBLAS moves vectors where it turns matrices of float32, and number by number those of float64:
there a kernel turns squares in registers.

Measured on a core with AVX-512, 512 x 512 in float64: 0.2 ms for OpenBLAS's 1.2.
"""

from __future__ import annotations

import functools

from headrace_cpu.lapack.table import Place, Table
from headrace_cpu.native.assembly import Assembly, Index
from headrace_cpu.native.build import build
from headrace_cpu.native.compiler import KernelError, give_up
from headrace_cpu.native.source import KernelSource

_LANES = 8
_SIZES = ("rows", "columns", "from", "to")


def source() -> KernelSource:
    """Return the kernel, a function of three addresses.

    The first one is that of whole numbers: the rows and columns of a matrix in Fortran's order, how
    many elements are from column to column, and from column to column of the result. Then come the
    addresses of the matrix and of the result.
    """
    name = "turn_float64"
    return KernelSource(name, _text(name), language="llvm")


def _text(name: str) -> str:
    code = Assembly("double", _LANES)
    at = code.numbers(_SIZES, 0)
    rows, columns = at["rows"], at["columns"]
    whole_rows, whole_columns = (n // _LANES * _LANES for n in (rows, columns))

    def places(row: Index, column: Index) -> tuple[str, str]:
        given = code.at("%given", row + column * at["from"])
        return given, code.at("%made", column + row * at["to"])

    def one_by_one(first_row: Index | int, first_column: Index | int, last_row: Index) -> None:
        with code.loop(first_column, columns) as column, code.loop(first_row, last_row) as row:
            given, made = places(row.index, column.index)
            code.put(code.element_at(given), made)

    with code.loop(0, whole_columns, _LANES) as across, code.loop(0, whole_rows, _LANES) as down:
        given, made = places(down.index, across.index)
        square = [code.load(given, at["from"] * i) for i in range(_LANES)]
        for i, vector in enumerate(code.transposed(square)):
            code.store(vector, made, at["to"] * i)
    one_by_one(whole_rows, 0, rows)
    one_by_one(0, whole_columns, whole_rows)
    return code.text(name, "ptr %given, ptr %made")


@functools.cache
def _kernel() -> int | None:
    """Return the address of the kernel; None where there is no compiler."""
    try:
        (address,) = build([source()])
    except (KernelError, ImportError) as error:
        give_up(["Cholesky"], error, strict=False)
        return None
    return address


def turn(
    table: Table,
    rows: int,
    columns: int,
    given: tuple[Place, int],
    made: tuple[Place, int],
    *,
    times: int,
) -> None:
    """Add a transposed copy to a table, in the order of Fortran.

    Args:
        table: It.
        rows: Of the matrix.
        columns: Of the matrix.
        given: Where it is, and how many elements are from column to column.
        made: The same of the copy.
        times: How often it is repeated.
    """
    kernel = _kernel() if table.dtype.name == "float64" else None
    if kernel is None:
        table.call("omatcopy", "C", "T", rows, columns, 1.0, *given, *made, times=times)
        return
    sizes = table.wholes([rows, columns, given[1], made[1]]).stepping(0)
    table.call_address(kernel, sizes, given[0], made[0], times=times)
