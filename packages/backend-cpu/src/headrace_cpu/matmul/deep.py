"""Kernels for products of many rows with one another: a small result, and much to be summed up.

Such are covariances, the matrices of normal equations, and gradients of weights that many rows
share. Libraries share out the result among threads, each of which packs nearly all of the operands.
Here each thread sums up parts of the rows, which lie beside one another and need no packing, and
the parts are added up at the end. There are as many parts as the session has threads, also where
fewer of them are at work: so results depend on that setting, and not on who else is computing.

Measured with AVX-512, processor time: [20000, 64] transposed @ [20000, 64] on two threads 1.22 ms
for oneDNN's 1.50, and in float64 [10000, 64] transposed @ [10000, 64] 1.37 for 1.74.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import Assembly, Index, vector_bytes
from headrace_cpu.native.source import KernelSource

_ELEMENTS = {"float32": ("float", 4), "float64": ("double", 8)}
# Rows of the result that are kept in registers, two vectors each.
_MOST = 12
# How many rows are summed up at a time: two vectors of each are half of the nearest cache.
_DEPTH = 128
_WORDS = ("a", "b", "c", "alpha", "scratch")
# Results stay in a near cache. In float32 libraries are as quick, but for small ones on several
# threads.
_MOST_BYTES, _NARROWEST = 256 << 10, 33
_MOST_FLOATS, _FEWEST_ROWS_OF_FLOATS = 1 << 13, 4096
# Below so many operations a second thread is not worth being woken.
_SERIAL_FLOPS = 2_000_000


def worth(matmul: Matmul, most: int) -> int:
    """Return how many threads a product is worth."""
    return 1 if matmul.flops < _SERIAL_FLOPS else most


def pays(matmul: Matmul, threads: int) -> bool:
    """Whether the kernel is quicker than others."""
    p = matmul
    if not p.deep or vector_bytes() < 64 or min(p.rows, p.columns) < _NARROWEST:
        return False
    if p.dtype == "float64":
        return 8 * p.rows * p.columns <= _MOST_BYTES
    small = p.rows * p.columns <= _MOST_FLOATS
    return threads > 1 and small and p.inner >= _FEWEST_ROWS_OF_FLOATS


@dataclass(frozen=True, slots=True)
class Deep:
    """A kernel of ``c = transpose(a) @ b``, or of ``c += alpha * (transpose(a) @ b)``.

    Attributes:
        matmul: The sizes.
        accumulate: Whether it adds to what is there.
        parts: How many parts are summed up by themselves.
    """

    matmul: Matmul
    accumulate: bool = False
    parts: int = 1

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return 64 // _ELEMENTS[self.matmul.dtype][1]

    @property
    def width(self) -> int:
        """Elements of a row of a thread's sums: whole vectors."""
        return -(-self.matmul.columns // self.lanes) * self.lanes

    @property
    def scratch(self) -> int:
        """How many bytes of scratch memory it needs."""
        return _ELEMENTS[self.matmul.dtype][1] * self.parts * self.matmul.rows * self.width

    def source(self) -> KernelSource:
        """Return the kernel."""
        p = self.matmul
        name = f"deep_{p.dtype}{'_add' * self.accumulate}_{p.rows}x{p.inner}x{p.columns}"
        name += f"_in_{self.parts}" * (self.parts > 1)
        return KernelSource(name, _Writer(self).text(name), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: Deep) -> None:
        self._kernel = kernel
        self._code = code = Assembly(_ELEMENTS[kernel.matmul.dtype][0], kernel.lanes)
        self._at = code.words(_WORDS)

    def text(self, name: str) -> str:
        """Return the module."""
        code, p, width = self._code, self._kernel.matmul, self._kernel.width
        parts, blocks = self._kernel.parts, -(-p.inner // _DEPTH)
        _, mine, behind = code.part(parts)
        with code.loop(mine, behind) as part:
            self._sums = code.at(self._at["scratch"], part.index * (p.rows * width))
            with code.loop(0, p.rows * width, code.lanes) as place:
                code.store(code.zero(), self._sums, place.index)
            first, last = part.index * blocks // parts, (part.index + 1) * blocks // parts
            with code.loop(first, last) as block:
                start = block.index * _DEPTH
                self._block(start, (start + _DEPTH).least(p.inner))
        code.barrier()
        self._add_up()
        return code.text(name)

    def _block(self, start: Index, end: Index) -> None:
        """Add the products of some rows to the thread's sums."""
        code, p, lanes = self._code, self._kernel.matmul, self._kernel.lanes
        panel = 2 * lanes
        whole, rest = divmod(p.columns, panel)
        with code.loop(0, whole) as turn:
            self._panel(turn.index * panel, [lanes, lanes], start, end)
        if rest:
            counts = [min(lanes, rest - done) for done in range(0, rest, lanes)]
            self._panel(code.index(whole * panel), counts, start, end)

    def _panel(self, column: Index, counts: list[int], start: Index, end: Index) -> None:
        code, p = self._code, self._kernel.matmul
        groups = -(-p.rows // _MOST)
        few, more = divmod(p.rows, groups)
        for rows, number, first in ((few + 1, more, 0), (few, groups - more, more * (few + 1))):
            if number:
                with code.loop(0, number) as group:
                    self._multiply(group.index * rows + first, rows, column, counts, start, end)

    def _multiply(
        self, row: Index, rows: int, column: Index, counts: list[int], start: Index, end: Index
    ) -> None:
        """Add products to some rows of a panel."""
        code, p, lanes = self._code, self._kernel.matmul, self._kernel.lanes
        out = code.at(self._sums, row * self._kernel.width + column)
        places = [
            r * self._kernel.width + v * lanes for r in range(rows) for v in range(len(counts))
        ]
        before = [code.load(out, place) for place in places]
        with code.loop(start, end, values=before) as inner:
            right = code.at(self._at["b"], inner.index * p.columns + column)
            vectors = [code.load(right, v * lanes, count) for v, count in enumerate(counts)]
            left = code.at(self._at["a"], inner.index * p.rows + row)
            for r in range(rows):
                one = code.spread(left, r)
                for v, vector in enumerate(vectors):
                    value = inner.values[r * len(counts) + v]
                    inner.after.append(code.fma(one, vector, value))
        for place, value in zip(places, inner.after, strict=True):
            code.store(value, out, place)

    def _add_up(self) -> None:
        """Add up the sums of all parts; each thread does so for some rows."""
        code, p, k = self._code, self._kernel.matmul, self._kernel
        _, first, last = code.part(p.rows)
        with code.loop(first, last) as row:
            for start in range(0, p.columns, k.lanes):
                count = min(k.lanes, p.columns - start)
                place = row.index * k.width + start
                total = code.load(self._at["scratch"], place)
                with code.loop(1, k.parts, values=[total]) as other:
                    sums = code.at(self._at["scratch"], other.index * (p.rows * k.width))
                    other.after.append(other.values[0] + code.load(sums, place))
                (total,) = other.after
                target = row.index * p.columns + start
                if k.accumulate:
                    old = code.load(self._at["c"], target, count)
                    total = code.fma(total, code.spread(self._at["alpha"]), old)
                code.store(total, self._at["c"], target, count)
