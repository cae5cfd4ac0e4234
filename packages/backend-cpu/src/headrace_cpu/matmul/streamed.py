"""Kernels for a few rows times a matrix too large for the caches, written in LLVM's assembly.

Such a matmul takes as long as reading the matrix. A kernel that keeps rows of the result in
registers reads it in columns, a cache line or four from each of its rows: half of the memory's
speed. This one keeps a piece of some hundred columns of the result in the first cache, goes through
the matrix's rows, several at a time, and asks early for the next ones.

Measured on two cores with AVX-512, against oneDNN's primitive: [16, 9216] @ [9216, 4096] 8 to 9 ms
for 12, [16, 4096] @ [4096, 4096] 3.2 for 5, [4, 25088] @ [25088, 4096] 18 for 26; reading the
matrices alone takes 5, 1.5 and 13 ms.
"""

from __future__ import annotations

from headrace_cpu.matmul.blas import Matmul
from headrace_cpu.native.assembly import Assembly, Index, vector_bytes
from headrace_cpu.native.source import KernelSource

# Columns of a piece of the result: with 16 rows, it takes 16 KiB.
_PIECE = 256
_MOST_ROWS = 16
# A smaller matrix may be in the second caches.
_LEAST_BYTES = 8 << 20


def pays(matmul: Matmul, threads: int) -> bool:
    """Whether the kernel is quicker than others, with so many threads."""
    p = matmul
    if p.transposed_a or p.transposed_b or p.dtype != "float32" or not 2 < p.rows <= _MOST_ROWS:
        return False
    if p.columns % (_PIECE * threads) or p.inner % _depth():
        return False
    return 4 * p.inner * p.columns >= _LEAST_BYTES


def _depth() -> int:
    """Return how many rows of the matrix are multiplied at a time: they take half the registers."""
    return 8 if vector_bytes() == 64 else 4


def source(matmul: Matmul) -> KernelSource:
    """Return the kernel of a matmul for which it pays; OpenMP's threads share the columns.

    Its block has the addresses of a, b and c.
    """
    name = f"stream_{matmul.rows}x{matmul.inner}x{matmul.columns}"
    return KernelSource(name, _Writer(matmul).text(name), language="llvm")


class _Writer:
    """Writes one kernel."""

    def __init__(self, matmul: Matmul) -> None:
        self._matmul = matmul
        self._code = code = Assembly("float", vector_bytes() // 4)
        self._at = code.words(("a", "b", "c"))
        self._piece = code.local(matmul.rows * _PIECE)

    def text(self, name: str) -> str:
        """Return the module."""
        code, p = self._code, self._matmul
        _, first, last = code.part(p.columns // _PIECE)
        with code.loop(first, last) as piece:
            column = piece.index * _PIECE
            with code.loop(0, p.rows * _PIECE, code.lanes) as i:
                code.store(code.zero(), self._piece, i.index)
            with code.loop(0, p.inner, _depth()) as k, code.loop(0, _PIECE, 2 * code.lanes) as j:
                self._multiply(k.index, column, j.index)
            with code.loop(0, p.rows) as r, code.loop(0, _PIECE, code.lanes) as j:
                value = code.load(self._piece, r.index * _PIECE + j.index)
                code.store(value, self._at["c"], r.index * p.columns + column + j.index)
        return code.text(name)

    def _multiply(self, k: Index, column: Index, j: Index) -> None:
        """Add some rows of the matrix, two vectors of each, times their elements of ``a``."""
        code, p, depth = self._code, self._matmul, _depth()
        right = []
        for i in range(depth):
            place = (k + i) * p.columns + column + j
            for v in range(2):
                right.append(code.load(self._at["b"], place + v * code.lanes))
                # Of rows beyond the end nobody reads what is asked for.
                code.prefetch(self._at["b"], place + (depth * p.columns + v * code.lanes))
        with code.loop(0, p.rows) as r:
            left = code.at(self._at["a"], r.index * p.inner + k)
            place = r.index * _PIECE + j
            sums = [code.load(self._piece, place + v * code.lanes) for v in range(2)]
            for i in range(depth):
                factor = code.spread(left, i)
                sums = [code.fma(factor, right[2 * i + v], sums[v]) for v in range(2)]
            for v, total in enumerate(sums):
                code.store(total, self._piece, place + v * code.lanes)
