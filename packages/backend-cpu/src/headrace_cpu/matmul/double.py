"""Kernels for matmuls in float64, where vectors have eight of them.

OpenBLAS, as NumPy brings it, takes vectors of four on some processors that have longer ones, and
oneDNN does not multiply float64. The kernel takes 16 columns of the result at a time: a block of
the right matrix is copied to the nearest cache, row by row whether it is transposed or not, and
multiplied by all rows of the left one. Threads take panels of columns one by one.

Measured on a core with AVX-512: [300, 300] @ [300, 300] 0.55 ms for OpenBLAS's 0.99.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import Assembly, Index, Vector, vector_bytes
from headrace_cpu.native.source import KernelSource

_LANES = 8
_PANEL = 2 * _LANES
# Rows of the result that are kept in registers, two vectors each.
_MOST = 12
# Rows of the right matrix in a block: with two vectors each, half of the nearest cache.
_DEEPEST = 192
_WORDS = ("a", "b", "c", "alpha", "scratch", "counter")
_FEWEST_FLOPS, _FEWEST_ROWS, _FEWEST_COLUMNS = 100_000, 6, 12
# Below so many operations a second thread is not worth being woken.
_SERIAL_FLOPS = 1_000_000


def pays(matmul: Matmul) -> bool:
    """Whether the kernel is quicker than others."""
    p = matmul
    if p.dtype != "float64" or vector_bytes() < 8 * _LANES or p.inner < _LANES:
        return False
    return p.rows >= _FEWEST_ROWS and p.columns >= _FEWEST_COLUMNS and p.flops >= _FEWEST_FLOPS


@dataclass(frozen=True, slots=True)
class Double:
    """A kernel of ``c = a @ b``, or of ``c += alpha * (a @ b)``.

    Attributes:
        matmul: The sizes.
        accumulate: Whether it adds to what is there.
    """

    matmul: Matmul
    accumulate: bool = False

    @property
    def depth(self) -> int:
        """Rows of the right matrix in a block; the last block may have fewer."""
        return -(-self.matmul.inner // -(-self.matmul.inner // _DEEPEST))

    @property
    def own(self) -> int:
        """Elements of scratch memory that each thread has for itself."""
        return -(-self.depth // _LANES) * _LANES * _PANEL

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        return 8 * threads * self.own

    def threads(self, most: int) -> int:
        """Return how many threads it is worth."""
        return 1 if self.matmul.flops < _SERIAL_FLOPS else most

    def source(self) -> KernelSource:
        """Return the kernel."""
        p = self.matmul
        kind = "n" + "t" * p.transposed_a, "n" + "t" * p.transposed_b
        name = f"double_{kind[0][-1]}{kind[1][-1]}{'_add' * self.accumulate}"
        name = f"{name}_{p.rows}x{p.inner}x{p.columns}"
        return KernelSource(name, _Writer(self).text(name), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: Double) -> None:
        self._kernel = kernel
        self._code = code = Assembly("double", _LANES)
        self._at = code.words(_WORDS)

    def text(self, name: str) -> str:
        """Return the module."""
        code, k = self._code, self._kernel
        me, _, _ = code.part(1)
        self._packed = code.at(self._at["scratch"], me * k.own)
        whole, rest = divmod(k.matmul.columns, _PANEL)
        with code.taken(self._at["counter"], whole + (rest > 0)) as turn:
            # Loops of one turn or none: all panels but perhaps the last are whole.
            if whole:
                with code.loop(turn, (turn + 1).least(whole)) as panel:
                    self._panel(panel.index * _PANEL, _PANEL)
            if rest:
                with code.loop(turn.most(whole), turn + 1) as panel:
                    self._panel(panel.index * _PANEL, rest)
        return code.text(name)

    def _panel(self, column: Index, width: int) -> None:
        """Compute some columns of the result."""
        code, k = self._code, self._kernel
        counts = [min(_LANES, width - first) for first in range(0, width, _LANES)]
        if not k.accumulate:
            with code.loop(0, k.matmul.rows) as row:
                for v, count in enumerate(counts):
                    place = row.index * k.matmul.columns + column + v * _LANES
                    code.store(code.zero(), self._at["c"], place, count)
        whole = k.matmul.inner // k.depth * k.depth
        with code.loop(0, whole, k.depth) as block:
            self._block(block.index, k.depth, column, counts)
        if whole < k.matmul.inner:
            self._block(code.index(whole), k.matmul.inner - whole, column, counts)

    def _block(self, block: Index, depth: int, column: Index, counts: list[int]) -> None:
        """Add the product with some rows of the right matrix."""
        code, p = self._code, self._kernel.matmul
        if p.transposed_b:
            self._pack_transposed(block, depth, column, counts)
        else:
            self._pack(block, depth, column, counts)
        groups = -(-p.rows // _MOST)
        few, more = divmod(p.rows, groups)
        for rows, number, start in ((few + 1, more, 0), (few, groups - more, more * (few + 1))):
            if number:
                with code.loop(0, number) as group:
                    row = group.index * rows + start
                    self._multiply(row, rows, column, counts, block, depth)

    def _pack(self, block: Index, depth: int, column: Index, counts: list[int]) -> None:
        code, p = self._code, self._kernel.matmul
        with code.loop(0, depth) as inner:
            for v, count in enumerate(counts):
                place = (inner.index + block) * p.columns + column + v * _LANES
                near = inner.index * _PANEL + v * _LANES
                code.store(code.load(self._at["b"], place, count), self._packed, near)

    def _pack_transposed(self, block: Index, depth: int, column: Index, counts: list[int]) -> None:
        code, p = self._code, self._kernel.matmul

        def square(inner: Index | int, most: int) -> None:
            for v, count in enumerate(counts):
                corner = (column + v * _LANES) * p.inner + block + inner
                rows = [
                    code.load(self._at["b"], corner + i * p.inner, most)
                    if i < count
                    else code.zero()
                    for i in range(_LANES)
                ]
                for i, row in enumerate(code.transposed(rows)[:most]):
                    near = (code.index(0) + inner + i) * _PANEL + v * _LANES
                    code.store(row, self._packed, near)

        whole = depth // _LANES * _LANES
        with code.loop(0, whole, _LANES) as turn:
            square(turn.index, _LANES)
        if whole < depth:
            square(whole, depth - whole)

    def _multiply(
        self, row: Index, rows: int, column: Index, counts: list[int], block: Index, depth: int
    ) -> None:
        """Add some rows of a panel, as far as a block goes."""
        code, p = self._code, self._kernel.matmul
        if p.transposed_a:
            left, along, across = code.at(self._at["a"], block * p.rows + row), p.rows, 1
        else:
            left, along, across = code.at(self._at["a"], row * p.inner + block), 1, p.inner
        out = code.at(self._at["c"], row * p.columns + column)
        vectors = len(counts)
        places = [(r, v) for r in range(rows) for v in range(vectors)]
        with code.loop(0, depth, values=[code.zero()] * len(places)) as inner:
            right = [
                code.load(self._packed, inner.index * _PANEL + v * _LANES) for v in range(vectors)
            ]
            here = code.at(left, inner.index * along)
            for r in range(rows):
                one = code.spread(here, r * across)
                for v in range(vectors):
                    inner.after.append(code.fma(one, right[v], inner.values[r * vectors + v]))
        for (r, v), total in zip(places, inner.after, strict=True):
            place = r * p.columns + v * _LANES
            code.store(self._added(total, out, place, counts[v]), out, place, counts[v])

    def _added(self, total: Vector, out: str, place: int, count: int) -> Vector:
        """Return a part of a sum, times the rate, with what is there."""
        code = self._code
        before = code.load(out, place, count)
        if not self._kernel.accumulate:
            return total + before
        return code.fma(total, code.spread(self._at["alpha"]), before)
