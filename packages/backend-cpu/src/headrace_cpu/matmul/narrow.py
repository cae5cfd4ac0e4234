"""Kernels for matmuls with few columns, written in LLVM's assembly.

BLAS packs its operands and works on tiles of many columns: for a result of ten columns it is
slower than a loop that keeps some rows of the result in registers, loads a row of the right matrix
at a time, and multiplies it by one element of each row of the left one. Sizes are constants of the
kernel. Numba would not do: it neither keeps arrays in registers nor masks the last vector.

When it is quicker, ``pays`` says.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import Assembly, Index, Vector, vector_bytes
from headrace_cpu.native.source import KernelSource

_ELEMENTS = {"float32": "float", "float64": "double"}
# Words of a kernel's block: the addresses of a, b, c and alpha.
WORDS = 4
# The operations of the matmuls for which there are kernels, and of those with more columns.
_LEAST, _MOST, _SMALL = 2_000, 10**8, 10**6
# Below so many operations, waking a second thread takes longer than it saves.
_SERIAL_FLOPS = 400_000


@dataclass(frozen=True, slots=True)
class Tile:
    """How a matmul with few columns is cut.

    Attributes:
        width: Elements of a vector.
        vectors: How many vectors a row of the result takes.
        rows: How many rows of the result are kept in registers.
    """

    width: int
    vectors: int
    rows: int


def tile_of(matmul: Matmul) -> Tile:
    """Return how a matmul is cut for this processor."""
    size = 4 if matmul.dtype == "float32" else 8
    width = vector_bytes() // size
    vectors = -(-matmul.columns // width)
    # A part of the registers is left for a row of b and the elements of a.
    registers = 24 if vector_bytes() == 64 else 12
    return Tile(width, vectors, min(12, max(1, registers // vectors), matmul.rows))


def pays(matmul: Matmul) -> bool:
    """Whether the kernel is quicker than BLAS and oneDNN.

    On a processor with AVX-512, float32, one thread, it does 190 to 255 Gflop/s for 16 to 32
    columns, where BLAS does 95 to 115 and oneDNN 140 to 250, and 92 to 105 for 8, where BLAS does
    73 to 107; the left matrix may be transposed. For three columns BLAS was quicker. More threads
    share the rows of matmuls for which BLAS uses but one. For 33 to 64 columns it is as quick as
    oneDNN, which may compute what follows on the way; of small matmuls the others' calls take
    longer: [16, 40] @ [40, 40] took 1.0 us more, [8, 16] @ [16, 16] 0.7.
    """
    if matmul.transposed_b or matmul.inner < 8 or not _LEAST <= matmul.flops <= _MOST:
        return False
    tile = tile_of(matmul)
    if 2 * matmul.columns < tile.width:
        return False
    return tile.vectors <= (4 if matmul.flops <= _SMALL else 2)


def threads(matmul: Matmul, most: int) -> int:
    """Return how many threads a matmul is worth."""
    return most if matmul.flops >= _SERIAL_FLOPS else 1


def source(matmul: Matmul, *, accumulate: bool, parallel: bool) -> KernelSource:
    """Return the kernel of a matmul.

    Args:
        matmul: It; ``transposed_b`` is not possible.
        accumulate: Whether ``alpha`` times the matmul is added to ``c``, which otherwise becomes
            the matmul.
        parallel: Whether OpenMP's threads share the rows.
    """
    writer = _Writer(matmul, tile_of(matmul), accumulate)
    kind = "add" if accumulate else "set"
    name = f"narrow_{kind}_{matmul.rows}x{matmul.inner}x{matmul.columns}"
    return KernelSource(name, writer.text(name, parallel), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, matmul: Matmul, tile: Tile, accumulate: bool) -> None:
        self._matmul = matmul
        self._tile = tile
        self._code = code = Assembly(_ELEMENTS[matmul.dtype], tile.width)
        self._at = code.words(("a", "b", "c", "alpha"))
        self._scale = code.spread(self._at["alpha"]) if accumulate else None
        # How many elements of a row each of its vectors has.
        self._counts = [matmul.columns - v * tile.width for v in range(tile.vectors)]

    def text(self, name: str, parallel: bool) -> str:
        """Return the module."""
        code, rows = self._code, self._tile.rows
        whole, rest = divmod(self._matmul.rows, rows)
        first, last = code.index(0), code.index(whole + bool(rest))
        if parallel:
            _, first, last = code.part(whole + bool(rest))
        with code.loop(first, last.least(whole)) as unit:
            self._rows(unit.index * rows, rows)
        if rest:
            with code.loop(first.most(whole), last) as unit:
                self._rows(unit.index * rows, rest)
        return code.text(name)

    def _rows(self, row: Index, rows: int) -> None:
        """Compute so many rows of the result."""
        code, p, vectors = self._code, self._matmul, self._tile.vectors
        step_row, step_inner = (1, p.rows) if p.transposed_a else (p.inner, 1)
        left = code.at(self._at["a"], row * step_row)
        with code.loop(0, p.inner, values=[code.zero()] * (rows * vectors)) as k:
            right = self._row(self._at["b"], k.index * p.columns)
            column = k.index * step_inner
            self._prefetch(left, k.index, column)
            for r in range(rows):
                factor = code.spread(left, column + r * step_row)
                for v in range(vectors):
                    k.after.append(code.fma(factor, right[v], k.values[r * vectors + v]))
        for r in range(rows):
            place = (row + r) * p.columns
            sums = k.after[r * vectors : (r + 1) * vectors]
            if self._scale is not None:
                old = self._row(self._at["c"], place)
                pairs = zip(sums, old, strict=True)
                sums = [code.fma(self._scale, total, each) for total, each in pairs]
            for v, value in enumerate(sums):
                offset = place + v * self._tile.width
                code.store(value, self._at["c"], offset, self._counts[v])

    def _row(self, base: str, place: Index) -> list[Vector]:
        """Load a row of as many columns as the result has."""
        width = self._tile.width
        return [
            self._code.load(base, place + v * width, count) for v, count in enumerate(self._counts)
        ]

    def _prefetch(self, left: str, inner: Index, column: Index) -> None:
        """Ask for the elements that the next rows of the result need.

        A transposed matrix is read in steps of a whole row, mostly in another page of memory each,
        for which processors do not look ahead: without this, a matrix that is in no near cache
        takes twice the time. Of other matrices the next rows lie together, and a line of them is
        asked for in each turn: a tenth to a fifth quicker.
        """
        p, rows = self._matmul, self._tile.rows
        if p.transposed_a:
            self._code.prefetch(left, column + (2 * rows - 1))
        else:
            line = 64 // (4 if p.dtype == "float32" else 8)
            self._code.prefetch(left, inner * line + rows * p.inner)
