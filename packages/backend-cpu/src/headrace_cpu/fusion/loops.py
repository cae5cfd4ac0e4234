"""The loops of one nest, as lines of Python."""

from __future__ import annotations

import re
from dataclasses import replace

from headrace_cpu.fusion.constants import ELEMENTARY
from headrace_cpu.fusion.nodes import BYTES, FLOATS
from headrace_cpu.fusion.schedule import Nest, Root
from headrace_cpu.fusion.space import Value
from headrace_cpu.fusion.writer import Memory, Writer

# Sums are accumulated in the dtype for so many elements, and then in float64.
_CHUNK = 1024
# Rows of so many elements are worked on in vectors of their own, shorter ones side by side.
# Measured for 1.28 million float32: sums of rows of 8 took 96 us for 335, of 64 56 us for 309,
# their softmax 1.0 ms for 5.9. NumPy adds fewer than eight numbers in their order, as those side by
# side do: steps before kernels are compiled, and after, agree to the bit.
_WIDE = 8
# Of rows in several phases, what does not fill a vector costs as much as one that is full, where
# functions are computed. Softmax of 6400 rows of 12 took 120 us, and 67 side by side, of 20 283 and
# 109; but to compile that takes a second.
_WIDE_FUNCTIONS = 17
# Where functions are computed, the last steps of a row that do not fill a vector are one with
# gaps, behind a loop that takes one vector at a time: exp of rows of 150 took 0.18 ns an element,
# and 0.29 where all of the loop's vectors could have gaps. A row that is reduced has two sums to
# join then, and what it stores cannot be read at once: there must be so many steps left, and the
# row be shorter than this. Softmax of 6400 rows took, with steps by themselves and without, of 30
# 482 and 314 us, of 63 868 and 551, of 150 890 and 827; of 33 279 and 288.
_LONG_ROW, _LANES, _REST = 160, 16, 4
# Loops of more steps than this LLVM does not unroll before it makes vectors of them, copies
# included: of 2400 rows of 64 bytes these took 36 us unrolled, and 5 in vectors. Of 6400 rows
# of 12 and 24 float32, a sum of two products took 44 and 85 us unrolled, and 11 and 17 in vectors.
_UNROLLED = 64
# Rows of up to so many elements are counted together where so many follow one another.
_SHORT_ROW, _MANY_ROWS = 16, 16
# A reduction of so many rows takes all of them in one step along a row: what it has so far is in
# registers, and not in memory that waits for the row before. The largest of 16 x 12 rows of 12
# float32 took 1.4 us row by row, and takes 0.7; the sums of 300 x 6 rows of 33 took 32, and 8.5.
_FEWEST_TOGETHER, _MOST_TOGETHER = 3, 16
# Folds whose order matters, of functions that LLVM may call in any.
_IN_ORDER = {"total": "+", "product": "*"}
# Flat ranges are shared among threads in whole cache lines.
_SHARE = 64


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line for line in lines]


def _of_steps(lines: list[str], count: int) -> list[str]:
    """Return the lines of a loop over a row as those of its steps, one step after the other."""
    # What names the step, and what each step has of its own, end with it.
    marked = [re.sub(r"\bj\b", "\0", re.sub(r"\b(v\d+)\b", "\\1_\0", line)) for line in lines]
    return [line.replace("\0", str(step)) for step in range(count) for line in marked]


def _is_extreme(reduction: Value) -> bool:
    """Whether a reduction takes the largest or smallest float: NaN is folded by itself.

    A comparison that knows NaN takes five instructions, each of which waits for the one before.
    """
    return reduction.name in ("largest", "smallest") and reduction.code in FLOATS


def shared_rows(rows: str) -> list[str]:
    """Return what finds a thread's share of rows."""
    return [
        f"rows = {rows}",
        "first = divided(rows * thread, threads)",
        "last = divided(rows * (thread + 1), threads)",
    ]


class NestWriter:
    """Writes one nest.

    Lines belong to a row, before or after an inner loop, or to the inner loop of a phase. Stores
    come after all that is computed beside them: what is updated in place was read then.
    """

    def __init__(self, writer: Writer, nest: Nest, number: int) -> None:
        self.writer = writer
        self.nest = nest
        self.number = number
        self.inner = nest.dims[-1] if nest.dims else None
        self.outer = nest.dims[:-1]
        self.banded = number in writer.schedule.bands
        phases = nest.phases
        # Whether rows should go side by side: LLVM sees that only where they have one address, and
        # a place each. And whether the steps of a row are written one by one: what a phase hands
        # to the next is in registers then, where in memory the next row would overwrite it.
        self.beside = self._goes_beside()
        self.apart = self.beside and phases > 1
        # Over how many rows at once a nest reduces, 0 for one after the other; and what is left of
        # the dimensions outside of a row.
        self.together = self._taken_together()
        self.rows_of = self.outer[:-1] if self.together else self.outer
        self.row: list[list[str]] = [[] for _ in range(phases + 1)]
        self.row_stores: list[list[str]] = [[] for _ in range(phases + 1)]
        self.before: list[str] = []
        self.after: list[str] = []
        self.row_names: dict[Value, str] = {}
        self.row_bases: dict[tuple[str, tuple[str, ...]], str] = {}
        self.names: dict[Value, str] = {}
        self.phase = 0
        # Bytes of what the inner loop of the phase reduces into memory, 0 for nothing.
        self.accumulates = 0
        self.lines: list[str] = []
        self.loops: list[list[str]] = []

    def _goes_beside(self) -> bool:
        """Whether rows are too short for vectors of their own."""
        inner, sizes = self.inner, self.writer.sizes
        if inner is None or sizes[inner] >= _WIDE:
            return inner is not None and sizes[inner] < _WIDE_FUNCTIONS and self._has_functions()
        return True

    def _taken_together(self) -> int:
        """Return how many rows a reduction takes at once, 0 where it takes one by one."""
        if self.inner is None or self.beside or len(self.outer) <= self.banded:
            return 0
        reduced, roots = self.outer[-1], self.nest.roots
        if self.nest.phases > 1 or any(root.in_row or not root.reduces for root in roots):
            return 0
        over = [root.value.over for root in roots]
        fits = all(reduced in dims and self.inner not in dims for dims in over)
        size, short = self.writer.sizes[reduced], self.writer.sizes[self.inner] <= _UNROLLED
        return size if fits and short and _FEWEST_TOGETHER <= size <= _MOST_TOGETHER else 0

    def _has_functions(self) -> bool:
        """Whether several phases compute functions, which take most of the time, along rows."""
        values = self.writer.schedule.space.values
        return self.nest.phases > 1 and any(
            value.name in ELEMENTARY and self.inner in value.dims for value in values
        )

    def write(self) -> list[str]:
        """Return the lines of the nest; of one in a band, those of one step of the band."""
        for phase in range(self.nest.phases + 1):
            self.phase = phase
            self._row_roots(phase)
            if phase < self.nest.phases:
                self.loops.append(self._inner_loop(phase))
        return self._assemble()

    # -- values

    def value(self, value: Value) -> str:
        """Return the name of a value, with the lines that compute it."""
        if value.kind == "const":
            return self.writer.literal(value)
        if self.inner is None or self.inner not in value.dims:
            return self._row_value(value)
        known = self.names.get(value)
        if known is not None:
            return known
        return self._compute(value, self.names, self.lines, "v")

    def _row_value(self, value: Value) -> str:
        known = self.row_names.get(value)
        if known is not None:
            return known
        return self._compute(value, self.row_names, self.row[self.phase], "r")

    def _compute(self, value: Value, names: dict[Value, str], lines: list[str], kind: str) -> str:
        name = f"{kind}{value.number}"
        root = self.writer.schedule.roots.get(value)
        if root is not None and self.apart and self._is_of_step(root):
            # Each step of a phase before has a variable of its own.
            names[value] = name
            return name
        if root is not None and (root.reduces or self._computed_before(root)):
            expression = self._from_home(value)
        elif value.kind == "load":
            self.writer.loads.append((self.number, self.phase, value))
            expression = self.load(self.writer.memory_of_load(value))
        elif value.kind == "index":
            dim = value.dims[0]
            place = "j" if dim == self.inner else f"i{dim}"
            expression = f"to_{value.code}({place})"
        else:
            expression = self.writer.mapped(value, [self.value(arg) for arg in value.args])
        lines.append(f"{name} = {expression}")
        names[value] = name
        return name

    def _is_of_step(self, root: Root) -> bool:
        """Whether a value was computed in an earlier phase of this row, for each of its steps."""
        before = root.nest == self.number and root.phase < self.phase
        return before and not root.reduces and not root.in_row

    def _computed_before(self, root: Root) -> bool:
        return root.nest != self.number or root.phase < self.phase

    def _from_home(self, value: Value) -> str:
        memory = self.writer.homes[value]
        root = self.writer.schedule.roots[value]
        schedule = self.writer.schedule
        elsewhere = root.nest != self.number and root.nest not in schedule.bands
        if root.reduces and elsewhere and not schedule.by_row(value):
            # Threads' parts were joined in that of the first.
            memory = replace(memory, base=f"{memory.base}_all")
        text = self.load(memory)
        return text if memory.code == value.code else f"to_{value.code}({text})"

    # -- memory

    def place(self, memory: Memory) -> tuple[str, str]:
        """Return the address of a row of memory, and the index within it."""
        terms = []
        for dim in memory.dims:
            if dim != self.inner:
                stride = memory.strides[dim]
                terms.append(f"i{dim} * {stride}" if stride else f"i{dim}")
        base = memory.base
        index = "0"
        if self.inner is not None and self.inner in memory.dims:
            stride = memory.strides[self.inner]
            index = f"j * {stride}" if stride else "j"
        if self.beside:
            return base, " + ".join([*terms, index])
        if terms:
            key = (base, tuple(terms))
            known = self.row_bases.get(key)
            if known is None:
                known = f"{base}_r{len(self.row_bases)}"
                offset = " + ".join(terms)
                self.row[0].insert(0, f"{known} = {base} + ({offset}) * {BYTES[memory.code]}")
                self.row_bases[key] = known
            base = known
        return base, index

    def load(self, memory: Memory) -> str:
        """Return the expression of an element of memory."""
        base, index = self.place(memory)
        return f"load_{memory.code}({base}, {index}, {memory.scope})"

    def store(self, memory: Memory, name: str) -> str:
        """Return the statement that stores an element."""
        base, index = self.place(memory)
        return f"store_{memory.code}({base}, {index}, {name}, {memory.scope})"

    # -- roots

    def _row_roots(self, phase: int) -> None:
        self.lines = self.row[phase]
        for root in self.nest.roots:
            if not root.in_row or root.phase != phase:
                continue
            stores = self.row_stores[phase]
            if root.store is not None:
                name = self.value(root.value)
                if root.store.tensor is None:
                    stores += self.writer.report(root.store, name)
                else:
                    stores.append(self.store(self.writer.memory_of_store(root.store), name))
            elif root.reduces:
                self._accumulate_row(root.value, self.value(root.value.args[0]), stores)
            else:
                name = self._row_kept(root.value)
                if root.value in self.writer.homes:
                    stores.append(self.store(self.writer.homes[root.value], name))

    def _row_kept(self, value: Value) -> str:
        return self._row_value(value)

    def _accumulate_row(self, reduction: Value, name: str, lines: list[str]) -> None:
        """Reduce one more element into the accumulator in memory."""
        memory = self.writer.homes[reduction]
        if memory.code != reduction.code:
            name = f"to_{memory.code}({name})"
        lines.append(self.store(memory, self.writer.further(reduction, self.load(memory), name)))
        self._begin(reduction)

    def _begin(self, reduction: Value) -> None:
        """Set an accumulator to its identity before the nest, and join those of threads after."""
        writer, memory = self.writer, self.writer.homes[reduction]
        count = writer.product(memory.dims)
        start = writer.identity(reduction, memory.code)
        code, scope, base = memory.code, memory.scope, memory.base
        if self.banded:
            # The accumulators of one step along the outermost dimension, which is one thread's.
            count = writer.product(memory.dims[1:])
            self.before += [
                f"begin = {base} + i{self.outer[0]} * {count} * {BYTES[code]}",
                f"for k in range({count}):",
                f"    store_{code}(begin, k, {start}, {scope})",
            ]
            return
        self.before += [
            f"for k in range({count}):",
            f"    store_{code}({base}, k, {start}, {scope})",
        ]
        part = f"{base}_all + t * {base}_size"
        first = f"load_{code}({base}, k, {scope})"
        self.after += [
            "for t in range(1, threads):",
            f"    part = {part}",
            f"    for k in range({count}):",
            f"        other = load_{code}(part, k, {scope})",
            f"        store_{code}({base}, k, {reduction.name}({first}, other), {scope})",
        ]

    def _inner_loop(self, phase: int) -> list[str]:
        self.lines, self.names = [], {}
        lines, roots = self.lines, []
        for root in self.nest.roots:
            if not root.in_row and root.phase == phase:
                argument = root.value.args[0] if root.reduces else root.value
                roots.append((root, self.value(argument)))
        stores: list[str] = []
        registers: list[Value] = []
        self.accumulates = 0
        for root, name in roots:
            value = root.value
            if root.store is not None:
                stores.append(self.store(self.writer.memory_of_store(root.store), name))
            elif not root.reduces:
                kept = not self.apart or value in self.writer.schedule.distant
                if kept and value in self.writer.homes:
                    stores.append(self.store(self.writer.homes[value], name))
            elif self.inner in value.over:
                registers.append(value)
                stores += self._folded(value, name)
            else:
                memory = self.writer.homes[value]
                whole = self.writer.further(value, self.load(memory), name)
                if self.together and value.name in _IN_ORDER:
                    # As from row to row: LLVM may not join those of several rows first.
                    whole = f"{self.load(memory)} {_IN_ORDER[value.name]} {name}"
                stores.append(self.store(memory, whole))
                self._begin(value)
                self.accumulates = max(self.accumulates, BYTES[memory.code])
        for value in registers:
            self._finish_register(value, phase)
        return self._looped(lines + stores, registers)

    def _folded(self, reduction: Value, name: str) -> list[str]:
        """Return what takes one more element into the register of a reduction."""
        so_far = f"f{reduction.number}"
        if not _is_extreme(reduction):
            return [f"{so_far} = {reduction.name}({so_far}, {name})"]
        missing = f"q{reduction.number}"
        return [
            f"{so_far} = {reduction.name}_number({so_far}, {name})",
            f"{missing} = either({missing}, is_nan({name}))",
        ]

    def _start(self, reduction: Value) -> list[str]:
        """Return what sets the register of a reduction to its identity."""
        identity = self.writer.identity(reduction, reduction.code)
        lines = [f"f{reduction.number} = {identity}"]
        if _is_extreme(reduction):
            lines.append(f"q{reduction.number} = {self.writer.constant('b8', 'False')}")
        return lines

    def _finish_register(self, reduction: Value, phase: int) -> None:
        """Take a reduction out of its register after the inner loop."""
        lines = self.row[phase + 1]
        name = f"f{reduction.number}"
        if _is_extreme(reduction):
            nan = self.writer.constant(reduction.code, "'nan'")
            lines.append(f"{name} = where(q{reduction.number}, {nan}, {name})")
        if not self.writer.schedule.by_row(reduction):
            self._accumulate_register(reduction, name, lines)
            return
        row = f"r{reduction.number}"
        wide = self._chunked(reduction)
        lines.append(
            f"{row} = to_{reduction.code}(w{reduction.number})" if wide else f"{row} = {name}"
        )
        self.row_names[reduction] = row
        if reduction in self.writer.homes:
            self.row_stores[phase + 1].append(self.store(self.writer.homes[reduction], row))

    def _accumulate_register(self, reduction: Value, name: str, lines: list[str]) -> None:
        memory = self.writer.homes[reduction]
        if self._chunked(reduction):
            name = f"w{reduction.number}"
        elif memory.code != reduction.code:
            name = f"to_{memory.code}({name})"
        lines.append(self.store(memory, self.writer.further(reduction, self.load(memory), name)))
        self._begin(reduction)

    # -- loops

    def _chunked(self, reduction: Value) -> bool:
        assert self.inner is not None
        return (
            reduction.name == "total"
            and reduction.code in FLOATS
            and self.inner not in self.writer.baked
        )

    def _looped(self, lines: list[str], registers: list[Value]) -> list[str]:
        assert self.inner is not None
        begin = [line for reduction in registers for line in self._start(reduction)]
        if self.apart:
            return [*begin, *_of_steps(lines, self.writer.sizes[self.inner])]
        if self.together:
            lines = self._of_rows(lines)
            return self._with_gaps("vectors", "0", self.writer.size(self.inner), lines)
        chunked = [reduction for reduction in registers if self._chunked(reduction)]
        first, last = ("0", self.writer.size(self.inner)) if self._whole() else ("first", "last")
        loop = "full_" * self._is_mixed()
        loop += "vectors" if not chunked and self._in_vectors(registers) else "range"
        if not chunked:
            return [*begin, *self._stepped(loop, first, last, lines, registers)]
        zero = self.writer.constant("f64", "0")
        restart = [line for each in chunked for line in self._start(each)]
        once = [line for each in registers if each not in chunked for line in self._start(each)]
        add = [f"w{f.number} = w{f.number} + to_f64(f{f.number})" for f in chunked]
        end = f"minimum(chunk + {_CHUNK}, {last})"
        return [
            *once,
            *(f"w{reduction.number} = {zero}" for reduction in chunked),
            f"for chunk in range({first}, {last}, {_CHUNK}):",
            *_indented(restart),
            *_indented(self._stepped(loop, "chunk", end, lines, registers)),
            *_indented(add),
        ]

    def _stepped(
        self, loop: str, first: str, last: str, lines: list[str], registers: list[Value]
    ) -> list[str]:
        """Return the loop over a row, or two where what does not fill a vector is one with gaps."""
        if not self._folds(bool(registers)):
            return [f"for j in {loop}({first}, {last}):", *_indented(lines)]
        return self._with_gaps(loop, first, last, lines)

    def _with_gaps(self, loop: str, first: str, last: str, lines: list[str]) -> list[str]:
        """Return a loop of whole vectors, and one of a vector with gaps."""
        body = _indented(lines)
        return [
            f"end = {last}",
            f"rest = end - remaining(end - {first}, {_LANES})",
            f"for j in even_{loop}({first}, rest):",
            *body,
            f"for j in folded_{loop}(rest, end):",
            *body,
        ]

    def _of_rows(self, lines: list[str]) -> list[str]:
        """Return lines for each of the rows that are taken at once, one row after the other."""
        own = [re.escape(x.partition(" = ")[0]) for x in [*self.row[0], *lines] if " = " in x]
        names, place = re.compile(rf"\b({'|'.join(own)})\b"), rf"\bi{self.outer[-1]}\b"
        return [
            re.sub(place, str(row), names.sub(rf"\1_{row}", line))
            for row in range(self.together)
            for line in lines
        ]

    def _in_vectors(self, registers: list[Value]) -> bool:
        """Whether the steps of a row become vectors.

        Unrolled, a row would be no loop any more, and vectors be made across rows, which gathers
        their elements one by one.
        """
        assert self.inner is not None
        size = self.writer.sizes[self.inner]
        if self.nest.phases == 1 and not registers:
            if self.accumulates:
                return self._adds_vectors()
            return _WIDE <= size <= _UNROLLED
        return size >= _WIDE

    def _adds_vectors(self) -> bool:
        """Whether rows are added to memory in vectors.

        Unrolled, what is added to stays in registers from row to row. Where it is most of a vector,
        or not much more than one, that is slower all the same: 90 000 float32, in rows of 16 to 24,
        took 24 us, and 7 in vectors.
        """
        assert self.inner is not None
        size, lanes = self.writer.sizes[self.inner], _LANES * 4 // self.accumulates
        most = _UNROLLED if self._has_elementary() else lanes * 3 // 2
        return _WIDE <= size <= most and (size >= lanes or 2 * size == lanes)

    def _has_elementary(self) -> bool:
        return any(value.name in ELEMENTARY for value in self.names)

    def _folds(self, reduces: bool) -> bool:
        """Whether the last steps of a row, which do not fill a vector, are one with gaps.

        One by one, a few functions take as long as all vectors of a row.
        """
        assert self.inner is not None
        size = self.writer.sizes[self.inner]
        if not self.outer:
            return False
        if not self._has_elementary():
            one_phase = self.nest.phases == 1 and not reduces
            return one_phase and bool(self.accumulates) and self._adds_vectors()
        return (size < _LONG_ROW and size % _LANES >= _REST) if reduces else size < _CHUNK

    def _is_mixed(self) -> bool:
        """Whether functions of float32 are computed beside what has 64 bits.

        Vectors would have as many steps as of these fit into one, and functions, which take most of
        the time, half of the lanes that they could have.
        """
        functions = {value.code for value in self.names if value.name in ELEMENTARY}
        wide = any(value.kind == "load" and BYTES[value.code] == 8 for value in self.names)
        return wide and functions == {"f32"}

    def _whole(self) -> bool:
        """Whether a thread that works on a row works on the whole of it."""
        return bool(self.outer) or self.inner in self.writer.baked

    def _assemble(self) -> list[str]:
        body: list[str] = []
        if self.together:
            # The loop has the names of its rows already; all of them are known only now.
            self.row[0] = self._of_rows(self.row[0])
        for phase, loop in enumerate([*self.loops, []]):
            body += [*self.row[phase], *self.row_stores[phase], *loop]
        if self.banded:
            return [f"# {self._title()}", *self.before, *self._inside(body)]
        begin, finish = self._shared(body)
        lines = [f"# {self._title()}", *self.before, *begin, *finish]
        if self.after:
            wait = "wait(word(block, 2))"
            joined = ["if thread == 0:", *_indented(self.after)]
            lines += ["if threads > 1:", *_indented([wait, *joined])]
        return lines

    def _shared(self, body: list[str]) -> tuple[list[str], list[str]]:
        """Return what finds a thread's share, and the loop over its rows."""
        writer = self.writer
        if self.inner is None or (not self.rows_of and self._whole()):
            return [], ["if thread == 0:", *_indented(body)]
        if not self.outer:
            size = writer.size(self.inner)
            share = f"divided({size} + {_SHARE} * threads - 1, {_SHARE} * threads) * {_SHARE}"
            return [
                f"share = {share}",
                f"first = minimum(share * thread, {size})",
                f"last = minimum(first + share, {size})",
            ], body
        rows = shared_rows(writer.product(self.rows_of))
        if not self._is_short():
            lines = [*self._decoded(self.rows_of), *body]
            return rows, ["for row in range(first, last):", *_indented(lines)]
        # A place is found once for many rows: dividing takes longer than they do, and where it is
        # done for each of them, they are not side by side.
        counted, inside = self.rows_of[:-1], self.rows_of[-1]
        size = writer.size(inside)
        return rows, [
            f"for row in range(divided(first, {size}), divided(last + {size} - 1, {size})):",
            *_indented(self._decoded(counted)),
            f"    begin = maximum(first - row * {size}, 0)",
            f"    end = minimum(last - row * {size}, {size})",
            f"    for i{inside} in range(begin, end):",
            *_indented(_indented(body)),
        ]

    def _is_short(self) -> bool:
        """Whether rows are short, and many of them follow one another."""
        sizes = self.writer.sizes
        if self.inner is None or len(self.rows_of) < 2:
            return False
        return sizes[self.inner] <= _SHORT_ROW and sizes[self.rows_of[-1]] >= _MANY_ROWS

    def _inside(self, body: list[str]) -> list[str]:
        """Return the loop over the rows of one step along the outermost dimension."""
        rest = self.rows_of[1:]
        if not rest:
            return body
        if len(rest) > 1 and self._is_short():
            counted, inside = rest[:-1], rest[-1]
            return [
                f"for row in range({self.writer.product(counted)}):",
                *_indented(self._decoded(counted)),
                f"    for i{inside} in range({self.writer.size(inside)}):",
                *_indented(_indented(body)),
            ]
        lines = [*self._decoded(rest), *body]
        return [f"for row in range({self.writer.product(rest)}):", *_indented(lines)]

    def _decoded(self, dims: tuple[int, ...]) -> list[str]:
        """Return what finds the places along some dimensions of the row with a number."""
        lines = []
        rest = "row"
        for dim in reversed(dims[1:]):
            lines.append(f"i{dim} = remaining({rest}, {self.writer.size(dim)})")
            lines.append(f"rest{dim} = divided({rest}, {self.writer.size(dim)})")
            rest = f"rest{dim}"
        return [*lines, f"i{dims[0]} = {rest}"]

    def _title(self) -> str:
        over = " x ".join(self.writer.size(dim) for dim in self.nest.dims) or "one element"
        phases = f" in {self.nest.phases} phases" if self.nest.phases > 1 else ""
        return f"over {over}{phases}"
