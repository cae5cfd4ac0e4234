"""Writing the kernels of passes in CUDA C++.

A kernel takes the addresses of tensors, of what reductions have left in scratch memory, and, where
the group checks something, of the word that says what failed. Sizes and strides are numbers in the
text: a program is compiled for its shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from headrace import Tensor
from headrace_cpu.fusion.nodes import FLOATS
from headrace_cpu.fusion.schedule import Root
from headrace_cpu.fusion.space import Space, Store, Value
from headrace_cuda.fusion.passes import Kind, Pass
from headrace_cuda.fusion.text import FOLDS, TYPES, identity, literal, mapped
from headrace_cuda.program.instruction import FAILED, REPORT, Mark
from headrace_cuda.program.platform import CudaSource, Grid

THREADS = 256
# From so many elements on a thread of a map works on several, so that more loads are on the way.
_MANY = 1 << 20
_SEVERAL = 4
# A thread adds up to so many float32 as such, more in float64.
_CHUNK = 64
# A thread reduces so many elements before a reduction is cut into parts, which are joined.
_LEAST_SHARE = 32
# Passes of up to so many blocks are done one after the other by one block of a kernel.
_FEW_BLOCKS = 4


@dataclass(frozen=True, slots=True)
class Word:
    """What a kernel is given: an address.

    Attributes:
        of: The tensor or mark, or the reduction whose values are there.
        partial: Whether it is what the parts of a reduction have left.
    """

    of: Tensor | Mark | Value
    partial: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with what it is started with.

    Attributes:
        source: The kernel.
        grid: How many blocks there are.
        block: How many threads each has.
        words: Its parameters.
    """

    source: CudaSource
    grid: Grid
    block: Grid
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """What the blocks of a pass do.

    Attributes:
        lines: Of each block, whose number is ``block_x`` and ``block_y``.
        blocks: How many blocks there are.
        threads: How many threads each has.
        shared: The codes of the arrays that the threads of a block share, of an element each.
    """

    lines: list[str]
    blocks: tuple[int, int]
    threads: int
    shared: frozenset[str] = frozenset()


class Parameters:
    """The parameters of a kernel that is being written."""

    def __init__(self) -> None:
        """Begin without any."""
        self.words: dict[Word, str] = {}
        self._types: dict[Word, str] = {}
        self._changed: set[Word] = set()
        # Whether tensors may share memory: a variable and what was read of it.
        self.shares = False

    def pointer(self, word: Word, code: str, *, changes: bool = False) -> str:
        """Return the parameter for an address."""
        if word not in self.words:
            self.words[word] = f"p{len(self.words)}"
            self._types[word] = TYPES[code]
        if changes:
            self._changed.add(word)
        return self.words[word]

    def text(self) -> str:
        """Return the parameters in CUDA C++."""
        alone = "" if self.shares else "__restrict__ "
        return ", ".join(
            f"{'' if word in self._changed else 'const '}{self._types[word]} *{alone}{name}"
            for word, name in self.words.items()
        )


def write_passes(
    passes: Sequence[tuple[Pass, int]], space: Space, homes: frozenset[Value], *, guarded: bool
) -> list[Launch]:
    """Return the kernels of a group's passes, in order.

    Args:
        passes: The passes, and into how many parts each is cut.
        space: The sizes.
        homes: The reductions that are kept in scratch memory.
        guarded: Whether variables stay as they are where a check has failed.
    """
    launches: list[Launch] = []
    parameters, together = Parameters(), list[Piece]()

    def finish() -> None:
        nonlocal parameters, together
        if together:
            launches.append(_launch(parameters, together))
        parameters, together = Parameters(), []

    for step, parts in passes:
        few = _count_blocks(step, space, parts) <= _FEW_BLOCKS
        for make in _makers(step, space, homes, parts, guarded):
            if not few:
                finish()
            together.append(make(parameters))
            if not few:
                finish()
    finish()
    return launches


def _count_blocks(step: Pass, space: Space, parts: int) -> int:
    """Return how many blocks a pass has at most; more than few where they have many threads."""
    pieces = [make(Parameters()) for make in _makers(step, space, frozenset(), parts, False)]
    if any(piece.threads != THREADS for piece in pieces):
        return _FEW_BLOCKS + 1
    return max(piece.blocks[0] * piece.blocks[1] for piece in pieces)


def _makers(
    step: Pass, space: Space, homes: frozenset[Value], parts: int, guarded: bool
) -> list[Callable[[Parameters], Piece]]:
    """Return what write the pieces of a pass."""
    if step.kind is Kind.MAP:
        return [lambda p: _Map(step, space, homes, p).write(guarded)]
    if step.kind is Kind.ROWS:
        return [lambda p: _Rows(step, space, homes, p).write()]
    makers: list[Callable[[Parameters], Piece]] = []
    makers.append(lambda p: _Reduce(step, space, homes, p, parts).write())
    if parts > 1:
        for root in step.roots:
            makers.append(
                lambda p, value=root.value: _Join(value, space, homes, p, parts).write()
            )
    return makers


def _launch(parameters: Parameters, pieces: Sequence[Piece]) -> Launch:
    """Return the kernel of pieces; where there are several, one block does them in turn."""
    threads = pieces[0].threads
    codes = sorted({code for piece in pieces for code in piece.shared})
    body = [f"__shared__ {TYPES[code]} shared_{code}[{threads}];" for code in codes]
    if len(pieces) == 1:
        columns, rows = pieces[0].blocks
        body += ["const int block_x = blockIdx.x, block_y = blockIdx.y;", *pieces[0].lines]
        grid: Grid = (columns, rows, 1)
    else:
        grid = (1, 1, 1)
        for number, piece in enumerate(pieces):
            columns, rows = piece.blocks
            # What one piece has left in memory another one reads.
            body += ["__syncthreads();"] if number else []
            body += [
                f"for (int block = 0; block < {columns * rows}; ++block) {{",
                f"    const int block_x = block % {columns}, block_y = block / {columns};",
                *(f"    {line}" for line in piece.lines),
                "}",
            ]
    lines = [f'extern "C" __global__ void KERNEL({parameters.text()}) {{']
    lines += [*(f"    {line}" for line in body), "}", ""]
    source = CudaSource.of("\n".join(lines))
    return Launch(source, grid, (threads, 1, 1), tuple(parameters.words))


def partials(step: Pass, space: Space, processors: int) -> int:
    """Return into how many parts a reduction is cut, so that there is work for all processors."""
    if step.kind is not Kind.REDUCE:
        return 1
    shape = _Shape(step, space)
    wanted = -(-8 * processors // shape.blocks)
    most = shape.reduced // (shape.threads * _LEAST_SHARE)
    return max(1, min(wanted, most, 1024))


class _Shape:
    """How the threads of a reduction lie.

    Attributes:
        kept: How many elements it leaves.
        reduced: Of how many each is made.
        columns: Whether neighboring threads work on neighboring results, not on one.
        across: The threads of a block that neighbor each other in memory.
        down: How many times as many a block has.
        blocks: How many blocks there are for each part.
    """

    def __init__(self, step: Pass, space: Space) -> None:
        sizes = space.sizes
        self.kept = prod(sizes[d] for d in step.kept)
        self.reduced = prod(sizes[d] for d in step.over)
        self.columns = step.dims[-1] not in step.over
        if self.columns:
            self.across = min(32, _power(sizes[step.dims[-1]]))
            self.blocks = -(-self.kept // self.across)
        else:
            self.across = min(THREADS, _power(-(-self.reduced // 4)))
            self.blocks = -(-self.kept // (THREADS // self.across))
        self.down = THREADS // self.across

    @property
    def threads(self) -> int:
        """How many threads share what one result is made of."""
        return self.down if self.columns else self.across


def wide(reduction: Value) -> str:
    """Return the code in which threads join what they have reduced."""
    return "f64" if reduction.name == "total" and reduction.code in FLOATS else reduction.code


def _power(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << max(0, number - 1).bit_length()


class _Writer:
    """A pass that is being written: names and lines."""

    def __init__(
        self, step: Pass, space: Space, homes: frozenset[Value], parameters: Parameters
    ) -> None:
        self.step = step
        self.sizes = space.sizes
        self.homes = homes
        self.parameters = parameters
        # Lines for each row, and of the innermost loop; with the names known in each.
        self.row: list[str] = []
        self.inner: list[str] = []
        self.row_names: dict[Value, str] = {}
        self.names: dict[Value, str] = {}
        # The dimensions along which values are computed in the innermost lines only.
        self.varying: frozenset[int] = frozenset(step.dims)
        placed = (*space.values, *space.stores)
        most = max([prod(self.sizes), *(_reach(one, self.sizes) for one in placed)])
        self.index = "int" if most < 2**31 - 2**16 else "int64"

    # -- values

    def value(self, value: Value) -> str:
        """Return the name of a value, with the lines that compute it."""
        if value.kind == "const":
            return literal(value)
        in_row = self.varying.isdisjoint(value.dims)
        names, lines = (self.row_names, self.row) if in_row else (self.names, self.inner)
        if value not in names:
            expression = self._expression(value)
            name = f"v{value.number}"
            names[value] = name
            lines.append(f"const {TYPES[value.code]} {name} = {expression};")
        return names[value]

    def _expression(self, value: Value) -> str:
        if value.kind == "load":
            assert value.tensor is not None
            base = self.parameters.pointer(Word(value.tensor), value.code)
            return f"{base}[{_place(value.dims, value.strides, value.offset)}]"
        if value.kind == "index":
            return f"({TYPES[value.code]})i{value.dims[0]}"
        if value.kind == "reduce":
            base = self.parameters.pointer(Word(value), value.code)
            return f"{base}[{_place(value.dims, self.dense(value.dims), 0)}]"
        return mapped(value, [self.value(arg) for arg in value.args])

    def dense(self, dims: tuple[int, ...]) -> dict[int, int]:
        """Return the strides of what lies in scratch memory."""
        strides, step = {}, 1
        for dim in reversed(dims):
            strides[dim] = step
            step *= self.sizes[dim]
        return strides

    def store(self, store: Store) -> str:
        """Return what stores a value, which is known."""
        name = self.value(store.value)
        pointer = self.parameters.pointer
        if store.tensor is None:
            report = pointer(Word(REPORT), "i32", changes=True)
            failed = pointer(Word(FAILED), "i32", changes=True)
            # The report is memory of the host: it is written to where something is wrong only.
            return f"if ({name}) {{ {report}[{store.report - 1}] = 1; *{failed} = 1; }}"
        self.parameters.shares = self.parameters.shares or store.update
        base = pointer(Word(store.tensor), store.value.code, changes=True)
        return f"{base}[{_place(store.dims, store.strides, store.offset)}] = {name};"

    def home(self, value: Value, name: str) -> str:
        """Return what keeps a reduction in scratch memory."""
        base = self.parameters.pointer(Word(value), value.code, changes=True)
        return f"{base}[{_place(value.dims, self.dense(value.dims), 0)}] = {name};"

    def decoded(self, dims: tuple[int, ...], number: str) -> list[str]:
        """Return what finds the places along dimensions of the element with a number."""
        lines = []
        rest = number
        for dim in reversed(dims[1:]):
            size = self.sizes[dim]
            lines.append(f"const {self.index} i{dim} = {rest} % {size};")
            lines.append(f"const {self.index} rest{dim} = {rest} / {size};")
            rest = f"rest{dim}"
        return [*lines, *(f"const {self.index} i{dim} = {rest};" for dim in dims[:1])]

    def found(self, down: int, thread: str, count: int, name: str) -> list[str]:
        """Return what finds the number of a thread's row; those without one read the last."""
        number = f"({self.index})block_x * {down} + {thread}"
        return [
            f"const {self.index} found = {number};",
            f"const bool live = found < {count};",
            f"const {self.index} {name} = live ? found : {count - 1};",
        ]


def _reach(one: Value | Store, sizes: list[int]) -> int:
    """Return how far from the beginning of a tensor an element may be."""
    steps = ((sizes[dim] - 1) * abs(stride) for dim, stride in one.strides.items())
    return abs(one.offset) + sum(steps) + 1


def _place(dims: tuple[int, ...], strides: dict[int, int], offset: int) -> str:
    """Return the expression of a place in memory."""
    parts = []
    for dim in dims:
        stride = strides[dim]
        if stride == 1:
            parts.append(f"i{dim}")
        elif stride:
            parts.append(f"i{dim} * {stride}")
    if offset or not parts:
        parts.append(str(offset))
    return " + ".join(parts)


class _Map(_Writer):
    """An element for each thread."""

    def write(self, guarded: bool) -> Piece:
        """Return the piece."""
        count = prod(self.sizes[d] for d in self.step.dims)
        several = _SEVERAL if count >= _MANY else 1
        stores = []
        for root in self.step.roots:
            assert root.store is not None
            stores.append(self.store(root.store))
        # All is read before anything is stored: a variable may be both.
        work = [*self.decoded(self.step.dims, "n"), *self.row, *self.inner, *stores]
        first = f"const {self.index} first = ({self.index})block_x * {THREADS * several}"
        lines = [f"{first} + threadIdx.x;"]
        lines += [f"auto one = [&](const {self.index} n) {{", *_indented(work), "};"]
        if several > 1:
            every = " ".join(f"one(first + {k * THREADS});" for k in range(several))
            lines += [f"if (first + {(several - 1) * THREADS} < {count}) {{ {every} }} else"]
        each = f"n < {count} && n < first + {several * THREADS}; n += {THREADS}"
        lines.append(f"for ({self.index} n = first; {each}) one(n);")
        changes = any(root.store is not None and root.store.update for root in self.step.roots)
        if guarded and changes:
            failed = self.parameters.pointer(Word(FAILED), "i32")
            lines = [f"if (!*{failed}) {{", *_indented(lines), "}"]
        return Piece(lines, (-(-count // (THREADS * several)), 1), THREADS)


class _Rows(_Writer):
    """Some threads for each row, which go over it once in each phase."""

    def write(self) -> Piece:
        """Return the piece."""
        step, sizes = self.step, self.sizes
        outer, last = step.dims[:-1], step.dims[-1]
        rows, size = prod(sizes[d] for d in outer), sizes[last]
        self.varying = frozenset({last})
        across = 1 if size <= 4 else min(1024 if size > 8192 else THREADS, _power(-(-size // 4)))
        down = max(1, THREADS // across)
        self.across = across
        lines = [
            f"const int x = Threads<{across}>::x();",
            *self.found(down, f"Threads<{across}>::y()", rows, "row"),
            *self.decoded(outer, "row"),
        ]
        for phase in range(step.phases + 1):
            self._in_row(phase)
            if phase < step.phases:
                lines += self._loop(phase, last, size)
        lines += self.row
        shared = frozenset(wide(r.value) for r in step.roots if r.reduces and across > 1)
        return Piece(lines, (-(-rows // down), 1), across * down, shared)

    def _roots(self, phase: int, *, in_row: bool) -> list[Root]:
        return [r for r in self.step.roots if r.phase == phase and r.in_row == in_row]

    def _in_row(self, phase: int) -> None:
        for root in self._roots(phase, in_row=True):
            assert root.store is not None
            text = self.store(root.store)
            self.row.append(f"if (live && x == 0) {{ {text} }}")

    def _loop(self, phase: int, last: int, size: int) -> list[str]:
        """Return the lines up to the end of a loop; what comes after it is in ``row``."""
        self.inner, self.names = [], {}
        reductions: list[Value] = []
        ends: list[str] = []
        for root in self._roots(phase, in_row=False):
            if root.store is not None:
                ends.append(f"if (live) {{ {self.store(root.store)} }}")
            else:
                value, name = root.value, f"f{root.value.number}"
                reductions.append(value)
                fold, code = FOLDS[value.name], self._own(value, size)
                one = self.value(value.args[0])
                ends.append(f"{name} = {fold}()({name}, ({TYPES[code]}){one});")
        begin = []
        for value in reductions:
            code = self._own(value, size)
            begin.append(f"{TYPES[code]} f{value.number} = {identity(value.name, code)};")
        steps = f"{self.index} i{last} = x; i{last} < {size}; i{last} += {self.across}"
        loop = [f"for ({steps}) {{", *_indented([*self.inner, *ends]), "}"]
        lines = [*self.row, *begin, *loop]
        self.row = []
        for value in reductions:
            self._join(value, size)
        return lines

    def _own(self, value: Value, size: int) -> str:
        """Return the code in which a thread reduces what it sees."""
        return wide(value) if size > _CHUNK * self.across else value.code

    def _join(self, value: Value, size: int) -> None:
        kind, name = TYPES[value.code], f"v{value.number}"
        if self.across == 1:
            self.row.append(f"const {kind} {name} = ({kind})f{value.number};")
        else:
            code = wide(value)
            fold = f"hr_fold_row<{FOLDS[value.name]}, {self.across}>"
            joined = f"{fold}(({TYPES[code]})f{value.number}, shared_{code})"
            self.row.append(f"const {kind} {name} = ({kind}){joined};")
        self.row_names[value] = name
        if value in self.homes:
            self.row.append(f"if (live && x == 0) {{ {self.home(value, name)} }}")


class _Reduce(_Writer):
    """Threads that share the elements of which each result is made."""

    def __init__(
        self,
        step: Pass,
        space: Space,
        homes: frozenset[Value],
        parameters: Parameters,
        parts: int,
    ) -> None:
        super().__init__(step, space, homes, parameters)
        self.shape = _Shape(step, space)
        self.parts = parts

    def write(self) -> Piece:
        """Return the piece."""
        step, shape = self.step, self.shape
        across, down, threads = shape.across, shape.down, shape.threads
        self.varying = frozenset(step.over)
        share = -(-shape.reduced // self.parts)
        x, y = f"Threads<{across}>::x()", f"Threads<{across}>::y()"
        mine, thread, count = (x, y, across) if shape.columns else (y, x, down)
        reductions = [root.value for root in step.roots]
        long = share > _CHUNK * threads
        codes = {v: TYPES[wide(v) if long else v.code] for v in reductions}
        given = ", ".join(f"{TYPES[v.args[0].code]} &o{v.number}" for v in reductions)
        ends = [f"o{v.number} = {self.value(v.args[0])};" for v in reductions]
        lines = [
            *self.found(count, mine, shape.kept, "kept"),
            f"const {self.index} begin = ({self.index})block_y * {share};",
            f"const {self.index} last = min(begin + {share}, ({self.index}){shape.reduced});",
            *self.decoded(step.kept, "kept"),
            *self.row,
            *(f"{codes[v]} f{v.number} = {identity(v.name, _code(codes[v]))};" for v in reductions),
            f"auto one = [&](const {self.index} part, {given}) {{",
            *_indented([*self.decoded(step.over, "part"), *self.inner, *ends]),
            "};",
            f"{self.index} part = begin + {thread};",
            # Several loads are on the way at once.
            f"for (; part + {(_SEVERAL - 1) * threads} < last; part += {_SEVERAL * threads}) {{",
            *_indented(self._folded(reductions, codes, _SEVERAL, threads)),
            "}",
            f"for (; part < last; part += {threads}) {{",
            *_indented(self._folded(reductions, codes, 1, threads)),
            "}",
        ]
        for value in reductions:
            lines += self._finish(value)
        shared = frozenset(wide(v) for v in reductions) if threads > 1 else frozenset[str]()
        return Piece(lines, (shape.blocks, self.parts), THREADS, shared)

    def _folded(
        self, reductions: Sequence[Value], codes: dict[Value, str], count: int, threads: int
    ) -> list[str]:
        """Return what loads so many elements, and then folds them."""
        lines = []
        for value in reductions:
            names = ", ".join(f"a{value.number}_{k}" for k in range(count))
            lines.append(f"{TYPES[value.args[0].code]} {names};")
        for k in range(count):
            names = ", ".join(f"a{value.number}_{k}" for value in reductions)
            lines.append(f"one(part + {k * threads}, {names});")
        for value in reductions:
            for k in range(count):
                name, fold = f"f{value.number}", FOLDS[value.name]
                lines.append(f"{name} = {fold}()({name}, ({codes[value]})a{value.number}_{k});")
        return lines

    def _finish(self, value: Value) -> list[str]:
        shape = self.shape
        code, name = wide(value), f"f{value.number}"
        lines = []
        if shape.threads > 1:
            sizes = f"{shape.across}, {shape.down}" if shape.columns else f"{shape.across}"
            fold = "hr_fold_column" if shape.columns else "hr_fold_row"
            call = f"{fold}<{FOLDS[value.name]}, {sizes}>(({TYPES[code]}){name}, shared_{code})"
            name = f"w{value.number}"
            lines.append(f"const {TYPES[code]} {name} = {call};")
        if self.parts > 1:
            base = self.parameters.pointer(Word(value, partial=True), code, changes=True)
            place = f"({self.index})block_y * {shape.kept} + kept"
            store = f"{base}[{place}] = ({TYPES[code]}){name};"
        else:
            store = self.home(value, f"({TYPES[value.code]}){name}")
        one = f"Threads<{shape.across}>::{'y' if shape.columns else 'x'}()"
        return [*lines, f"if (live && {one} == 0) {{ {store} }}"]


class _Join(_Writer):
    """What joins the parts of a reduction."""

    def __init__(
        self,
        value: Value,
        space: Space,
        homes: frozenset[Value],
        parameters: Parameters,
        parts: int,
    ) -> None:
        super().__init__(Pass(Kind.REDUCE, value.dims), space, homes, parameters)
        self.made = value
        self.parts = parts

    def write(self) -> Piece:
        """Return the piece."""
        value, parts = self.made, self.parts
        kept = prod(self.sizes[d] for d in value.dims)
        code = wide(value)
        kind, fold = TYPES[code], FOLDS[value.name]
        across = min(THREADS, _power(parts)) if kept < 4096 else 1
        down = THREADS // across
        given = self.parameters.pointer(Word(value, partial=True), code)
        x = f"Threads<{across}>::x()"
        lines = [
            *self.found(down, f"Threads<{across}>::y()", kept, "kept"),
            *self.decoded(value.dims, "kept"),
            f"{kind} f = {identity(value.name, code)};",
            f"for (int part = {x}; part < {parts}; part += {across}) {{",
            f"    f = {fold}()(f, {given}[({self.index})part * {kept} + kept]);",
            "}",
        ]
        if across > 1:
            lines.append(f"f = hr_fold_row<{fold}, {across}>(f, shared_{code});")
        lines.append(f"if (live && {x} == 0) {{ {self.home(value, f'({TYPES[value.code]})f')} }}")
        shared = frozenset({code}) if across > 1 else frozenset[str]()
        return Piece(lines, (-(-kept // down), 1), THREADS, shared)


def _indented(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _code(kind: str) -> str:
    """Return the code of a type."""
    return next(code for code, name in TYPES.items() if name == kind)
