"""Passes without reductions, in CUDA C++: an element for each thread."""

from __future__ import annotations

from math import prod

from headrace_cuda.fusion.writer import SEVERAL, THREADS, Piece, Word, Writer, indented
from headrace_cuda.program.instruction import FAILED

# From so many elements on a thread works on several.
_MANY = 1 << 20


class MapWriter(Writer):
    """An element for each thread."""

    def write(self, guarded: bool) -> Piece:
        """Return the piece."""
        count = prod(self.sizes[d] for d in self.step.dims)
        several = SEVERAL if count >= _MANY else 1
        stores = []
        for root in self.step.roots:
            assert root.store is not None
            stores.append(self.store(root.store))
        # All is read before anything is stored: a variable may be both.
        work = [*self.decoded(self.step.dims, "n"), *self.row, *self.inner, *stores]
        first = f"const {self.index} first = ({self.index})block_x * {THREADS * several}"
        lines = [f"{first} + threadIdx.x;"]
        lines += [f"auto one = [&](const {self.index} n) {{", *indented(work), "};"]
        if several > 1:
            every = " ".join(f"one(first + {k * THREADS});" for k in range(several))
            lines += [f"if (first + {(several - 1) * THREADS} < {count}) {{ {every} }} else"]
        each = f"n < {count} && n < first + {several * THREADS}; n += {THREADS}"
        lines.append(f"for ({self.index} n = first; {each}) one(n);")
        changes = any(root.store is not None and root.store.update for root in self.step.roots)
        if guarded and changes:
            failed = self.parameters.pointer(Word(FAILED), "i32")
            lines = [f"if (!*{failed}) {{", *indented(lines), "}"]
        return Piece(lines, (-(-count // (THREADS * several)), 1), THREADS)
