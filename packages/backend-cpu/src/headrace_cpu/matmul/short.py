"""Kernels for matmuls of some rows with a matrix that fits in near caches.

A recurrent network multiplies a small batch by the same weights in each of its steps. Libraries
spend about as much on such a matmul's surroundings as on the matmul: they pack operands, and cut
the work for larger sizes. This kernel takes 32 columns of the result at a time, with all its rows;
a block of the matrix is copied to the nearest cache by the first group of rows, while it is used.
A matrix that many matmuls share is packed before (see ``packed``), and lies in cache lines that
follow one another.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.native.assembly import Assembly, Index, Vector, vector_bytes
from headrace_cpu.native.source import KernelSource

LANES = vector_bytes() // 4
_WORDS = ("a", "b", "c", "bias", "addend", "scratch")
# Rows of the result that are kept in registers, two vectors each.
_MOST = 12 if LANES == 16 else 6
# Rows of the matrix in a block: with two vectors each, half of the nearest cache. Sizes that cannot
# be divided so are taken whole.
_DEEPEST, _SHALLOWEST = 256, 64
# The matrix is asked for so many rows early: a third less time where it is in a second cache.
_AHEAD = 16


@dataclass(frozen=True, slots=True)
class Short:
    """What a kernel computes: ``c = a @ b + bias + addend``, perhaps without negative numbers.

    Attributes:
        rows: Rows of ``a`` and ``c``.
        inner: Columns of ``a``.
        columns: Columns of ``c``, a multiple of the lanes of a vector.
        transposed: Whether ``b`` is [columns, inner].
        bias: Whether a row is added to all rows.
        addend: Whether a matrix is added.
        relu: Whether negative results become 0.
    """

    rows: int
    inner: int
    columns: int
    transposed: bool = False
    packed: bool = False
    bias: bool = False
    addend: bool = False
    relu: bool = False

    @property
    def depth(self) -> int:
        """Rows of the matrix in a block."""
        step = LANES if self.transposed else 1
        fitting = [d for d in range(_DEEPEST, _SHALLOWEST - 1, -1) if d % step == 0]
        return next((d for d in fitting if self.inner % d == 0), self.inner)

    @property
    def groups(self) -> tuple[int, ...]:
        """How many rows are kept in registers, one group after the other."""
        count = -(-self.rows // _MOST)
        few, more = divmod(self.rows, count)
        return (few + 1,) * more + (few,) * (count - more)

    @property
    def own(self) -> int:
        """Elements of scratch memory that each thread has for itself."""
        return 0 if self.packed else self.depth * 2 * LANES

    def scratch(self, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        return 4 * threads * self.own

    @property
    def words(self) -> tuple[str, ...]:
        """What the words of the kernel's block are the addresses of; scratch memory is last."""
        return _WORDS

    @property
    def flops(self) -> int:
        """Floating-point operations."""
        return 2 * self.rows * self.inner * self.columns

    @property
    def title(self) -> str:
        """What it is."""
        return f"a kernel for {self.rows} rows times a matrix in near caches"

    def source(self) -> KernelSource:
        """Return the kernel."""
        layout = "transposed_" if self.transposed else "packed_" if self.packed else ""
        name = f"short_{layout}{self.rows}x{self.inner}x{self.columns}"
        return KernelSource(name, _Writer(self).text(name), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, kernel: Short) -> None:
        self._kernel = kernel
        self._code = code = Assembly("float", LANES)
        self._at = code.words(_WORDS)

    def text(self, name: str) -> str:
        """Return the module."""
        code = self._code
        me, first, last = code.part(self._kernel.columns // LANES)
        self._packed = code.at(self._at["scratch"], me * self._kernel.own)
        pairs = (last - first) // 2
        with code.loop(0, pairs) as pair:
            self._panel((first + pair.index * 2) * LANES, 2)
        with code.loop(first + pairs * 2, last) as single:
            self._panel(single.index * LANES, 1)
        return code.text(name)

    def _panel(self, column: Index, vectors: int) -> None:
        """Compute some columns of the result."""
        code, k = self._code, self._kernel
        self._begin(column, vectors)
        with code.loop(0, k.inner, k.depth) as block:
            if k.transposed:
                self._pack(block.index, column, vectors)
            start = 0
            for number, rows in enumerate(k.groups):
                self._multiply(block.index, column, vectors, (start, rows), number)
                start += rows
        if k.relu:
            with code.loop(0, k.rows) as r:
                for v in range(vectors):
                    place = r.index * k.columns + column + v * LANES
                    code.store(code.relu(code.load(self._at["c"], place)), self._at["c"], place)

    def _begin(self, column: Index, vectors: int) -> None:
        """Store what is added to the matmul."""
        code, k = self._code, self._kernel
        with code.loop(0, k.rows) as r:
            for v in range(vectors):
                place = r.index * k.columns + column + v * LANES
                value = code.zero()
                if k.bias:
                    value = code.load(self._at["bias"], column + v * LANES)
                if k.addend:
                    value = value + code.load(self._at["addend"], place)
                code.store(value, self._at["c"], place)

    def _pack(self, block: Index, column: Index, vectors: int) -> None:
        """Copy a block of a transposed matrix, row by row of the one that is meant."""
        code, k = self._code, self._kernel
        with code.loop(0, k.depth, LANES) as inner:
            for v in range(vectors):
                corner = (column + v * LANES) * k.inner + block + inner.index
                rows = [code.load(self._at["b"], corner + i * k.inner) for i in range(LANES)]
                for i, row in enumerate(code.transposed(rows)):
                    place = (inner.index + i) * (vectors * LANES) + v * LANES
                    code.store(row, self._packed, place)

    def _multiply(
        self, block: Index, column: Index, vectors: int, group: tuple[int, int], number: int
    ) -> None:
        """Add the matmul of some rows and a block of the matrix."""
        code, k = self._code, self._kernel
        start, rows = group
        out = code.at(self._at["c"], column + start * k.columns)
        left = code.at(self._at["a"], block + start * k.inner)
        places = [(r, v) for r in range(rows) for v in range(vectors)]
        sums = [code.load(out, r * k.columns + v * LANES) for r, v in places]
        with code.loop(0, k.depth, values=sums) as inner:
            row = self._row(block, inner.index, column, vectors, first=number == 0)
            here = code.at(left, inner.index)
            for r in range(rows):
                one = code.spread(here, r * k.inner)
                for v in range(vectors):
                    inner.after.append(code.fma(one, row[v], inner.values[r * vectors + v]))
        for (r, v), total in zip(places, inner.after, strict=True):
            code.store(total, out, r * k.columns + v * LANES)

    def _row(
        self, block: Index, inner: Index, column: Index, vectors: int, *, first: bool
    ) -> list[Vector]:
        """Load some columns of a row of the matrix; the first group of rows gets them near."""
        code, k = self._code, self._kernel
        row = []
        for v in range(vectors):
            near = inner * (vectors * LANES) + v * LANES
            if k.packed:
                place = (column + v * LANES) * k.inner + (block + inner) * LANES
                row.append(code.load(self._at["b"], place))
                if first:
                    code.prefetch(self._at["b"], place + _AHEAD * LANES)
            elif k.transposed or not first:
                row.append(code.load(self._packed, near))
            else:
                far = (block + inner) * k.columns + column + v * LANES
                row.append(code.load(self._at["b"], far))
                code.prefetch(self._at["b"], far + _AHEAD * k.columns)
                if len(k.groups) > 1:
                    code.store(row[-1], self._packed, near)
        return row
