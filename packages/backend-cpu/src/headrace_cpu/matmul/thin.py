"""Kernels for a large matrix times a few vectors, written in LLVM's assembly.

Such a product takes as long as reading the matrix, and BLAS reads it twice, copies it, or does so
on one thread. One of its operands or its result has a few rows or columns only: these are the
*vectors*. The other operand is the matrix, of which each line belongs to

* *an element of the results*: a line times each vector is summed up (``dots``), or to
* *an element of the vectors*: the line times that element is added to the results (``sums``).

Lines that are multiplied are taken from first to last and from last to first in turn: what a core
has read last of a matrix that is larger than its cache is what the next product reads first.

Sizes and strides are words of the block: one kernel serves all sizes, so that a processor compiles
each of them once. Threads share the products of a batch, else the elements of the results, else,
where these are few and the lines are long or many, what is summed up.

Measured on two cores with AVX-512, against BLAS: [1000, 1000] @ [1000, 1] 30 us for 270, the same
with the matrix transposed 33 for 700, [1, 128] @ [128, 128] 1.3 for 2.7.
"""

from __future__ import annotations

from headrace.extend.records import dataclass
from headrace_cpu.native.assembly import Assembly, Index, Vector, vector_bytes
from headrace_cpu.native.source import KernelSource

_ELEMENTS = {"float32": "float", "float64": "double"}
# More vectors than these are better cut as a matrix is.
MOST_VECTORS = 4
# What the words of a block are: addresses, and then numbers.
POINTERS = ("matrix", "vectors", "out", "scratch")
NUMBERS = (
    *("lines", "length", "line_step", "vector_step", "element_step", "out_vector_step"),
    *("out_element_step", "batch", "matrix_batch", "vectors_batch", "out_batch", "backwards"),
)
# Columns of results that are kept in the nearest cache while lines are added to them.
_PIECE_BYTES = 8192
# How far ahead elements of lines are asked for: processors look ahead within a page of memory only,
# and lines that are multiplied at a time begin one each. [1000, 1000] @ [1000, 1] took 36 us on one
# thread for 43 without.
_AHEAD_BYTES = 512


@dataclass(frozen=True, slots=True)
class Thin:
    """A kernel.

    Attributes:
        dots: Whether lines are multiplied by vectors and summed up; otherwise they are added up.
        vectors: How many vectors there are, up to ``MOST_VECTORS``.
        dtype: "float32" or "float64".
        shared_sums: Whether threads share what is summed up, and add their parts together.
        straight: Whether elements lie beside one another: of ``sums`` those of a result, of
            ``dots`` those of a vector. Otherwise scratch memory holds them so; of a batch only in
            ``sums``.
    """

    dots: bool
    vectors: int
    dtype: str
    shared_sums: bool = False
    straight: bool = True

    def source(self) -> KernelSource:
        """Return the kernel."""
        kind = "dots" if self.dots else "sums"
        shared = "_shared" if self.shared_sums else ""
        loose = "" if self.straight else "_loose"
        name = f"thin_{kind}{shared}{loose}_{self.vectors}_{self.dtype}"
        writer = _Dots(self) if self.dots else _Sums(self)
        return KernelSource(name, writer.text(name), language="llvm")

    def scratch(self, lines: int, length: int, threads: int) -> int:
        """Return how many bytes of scratch memory so many threads need."""
        size = 4 if self.dtype == "float32" else 8
        results = size * self.vectors * (lines if self.dots else length)
        straightened = 0 if self.straight else size * self.vectors * length
        return straightened + (results * threads if self.shared_sums else 0)


class _Writer:
    """What both kinds share: the words, and who does what."""

    def __init__(self, kernel: Thin) -> None:
        self.kernel = kernel
        self.size = 4 if kernel.dtype == "float32" else 8
        self.lanes = vector_bytes() // self.size
        self.code = code = Assembly(_ELEMENTS[kernel.dtype], self.lanes)
        self.at = code.words(POINTERS)
        self.n = code.numbers(NUMBERS, len(POINTERS))

    def text(self, name: str) -> str:
        """Return the module."""
        code, n, k = self.code, self.n, self.kernel
        units = self.units()
        self.prepare()
        if k.shared_sums:
            me, first, last = code.part(units)
            self.product(self.at["matrix"], self.at["vectors"], self.at["out"], first, last, me)
            return code.text(name)
        _, alone, behind = code.part(n["batch"])
        _, first, last = code.part(units)
        # Each thread gets products of the batch, or its part of every one.
        many = n["batch"].compared("sge", code.team())
        alone, behind = code.index(0).unless(many, alone), n["batch"].unless(many, behind)
        first, last = first.unless(many, 0), last.unless(many, units)
        with code.loop(alone, behind) as each:
            matrix = code.at(self.at["matrix"], each.index * n["matrix_batch"])
            vectors = code.at(self.at["vectors"], each.index * n["vectors_batch"])
            out = code.at(self.at["out"], each.index * n["out_batch"])
            self.product(matrix, vectors, out, first, last, code.index(0))
        return code.text(name)

    def prepare(self) -> None:
        """Do what comes before the first product."""

    def units(self) -> Index:
        """Return how many units of one product threads share."""
        raise NotImplementedError

    def product(
        self, matrix: str, vectors: str, out: str, first: Index, last: Index, me: Index
    ) -> None:
        """Compute the units of one product from ``first`` to below ``last``."""
        raise NotImplementedError


class _Dots(_Writer):
    """Each line times each vector is an element of a result."""

    @property
    def _group(self) -> int:
        """Lines that are multiplied at a time: enough sums to keep the processor busy."""
        wide = vector_bytes() == 64
        return {1: 8 if wide else 4, 2: 4}.get(self.kernel.vectors, 4 if wide else 2)

    def prepare(self) -> None:
        """Put the elements of each vector beside one another where they are not."""
        code, n, k = self.code, self.n, self.kernel
        if k.straight:
            return
        target = self.at["scratch"]
        _, first, last = code.part(n["length"])
        with code.loop(first, last) as element:
            for v in range(k.vectors):
                place = element.index * n["element_step"] + n["vector_step"] * v
                number = code.element_at(self.at["vectors"], place)
                code.put(number, target, n["length"] * v + element.index)
        code.barrier()
        self.at["vectors"], self.n["vector_step"] = target, n["length"]
        self.at["scratch"] = code.at(target, n["length"] * k.vectors)

    def units(self) -> Index:
        """Return the lines; their elements, in whole steps of a loop, where sums are shared."""
        n = self.n
        if not self.kernel.shared_sums:
            return n["lines"]
        return (n["length"] + (self._step - 1)) // self._step

    @property
    def _step(self) -> int:
        """Elements of a line that the loop for a single line takes in one turn."""
        return 4 * self.lanes

    def product(
        self, matrix: str, vectors: str, out: str, first: Index, last: Index, me: Index
    ) -> None:
        """Compute some elements of the results, or parts of all."""
        code, n, k = self.code, self.n, self.kernel
        if not k.shared_sums:
            groups = (last - first) // self._group
            back = n["backwards"].compared("ne", code.index(0))
            start = first.unless(back, first + (groups - 1) * self._group)
            step = code.index(self._group).unless(back, -self._group)
            with code.loop(0, groups) as group:
                line = start + group.index * step
                sums = self._lines(matrix, vectors, line, self._group)
                self._put(sums, out, line, self._group)
            with code.loop(first + groups * self._group, last) as line_at:
                sums = self._line(matrix, vectors, line_at.index, code.index(0), n["length"])
                self._put(sums, out, line_at.index, 1)
            return
        begin, end = first * self._step, (last * self._step).least(n["length"])
        mine = code.at(self.at["scratch"], me * n["lines"] * k.vectors)
        with code.loop(0, n["lines"]) as line_at:
            sums = self._line(matrix, vectors, line_at.index, begin, end)
            for v in range(k.vectors):
                code.put(code.total(sums[v]), mine, line_at.index * k.vectors + v)
        code.barrier()
        _joined(self, out)

    def _put(self, sums: list[Vector], out: str, line: Index, lines: int) -> None:
        """Store the sums of some lines: those of a line are beside one another."""
        code, n, k = self.code, self.n, self.kernel
        for i in range(lines):
            for v in range(k.vectors):
                place = (line + i) * n["out_element_step"] + n["out_vector_step"] * v
                code.put(code.total(sums[i * k.vectors + v]), out, place)

    def _lines(self, matrix: str, vectors: str, line: Index, lines: int) -> list[Vector]:
        """Multiply some lines by all vectors."""
        code, n, count = self.code, self.n, self.kernel.vectors
        starts = [code.at(matrix, (line + i) * n["line_step"]) for i in range(lines)]
        given = [code.at(vectors, n["vector_step"] * v) for v in range(count)]
        whole = n["length"] // self.lanes * self.lanes

        def turn(at: Index, sums: list[Vector], rest: Index | None) -> list[Vector]:
            factors = [code.load(each, at, rest) for each in given]
            made = []
            for i, start in enumerate(starts):
                row = code.load(start, at, rest)
                if rest is None:
                    # Of elements beyond the end nobody reads what is asked for.
                    code.prefetch(start, at + _AHEAD_BYTES // self.size)
                made += [code.fma(row, factors[v], sums[i * count + v]) for v in range(count)]
            return made

        with code.loop(0, whole, self.lanes, [code.zero()] * (lines * count)) as k:
            k.after = turn(k.index, k.values, None)
        return turn(whole, k.after, n["length"] - whole)

    def _line(
        self, matrix: str, vectors: str, line: Index, begin: Index, end: Index
    ) -> list[Vector]:
        """Multiply elements of one line by all vectors, four vectors of the processor at a time."""
        code, n, count = self.code, self.n, self.kernel.vectors
        start = code.at(matrix, line * n["line_step"])
        given = [code.at(vectors, n["vector_step"] * v) for v in range(count)]
        length = end - begin
        whole = begin + length // self._step * self._step

        def turn(at: Index, old: list[Vector], rest: Index | None) -> list[Vector]:
            row = code.load(start, at, rest)
            return [code.fma(row, code.load(given[v], at, rest), old[v]) for v in range(count)]

        with code.loop(begin, whole, self._step, [code.zero()] * (4 * count)) as k:
            for part in range(4):
                old = k.values[part * count : (part + 1) * count]
                k.after += turn(k.index + part * self.lanes, old, None)
        parts = k.after
        sums = [
            (parts[v] + parts[count + v]) + (parts[2 * count + v] + parts[3 * count + v])
            for v in range(count)
        ]
        with code.loop(whole, end, self.lanes, sums) as k:
            k.after = turn(k.index, k.values, end - k.index)
        return k.after


class _Sums(_Writer):
    """Lines, each times an element of a vector, are added to the results."""

    @property
    def _deep(self) -> int:
        """Lines that are added at a time: their factors stay in registers."""
        most = 16 if vector_bytes() == 64 else 8
        return min(8, most // self.kernel.vectors)

    def units(self) -> Index:
        """Return the vectors of the processor of a result; lines where sums are shared."""
        n = self.n
        if self.kernel.shared_sums:
            return n["lines"]
        return (n["length"] + (self.lanes - 1)) // self.lanes

    def product(
        self, matrix: str, vectors: str, out: str, first: Index, last: Index, me: Index
    ) -> None:
        """Compute some elements of the results, or parts of all."""
        code, n, k = self.code, self.n, self.kernel
        if k.shared_sums:
            mine = code.at(self.at["scratch"], me * n["length"] * k.vectors)
            zero = code.index(0)
            self._pieces(matrix, vectors, mine, n["length"], (zero, n["length"]), (first, last))
            code.barrier()
            _joined(self, out)
            return
        begin, end = first * self.lanes, (last * self.lanes).least(n["length"])
        lines = (code.index(0), n["lines"])
        if k.straight:
            self._pieces(matrix, vectors, out, n["out_vector_step"], (begin, end), lines)
            return
        self._pieces(matrix, vectors, self.at["scratch"], n["length"], (begin, end), lines)
        with code.loop(begin, end) as element:
            for v in range(k.vectors):
                number = code.element_at(self.at["scratch"], n["length"] * v + element.index)
                place = element.index * n["out_element_step"] + n["out_vector_step"] * v
                code.put(number, out, place)

    def _pieces(
        self,
        matrix: str,
        vectors: str,
        sums: str,
        step: Index,
        columns: tuple[Index, Index],
        lines: tuple[Index, Index],
    ) -> None:
        """Add lines to sums, piece by piece of their columns."""
        code, k = self.code, self.kernel
        size = 4 if k.dtype == "float32" else 8
        piece = _PIECE_BYTES // size
        with code.loop(*columns, piece) as part:
            begin, end = part.index, (part.index + piece).least(columns[1])
            with code.loop(begin, end, self.lanes) as j:
                for v in range(k.vectors):
                    place = step * v + j.index
                    code.store(code.zero(), sums, place, end - j.index)
            deep = self._deep
            groups = (lines[1] - lines[0]) // deep
            with code.loop(0, groups) as group:
                line = lines[0] + group.index * deep
                self._add(matrix, vectors, sums, step, (begin, end), line, deep)
            with code.loop(lines[0] + groups * deep, lines[1]) as single:
                self._add(matrix, vectors, sums, step, (begin, end), single.index, 1)

    def _add(
        self,
        matrix: str,
        vectors: str,
        sums: str,
        step: Index,
        columns: tuple[Index, Index],
        line: Index,
        lines: int,
    ) -> None:
        """Add some lines, each times its elements of the vectors."""
        code, n, count = self.code, self.n, self.kernel.vectors
        starts = [code.at(matrix, (line + i) * n["line_step"]) for i in range(lines)]
        factors = [
            [
                code.spread(vectors, (line + i) * n["element_step"] + n["vector_step"] * v)
                for i in range(lines)
            ]
            for v in range(count)
        ]
        begin, end = columns
        whole = begin + (end - begin) // self.lanes * self.lanes

        def turn(at: Index, rest: Index | None) -> None:
            rows = [code.load(start, at, rest) for start in starts]
            if rest is None and lines > 1:
                for start in starts:
                    # Of lines beyond the end nobody reads what is asked for.
                    code.prefetch(start, at + n["line_step"] * lines)
            for v in range(count):
                # Two sums at a time: each addition waits for the one before.
                totals = [code.load(sums, step * v + at, rest), code.zero()]
                for i, (row, factor) in enumerate(zip(rows, factors[v], strict=True)):
                    totals[i % 2] = code.fma(row, factor, totals[i % 2])
                total = totals[0] + totals[1] if lines > 1 else totals[0]
                code.store(total, sums, step * v + at, rest)

        with code.loop(begin, whole, self.lanes) as j:
            turn(j.index, None)
        with code.when(whole.compared("slt", end)):
            turn(whole, end - whole)


def _joined(writer: _Writer, out: str) -> None:
    """Add up what threads have summed up, thread by thread; all are behind a barrier."""
    code, n, k = writer.code, writer.n, writer.kernel
    elements = n["lines"] if k.dots else n["length"]
    # Where parts of the elements begin: of dots those of a line are beside one another.
    step_element, step_vector = (k.vectors, 1) if k.dots else (1, elements)
    _, first, last = code.part(elements)
    with code.loop(first, last) as element:
        for v in range(k.vectors):
            place = element.index * step_element + step_vector * v
            with code.loop(0, code.team(), values=[code.zero()]) as thread:
                at = thread.index * elements * k.vectors + place
                thread.after = [thread.values[0] + code.load(writer.at["scratch"], at, 1)]
            target = element.index * n["out_element_step"] + n["out_vector_step"] * v
            code.store(thread.after[0], out, target, 1)
