"""Kernels for products of a few rows that are a large matrix, written in LLVM's assembly.

Such is the gradient of a wide layer for a small batch, by itself or added to the layer's weights:
the matrix is far larger than the caches, and each of its elements is read and written for a few
multiplications. Libraries go through it in columns of a tile, which processors do not foresee, and
wait for memory. This kernel goes along the matrix's rows, twelve at a time, asks early for what
comes next, and keeps both factors in near caches: the right one in panels of two vectors, of the
left one the rows' part.

Each element is summed up from the first row to the last one, whatever the number of threads.

Measured on two cores with AVX-512 with the matrix in no cache, medians, in turns with oneDNN's
sgemm, on one thread and on two. Added to [3136, 1024]: 50 rows 2.6 ms for 4.1 and 1.5 for 2.1, 25
rows 1.7 for 2.6 and 1.0 for 1.7; to [9216, 4096]: 16 rows 13.1 for 16.8 and 7.1 for 9.3. By itself,
with Adam's update of [3136, 1024] after it on one thread: 50 rows 5.9 for 8.0, 25 rows 5.2 for 5.3.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import Assembly, Index, vector_bytes
from headrace_cpu.native.source import KernelSource

LANES = vector_bytes() // 4
_PANEL = 2 * LANES
# Rows of the matrix that are kept in registers, two vectors each.
_MOST = 12 if LANES == 16 else 6
# How many panels ahead the matrix is asked for.
_AHEAD = 2
_WORDS = ("a", "b", "c", "alpha", "scratch", "counter")
# A larger right factor is in no near cache, nor is a deeper part of the left one. Narrow matrices
# have few panels for what each group of rows costs.
_MOST_BYTES, _NARROWEST = 512 << 10, 256
_FEWEST, _DEEPEST = 4, 128


def pays(matmul: Matmul) -> bool:
    """Whether the kernel is quicker than others."""
    p = matmul
    if not p.wide or p.dtype != "float32" or LANES < 8 or not _FEWEST <= p.inner <= _DEEPEST:
        return False
    if p.columns % LANES or p.columns < _NARROWEST:
        return False
    return 4 * p.inner * p.columns <= _MOST_BYTES


@dataclass(frozen=True, slots=True)
class Outer:
    """A kernel of ``c = transpose(a) @ b``, or of ``c += alpha * (transpose(a) @ b)``.

    Attributes:
        matmul: The sizes.
        accumulate: Whether it adds to what is there.
    """

    matmul: Matmul
    accumulate: bool

    @property
    def own(self) -> int:
        """Elements of scratch memory that each thread has for itself: the right factor."""
        return self.matmul.inner * self.matmul.columns

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        return 4 * threads * self.own

    def source(self) -> KernelSource:
        """Return the kernel."""
        p = self.matmul
        kind = "outer_add" if self.accumulate else "outer"
        name = f"{kind}_{p.rows}x{p.inner}x{p.columns}"
        return KernelSource(name, _Writer(self).text(name), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: Outer) -> None:
        self._kernel = kernel
        self._matmul = kernel.matmul
        self._code = code = Assembly("float", LANES)
        self._at = code.words(_WORDS)
        self._scale = code.spread(self._at["alpha"]) if kernel.accumulate else None
        self._left = code.local(kernel.matmul.inner * LANES)

    def text(self, name: str) -> str:
        """Return the module."""
        code, p = self._code, self._matmul
        me, _, _ = code.part(1)
        self._packed = code.at(self._at["scratch"], me * self._kernel.own)
        whole, rest = divmod(p.columns, _PANEL)
        with code.loop(0, whole) as panel:
            self._pack(panel.index, 2)
        if rest:
            self._pack(code.index(whole), 1)
        groups = -(-p.rows // _MOST)
        few, more = divmod(p.rows, groups)
        with code.taken(self._at["counter"], groups) as turn:
            # Loops of one turn or none: the first groups have a row more than the others.
            if more:
                with code.loop(turn, (turn + 1).least(more)) as group:
                    self._rows(group.index * (few + 1), few + 1)
            with code.loop(turn.most(more), turn + 1) as group:
                self._rows(group.index * few + more, few)
        return code.text(name)

    def _pack(self, panel: Index, vectors: int) -> None:
        """Copy a panel of the right factor to scratch memory."""
        code, p = self._code, self._matmul
        target = code.at(self._packed, panel * (p.inner * _PANEL))
        with code.loop(0, p.inner) as k:
            for v in range(vectors):
                value = code.load(self._at["b"], k.index * p.columns + panel * _PANEL + v * LANES)
                code.store(value, target, k.index * (vectors * LANES) + v * LANES)

    def _rows(self, row: Index, rows: int) -> None:
        """Compute some rows of the matrix."""
        code, p = self._code, self._matmul
        with code.loop(0, p.inner) as k:
            part = code.load(self._at["a"], k.index * p.rows + row, rows)
            code.store(part, self._left, k.index * LANES)
        out = code.at(self._at["c"], row * p.columns)
        whole, rest = divmod(p.columns, _PANEL)
        with code.loop(0, whole) as panel:
            self._panel(out, panel.index, rows, 2)
        if rest:
            self._panel(out, code.index(whole), rows, 1)

    def _panel(self, out: str, panel: Index, rows: int, vectors: int) -> None:
        """Compute some rows of a panel."""
        code, p = self._code, self._matmul
        right_at = code.at(self._packed, panel * (p.inner * _PANEL))
        places = [(r, v) for r in range(rows) for v in range(vectors)]
        here = panel * _PANEL
        for r, v in places:
            # Behind the last panel these are places of rows that come next, or of nothing.
            code.prefetch(out, here + (r * p.columns + v * LANES + _AHEAD * _PANEL))
        with code.loop(0, p.inner, values=[code.zero()] * len(places)) as k:
            near = k.index * (vectors * LANES)
            right = [code.load(right_at, near + v * LANES) for v in range(vectors)]
            left = code.at(self._left, k.index * LANES)
            for r in range(rows):
                one = code.spread(left, r)
                for v in range(vectors):
                    k.after.append(code.fma(one, right[v], k.values[r * vectors + v]))
        for (r, v), total in zip(places, k.after, strict=True):
            place = here + (r * p.columns + v * LANES)
            if self._scale is not None:
                total = code.fma(self._scale, total, code.load(out, place))
            code.store(total, out, place)
