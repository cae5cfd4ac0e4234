"""Kernels for matmuls with many columns, and not so many rows.

Such are the scores of a large vocabulary. The kernel takes 32 columns at a time: a block of them is
copied to the nearest cache, and multiplied by all rows. Threads take panels of columns one by one,
so none waits long for a slower one; which of them takes which makes no difference to the result. A
result that is complete at once is stored past the caches: it is larger than they are, and storing
it in the usual way would read it first.

Measured on two cores with AVX-512, means, against oneDNN and BLAS in equal parts: [400, 200] @
[200, 10000] 8.5 ms for 10.0, [64, 512] @ [512, 32000] 16.1 for 19.0, [96, 1024] @ [1024, 30000] 38
for 45. With the left matrix transposed, as in gradients, oneDNN was quicker in most cases.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import Assembly, Index, Vector, vector_bytes
from headrace_cpu.native.source import KernelSource

LANES = vector_bytes() // 4
PANEL = 2 * LANES
# Rows of the result that are kept in registers, two vectors each.
_MOST = 12 if LANES == 16 else 6
# Rows of the right matrix in a block: with two vectors each, half of the nearest cache.
_DEEPEST, _SHALLOWEST = 256, 64
_WORDS = ("a", "b", "c", "alpha", "scratch", "counter")


# Smaller results may stay in caches, and a larger left matrix is not near enough.
_LEAST_BYTES, _MOST_BYTES = 8_000_000, 512 << 10
_FEWEST_ROWS = 48


def pays(matmul: Matmul) -> bool:
    """Whether the kernel is quicker than others."""
    p = matmul
    if p.dtype != "float32" or p.transposed_a or p.transposed_b or p.columns % LANES or LANES < 8:
        return False
    if p.rows < _FEWEST_ROWS or Panels(p).depth == 0 or 4 * p.rows * p.inner > _MOST_BYTES:
        return False
    return 4 * p.rows * p.columns >= _LEAST_BYTES


@dataclass(frozen=True, slots=True)
class Panels:
    """A kernel of ``c = a @ b``, neither of which is transposed.

    Attributes:
        matmul: The sizes.
    """

    matmul: Matmul

    @property
    def depth(self) -> int:
        """Rows of the right matrix in a block."""
        inner = self.matmul.inner
        return next((d for d in range(_DEEPEST, _SHALLOWEST - 1, -1) if inner % d == 0), 0)

    @property
    def own(self) -> int:
        """Elements of scratch memory that each thread has for itself."""
        return self.depth * PANEL

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        return 4 * threads * self.own

    @property
    def streams(self) -> bool:
        """Whether the result is stored past the caches: it must begin at a cache line."""
        return self.depth == self.matmul.inner

    def source(self) -> KernelSource:
        """Return the kernel."""
        p = self.matmul
        name = f"panels_{p.rows}x{p.inner}x{p.columns}"
        return KernelSource(name, _Writer(self).text(name), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: Panels) -> None:
        self._kernel = kernel
        self._code = code = Assembly("float", LANES)
        self._at = code.words(_WORDS)

    def text(self, name: str) -> str:
        """Return the module."""
        code, k = self._code, self._kernel
        me, _, _ = code.part(1)
        self._packed = code.at(self._at["scratch"], me * k.own)
        whole, rest = divmod(k.matmul.columns, PANEL)
        with code.taken(self._at["counter"], whole + (rest > 0)) as turn:
            # Loops of one turn or none: all panels but perhaps the last are whole.
            with code.loop(turn, (turn + 1).least(whole)) as panel:
                self._panel(panel.index * PANEL, 2)
            if rest:
                with code.loop(whole, turn + 1) as panel:
                    self._panel(panel.index * PANEL, rest // LANES)
        return code.text(name)

    def _panel(self, column: Index, vectors: int) -> None:
        """Compute some columns of the result."""
        code, p, depth = self._code, self._kernel.matmul, self._kernel.depth
        for block in range(0, p.inner, depth):
            with code.loop(0, depth) as inner:
                for v in range(vectors):
                    place = (inner.index + block) * p.columns + column + v * LANES
                    near = inner.index * (vectors * LANES) + v * LANES
                    code.store(code.load(self._at["b"], place), self._packed, near)
                    code.prefetch(self._at["b"], place + PANEL)
            groups = -(-p.rows // _MOST)
            few, more = divmod(p.rows, groups)
            for rows, count, start in ((few + 1, more, 0), (few, groups - more, more * (few + 1))):
                with code.loop(0, count) as group:
                    row = group.index * rows + start
                    self._multiply(row, rows, column, vectors, block)

    def _multiply(self, row: Index, rows: int, column: Index, vectors: int, block: int) -> None:
        """Compute some rows of a panel, as far as a block goes."""
        code, k, p = self._code, self._kernel, self._kernel.matmul
        left = code.at(self._at["a"], row * p.inner + block)
        out = code.at(self._at["c"], row * p.columns + column)
        places = [(r, v) for r in range(rows) for v in range(vectors)]
        with code.loop(0, k.depth, values=[code.zero()] * len(places)) as inner:
            right = [
                code.load(self._packed, inner.index * (vectors * LANES) + v * LANES)
                for v in range(vectors)
            ]
            here = code.at(left, inner.index)
            for r in range(rows):
                one = code.spread(here, r * p.inner)
                for v in range(vectors):
                    inner.after.append(code.fma(one, right[v], inner.values[r * vectors + v]))
        for (r, v), total in zip(places, inner.after, strict=True):
            self._put(total, out, r * p.columns + v * LANES, first=block == 0)

    def _put(self, total: Vector, out: str, place: int, *, first: bool) -> None:
        """Store a part of a sum, or add it to what is there."""
        code, k = self._code, self._kernel
        if not first:
            total = total + code.load(out, place)
        if k.streams:
            code.stream(total, out, place)
        else:
            code.store(total, out, place)
