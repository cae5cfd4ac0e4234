"""The kernel of small triangular systems with many right sides, and plans of large ones with it.

BLAS's own ``trsm`` works at its borders number by number, which takes longer than the products that
a large system mostly consists of. So a system is halved until a kernel has it: it holds a vector of
right sides for each unknown, and all that is between the halves is a product.

Measured on a core with AVX-512, 400 unknowns and 400 right sides in float32: 0.4 ms for OpenBLAS's
0.9.

References:
    N. J. Higham, Accuracy and Stability of Numerical Algorithms, second edition, SIAM, 2002, 8.1
    (substitution)
"""

from __future__ import annotations

import functools

from headrace_cpu.lapack.table import Place, Table
from headrace_cpu.native.assembly import Assembly, Index, Vector
from headrace_cpu.native.build import build
from headrace_cpu.native.compiler import KernelError, give_up
from headrace_cpu.native.source import KernelSource

# So many unknowns are found by the kernel, and so many right sides are worth it.
_UNKNOWNS = 32
FEWEST_UNKNOWNS, FEWEST_SIDES = 48, 16
_ELEMENTS = {"float32": ("float", 16), "float64": ("double", 8)}
# Vectors beside one another, so that one need not wait for the other.
_VECTORS = 4
_SIZES = ("unknowns", "sides", "across", "along", "apart")


def source(dtype: str) -> KernelSource:
    """Return the kernel, a function of three addresses.

    The first one is that of whole numbers: how many unknowns and right sides there are, and of the
    factors and right sides how many elements are between one and the next: between factors of the
    same equation, of the same unknown, and between the right sides of equations. Then come the
    addresses of the first equation's first factor and first right side, which the solution
    replaces.
    """
    name = f"substitute_{dtype}"
    return KernelSource(name, _Writer(*_ELEMENTS[dtype]).text(name), language="llvm")


class _Writer:
    """Writes the kernel of a dtype."""

    def __init__(self, element: str, lanes: int) -> None:
        self._code = code = Assembly(element, lanes)
        self._at = code.numbers(_SIZES, 0)

    def text(self, name: str) -> str:
        """Return the module."""
        code, sides = self._code, self._at["sides"]
        together = _VECTORS * code.lanes
        whole = sides // together * together
        with code.loop(0, whole, together) as turn:
            self._solve(turn.index, _VECTORS, None)
        with code.loop(whole, sides, code.lanes) as turn:
            self._solve(turn.index, 1, (sides - turn.index).least(code.lanes))
        return code.text(name, "ptr %factors, ptr %values")

    def _solve(self, first: Index, vectors: int, count: Index | None) -> None:
        """Find all unknowns for some right sides."""
        code, at = self._code, self._at

        def loaded(unknown: Index) -> tuple[str, list[Vector]]:
            place = code.at("%values", unknown * at["apart"] + first)
            return place, [code.load(place, v * code.lanes, count) for v in range(vectors)]

        with code.loop(0, at["unknowns"]) as row:
            place, rest = loaded(row.index)
            factors = code.at("%factors", row.index * at["along"])
            with code.loop(0, row.index, values=rest) as known:
                factor = -code.spread(factors, known.index * at["across"])
                _, found = loaded(known.index)
                known.after = [
                    code.fma(factor, x, value) for x, value in zip(found, known.values, strict=True)
                ]
            inverse = code.reciprocal(factors, row.index * at["across"])
            for v, value in enumerate(known.after):
                code.store(value * inverse, place, v * code.lanes, count)


@functools.cache
def _kernel(dtype: str) -> int | None:
    """Return the address of the kernel; None where there is no compiler."""
    try:
        (address,) = build([source(dtype)])
    except (KernelError, ImportError) as error:
        give_up(["MatrixTriangularSolve"], error, strict=False)
        return None
    return address


def substitute(
    table: Table,
    unknowns: int,
    sides: int,
    matrix: tuple[Place, int],
    values: tuple[Place, int],
    *,
    upper: bool,
    transposed: bool,
    times: int,
) -> None:
    """Add what solves ``x a = b`` to a table, in the order of Fortran.

    Args:
        table: It.
        unknowns: The rows and columns of ``a``, a triangle.
        sides: The rows of ``b``, which ``x`` replaces.
        matrix: Where ``a`` is, and how many elements are from column to column.
        values: The same of ``b``.
        upper: Whether ``a`` is an upper triangle.
        transposed: Whether it is ``x transpose(a) = b``.
        times: How often it is repeated.
    """
    few = unknowns < FEWEST_UNKNOWNS or sides < FEWEST_SIDES
    kernel = None if few else _kernel(table.dtype.name)
    (a, lda), (b, ldb) = matrix, values
    letters = "U" if upper else "L", "T" if transposed else "N"
    if kernel is None:
        table.call(*("trsm", "R", *letters, "N", sides, unknowns, 1.0, a, lda, b, ldb), times=times)
        return
    system = _System(table, kernel, sides, matrix, values, upper, transposed, times)
    with table.chain():
        system.solve(0, unknowns)


class _System:
    """A system that is halved."""

    def __init__(
        self,
        table: Table,
        kernel: int,
        sides: int,
        matrix: tuple[Place, int],
        values: tuple[Place, int],
        upper: bool,
        transposed: bool,
        times: int,
    ) -> None:
        self._table, self._kernel = table, kernel
        self._size = table.dtype.itemsize
        self._sides, self._matrix, self._values = sides, matrix, values
        self._transposed, self._times = transposed, times
        self._forward = upper is not transposed

    def solve(self, first: int, last: int) -> None:
        """Find the unknowns from one to another."""
        count = last - first
        if count <= _UNKNOWNS:
            self._substitute(first, last)
            return
        middle = first + -(-count // (2 * _UNKNOWNS)) * _UNKNOWNS
        halves = [(first, middle), (middle, last)]
        if not self._forward:
            halves.reverse()
        known, unknown = halves
        self.solve(*known)
        self._subtract(known, unknown)
        self.solve(*unknown)

    def _factor(self, unknown: int, equation: int) -> Place:
        a, lda = self._matrix
        row, column = (equation, unknown) if self._transposed else (unknown, equation)
        return a + (row + column * lda) * self._size

    def _value(self, unknown: int) -> Place:
        b, ldb = self._values
        return b + unknown * ldb * self._size

    def _substitute(self, first: int, last: int) -> None:
        lda, ldb = self._matrix[1], self._values[1]
        across, along, apart = (lda, 1, ldb) if self._transposed else (1, lda, ldb)
        start = first if self._forward else last - 1
        if not self._forward:
            across, along, apart = -across, -along, -apart
        sizes = self._table.wholes([last - first, self._sides, across, along, apart])
        arguments = sizes.stepping(0), self._factor(start, start), self._value(start)
        self._table.call_address(self._kernel, *arguments, times=self._times)

    def _subtract(self, known: tuple[int, int], unknown: tuple[int, int]) -> None:
        lda, ldb = self._matrix[1], self._values[1]
        self._table.call(
            *("gemm", "N", "T" if self._transposed else "N"),
            *(self._sides, unknown[1] - unknown[0], known[1] - known[0]),
            *(-1.0, self._value(known[0]), ldb, self._factor(known[0], unknown[0]), lda),
            *(1.0, self._value(unknown[0]), ldb),
            times=self._times,
        )
