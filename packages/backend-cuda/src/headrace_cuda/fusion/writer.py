"""Writing the kernels of passes in CUDA C++.

A kernel takes the addresses of tensors, of what reductions have left in scratch memory, and, where
the group checks something, of the word that says what failed. Sizes and strides are numbers in the
text: a program is compiled for its shapes.
"""

from __future__ import annotations

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


def partials(step: Pass, space: Space, processors: int) -> int:
    """Return into how many parts a reduction is cut, so that there is work for all processors."""
    if step.kind is not Kind.REDUCE:
        return 1
    shape = _Shape(step, space)
    if shape.parts_elements < 2 * THREADS:
        return 1
    blocks = shape.blocks
    wanted = -(-4 * processors // blocks)
    most = shape.parts_elements // THREADS
    return max(1, min(wanted, most, 1024))


class _Shape:
    """How the threads of a reduction lie.

    Attributes:
        kept: How many elements it leaves.
        reduced: Of how many each is made.
        columns: Whether neighboring threads work on neighboring results, not on one.
        block: The threads of a block.
    """

    def __init__(self, step: Pass, space: Space) -> None:
        sizes = space.sizes
        self.kept = prod(sizes[d] for d in step.kept)
        self.reduced = prod(sizes[d] for d in step.over)
        self.columns = step.dims[-1] not in step.over
        if self.columns:
            across = min(32, _power(sizes[step.dims[-1]]))
            self.block: Grid = (across, THREADS // across, 1)
            self.blocks = -(-self.kept // across)
        else:
            across = min(THREADS, _power(-(-self.reduced // 4)))
            self.block = (across, THREADS // across, 1)
            self.blocks = -(-self.kept // (THREADS // across))

    @property
    def parts_elements(self) -> int:
        """How many elements the threads along the reduced dimensions share in one block."""
        return self.reduced * (self.block[0] if self.columns else 1)


def write_pass(
    step: Pass, space: Space, homes: frozenset[Value], parts: int, guarded: bool = False
) -> list[Launch]:
    """Return the kernels of a pass, in order.

    Args:
        step: The pass.
        space: The sizes.
        homes: The reductions that are kept in scratch memory.
        parts: Into how many parts it is cut, for a reduction.
        guarded: Whether variables stay as they are where a check has failed.
    """
    if step.kind is Kind.MAP:
        return [_Map(step, space, homes).write(guarded)]
    if step.kind is Kind.ROWS:
        return [_Rows(step, space, homes).write()]
    launches = [_Reduce(step, space, homes, parts).write()]
    if parts > 1:
        launches += [_Join(root.value, space, homes, parts).write() for root in step.roots]
    return launches


def wide(reduction: Value) -> str:
    """Return the code in which threads join what they have reduced."""
    return "f64" if reduction.name == "total" and reduction.code in FLOATS else reduction.code


def _power(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << max(0, number - 1).bit_length()


class _Kernel:
    """A kernel that is being written: names, parameters and lines."""

    def __init__(self, step: Pass, space: Space, homes: frozenset[Value]) -> None:
        self.step = step
        self.space = space
        self.sizes = space.sizes
        self.homes = homes
        self.words: dict[Word, str] = {}
        self.types: dict[Word, str] = {}
        self.changed: set[Word] = set()
        # Lines for all, for each row, and of the innermost loop; with the names known in each.
        self.row: list[str] = []
        self.inner: list[str] = []
        self.row_names: dict[Value, str] = {}
        self.names: dict[Value, str] = {}
        # The dimensions along which values are computed in the innermost lines only.
        self.varying: frozenset[int] = frozenset(step.dims)
        self.known: dict[Value, str] = {}
        placed = (*space.values, *space.stores)
        most = max([prod(self.sizes), *(_reach(one, self.sizes) for one in placed)])
        self.index = "int" if most < 2**31 - 2**16 else "int64"

    # -- parameters

    def pointer(self, word: Word, code: str, *, changes: bool = False) -> str:
        """Return the parameter for an address."""
        if word not in self.words:
            self.words[word] = f"p{len(self.words)}"
            self.types[word] = TYPES[code]
        if changes:
            self.changed.add(word)
        return self.words[word]

    def text(self, body: list[str]) -> CudaSource:
        """Return the kernel with a body."""
        parameters = ", ".join(
            f"{'' if word in self.changed else 'const '}{self.types[word]} *{name}"
            for word, name in self.words.items()
        )
        lines = [f'extern "C" __global__ void KERNEL({parameters}) {{']
        lines += [f"    {line}" for line in body]
        return CudaSource.of("\n".join([*lines, "}", ""]))

    def launch(self, body: list[str], grid: Grid, block: Grid) -> Launch:
        """Return the kernel with what it is started with."""
        return Launch(self.text(body), grid, block, tuple(self.words))

    # -- values

    def value(self, value: Value) -> str:
        """Return the name of a value, with the lines that compute it."""
        if value.kind == "const":
            return literal(value)
        known = self.known.get(value)
        if known is not None:
            return known
        in_row = self.varying.isdisjoint(self._depends(value))
        names, lines = (self.row_names, self.row) if in_row else (self.names, self.inner)
        if value not in names:
            expression = self._expression(value)
            name = f"v{value.number}"
            names[value] = name
            lines.append(f"const {TYPES[value.code]} {name} = {expression};")
        return names[value]

    def _depends(self, value: Value) -> tuple[int, ...]:
        return value.dims

    def _expression(self, value: Value) -> str:
        if value.kind == "load":
            assert value.tensor is not None
            base = self.pointer(Word(value.tensor), value.code)
            return f"{base}[{_place(value.dims, value.strides, value.offset)}]"
        if value.kind == "index":
            return f"({TYPES[value.code]})i{value.dims[0]}"
        if value.kind == "reduce":
            assert value in self.homes
            base = self.pointer(Word(value), value.code)
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
        if store.tensor is None:
            report = self.pointer(Word(REPORT), "i32", changes=True)
            failed = self.pointer(Word(FAILED), "i32", changes=True)
            # The report is memory of the host: it is written to where something is wrong only.
            return f"if ({name}) {{ {report}[{store.report - 1}] = 1; *{failed} = 1; }}"
        base = self.pointer(Word(store.tensor), store.value.code, changes=True)
        return f"{base}[{_place(store.dims, store.strides, store.offset)}] = {name};"

    def home(self, value: Value, name: str) -> str:
        """Return what keeps a reduction in scratch memory."""
        base = self.pointer(Word(value), value.code, changes=True)
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


class _Map(_Kernel):
    """An element for each thread."""

    def write(self, guarded: bool) -> Launch:
        """Return the kernel."""
        count = prod(self.sizes[d] for d in self.step.dims)
        several = _SEVERAL if count >= _MANY else 1
        stores = []
        for root in self.step.roots:
            assert root.store is not None
            stores.append(self.store(root.store))
        # All is read before anything is stored: a variable may be both.
        work = [*self.decoded(self.step.dims, "n"), *self.row, *self.inner, *stores]
        first = f"({self.index})blockIdx.x * {THREADS * several} + threadIdx.x"
        if several == 1:
            body = [f"const {self.index} n = {first};", f"if (n >= {count}) return;", *work]
        else:
            body = [
                "#pragma unroll",
                f"for (int turn = 0; turn < {several}; ++turn) {{",
                f"    const {self.index} n = {first} + turn * {THREADS};",
                f"    if (n >= {count}) return;",
                *(f"    {line}" for line in work),
                "}",
            ]
        threads = min(THREADS, max(32, _power(count)))
        if several == 1 and threads < THREADS:
            body[0] = f"const {self.index} n = threadIdx.x;"
        if guarded and any(root.store is not None and root.store.update for root in self.step.roots):
            body.insert(0, f"if (*{self.pointer(Word(FAILED), 'i32')}) return;")
        blocks = -(-count // (threads * several))
        return self.launch(body, (blocks, 1, 1), (threads, 1, 1))


class _Rows(_Kernel):
    """Some threads for each row, which go over it once in each phase."""

    def write(self) -> Launch:
        """Return the kernel."""
        step, sizes = self.step, self.sizes
        outer, last = step.dims[:-1], step.dims[-1]
        rows, size = prod(sizes[d] for d in outer), sizes[last]
        self.varying = frozenset({last})
        across = 1 if size <= 4 else min(1024 if size > 8192 else THREADS, _power(-(-size // 4)))
        down = max(1, THREADS // across)
        self.across = across
        shared = {
            wide(r.value) for r in step.roots if r.reduces and across > 1
        }
        body = [f"__shared__ {TYPES[c]} shared_{c}[{across * down}];" for c in sorted(shared)]
        body += [
            f"const {self.index} found = ({self.index})blockIdx.x * {down} + threadIdx.y;",
            f"const bool live = found < {rows};",
            # Threads without a row of their own read the last one, and store nothing.
            f"const {self.index} row = live ? found : {rows - 1};",
            *self.decoded(outer, "row"),
        ]
        for phase in range(step.phases + 1):
            self._in_row(phase)
            if phase < step.phases:
                body += self._loop(phase, last, size)
        body += self.row
        return self.launch(body, (-(-rows // down), 1, 1), (across, down, 1))

    def _roots(self, phase: int, *, in_row: bool) -> list[Root]:
        return [r for r in self.step.roots if r.phase == phase and r.in_row == in_row]

    def _in_row(self, phase: int) -> None:
        for root in self._roots(phase, in_row=True):
            assert root.store is not None
            text = self.store(root.store)
            self.row.append(f"if (live && threadIdx.x == 0) {{ {text} }}")

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
        head = f"for ({self.index} i{last} = threadIdx.x; i{last} < {size}; i{last} += {self.across}) {{"
        lines = [*self.row, *begin, head, *(f"    {x}" for x in [*self.inner, *ends]), "}"]
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
            fold = f"hr_fold_row<{FOLDS[value.name]}, {TYPES[code]}>"
            joined = f"{fold}(({TYPES[code]})f{value.number}, shared_{code})"
            self.row.append(f"const {kind} {name} = ({kind}){joined};")
        self.row_names[value] = name
        if value in self.homes:
            self.row.append(f"if (live && threadIdx.x == 0) {{ {self.home(value, name)} }}")


class _Reduce(_Kernel):
    """Threads that share the elements of which each result is made."""

    def __init__(self, step: Pass, space: Space, homes: frozenset[Value], parts: int) -> None:
        super().__init__(step, space, homes)
        self.parts = parts

    def write(self) -> Launch:
        """Return the kernel."""
        step, shape = self.step, _Shape(self.step, self.space)
        across, down, _ = shape.block
        self.varying = frozenset(step.over)
        share = -(-shape.reduced // self.parts)
        if shape.columns:
            mine, thread, threads = f"blockIdx.x * {across} + threadIdx.x", "threadIdx.y", down
        else:
            mine, thread, threads = f"blockIdx.x * {down} + threadIdx.y", "threadIdx.x", across
        reductions = [root.value for root in step.roots]
        long = share > _CHUNK * threads
        codes = {v: wide(v) if long else v.code for v in reductions}
        ends = []
        for value in reductions:
            one = self.value(value.args[0])
            name = f"f{value.number}"
            ends.append(f"{name} = {FOLDS[value.name]}()({name}, ({TYPES[codes[value]]}){one});")
        shared = sorted({wide(v) for v in reductions}) if threads > 1 else []
        head = f"for ({self.index} part = first + {thread}; part < last; part += {threads}) {{"
        body = [
            *(f"__shared__ {TYPES[code]} shared_{code}[{across * down}];" for code in shared),
            f"const {self.index} found = ({self.index}){mine};",
            f"const bool live = found < {shape.kept};",
            f"const {self.index} kept = live ? found : {shape.kept - 1};",
            f"const {self.index} first = ({self.index})blockIdx.y * {share};",
            f"const {self.index} last = min(first + {share}, ({self.index}){shape.reduced});",
            *self.decoded(step.kept, "kept"),
            *self.row,
            *(
                f"{TYPES[codes[v]]} f{v.number} = {identity(v.name, codes[v])};"
                for v in reductions
            ),
            # Several loads are on the way at once.
            "#pragma unroll 4",
            head,
            *(f"    {line}" for line in [*self.decoded(step.over, "part"), *self.inner, *ends]),
            "}",
        ]
        for value in reductions:
            body += self._finish(value, shape, threads)
        return self.launch(body, (shape.blocks, self.parts, 1), shape.block)

    def _finish(self, value: Value, shape: _Shape, threads: int) -> list[str]:
        code, name = wide(value), f"f{value.number}"
        lines = []
        if threads > 1:
            fold = "hr_fold_column" if shape.columns else "hr_fold_row"
            call = f"{fold}<{FOLDS[value.name]}, {TYPES[code]}>"
            lines.append(f"const {TYPES[code]} w{value.number} = {call}(({TYPES[code]}){name}, shared_{code});")
            name = f"w{value.number}"
        if self.parts > 1:
            base = self.pointer(Word(value, partial=True), code, changes=True)
            store = f"{base}[({self.index})blockIdx.y * {shape.kept} + kept] = ({TYPES[code]}){name};"
        else:
            store = self.home(value, f"({TYPES[value.code]}){name}")
        one = "threadIdx.y" if shape.columns else "threadIdx.x"
        return [*lines, f"if (live && {one} == 0) {{ {store} }}"]


class _Join(_Kernel):
    """What joins the parts of a reduction."""

    def __init__(self, value: Value, space: Space, homes: frozenset[Value], parts: int) -> None:
        super().__init__(Pass(Kind.REDUCE, value.dims), space, homes)
        self.value_made = value
        self.parts = parts

    def write(self) -> Launch:
        """Return the kernel."""
        value, parts = self.value_made, self.parts
        kept = prod(self.sizes[d] for d in value.dims)
        code = wide(value)
        kind, fold = TYPES[code], FOLDS[value.name]
        across = min(THREADS, _power(parts)) if kept < 4096 else 1
        down = THREADS // across
        given = self.pointer(Word(value, partial=True), code)
        body = [
            *([f"__shared__ {kind} shared[{THREADS}];"] if across > 1 else []),
            f"const {self.index} found = ({self.index})blockIdx.x * {down} + threadIdx.y;",
            f"const bool live = found < {kept};",
            f"const {self.index} kept = live ? found : {kept - 1};",
            *self.decoded(value.dims, "kept"),
            f"{kind} f = {identity(value.name, code)};",
            f"for (int part = threadIdx.x; part < {parts}; part += {across}) {{",
            f"    f = {fold}()(f, {given}[({self.index})part * {kept} + kept]);",
            "}",
            *([f"f = hr_fold_row<{fold}, {kind}>(f, shared);"] if across > 1 else []),
            f"if (live && threadIdx.x == 0) {{ {self.home(value, f'({TYPES[value.code]})f')} }}",
        ]
        return self.launch(body, (-(-kept // down), 1, 1), (across, down, 1))
