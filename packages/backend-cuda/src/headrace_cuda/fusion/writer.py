"""What the kernels of passes have in common while they are written in CUDA C++.

A kernel takes the addresses of tensors, of what reductions have left in scratch memory, and, where
the group checks something, of what tells of it. Sizes and strides are numbers in the text: a
program is compiled for its shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from headrace import Tensor
from headrace_cpu.for_backends import FLOATS, Space, Store, Value
from headrace_cuda.fusion.passes import Pass
from headrace_cuda.fusion.text import TYPES, literal, mapped
from headrace_cuda.program.instruction import FAILED, REPORT, Mark

# The threads of a block, of most passes.
THREADS = 256
# A thread works on so many elements at once, so that more loads are on the way.
SEVERAL = 4
# A thread adds up to so many float32 as such, more in float64.
CHUNK = 64


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
        # Whether parameters may share memory, as a variable and what was read of it do, or threads
        # read what others have written: what a compiler may not be told is alone.
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


def wide(reduction: Value) -> str:
    """Return the code in which threads join what they have reduced."""
    return "f64" if reduction.name == "total" and reduction.code in FLOATS else reduction.code


def power(number: int) -> int:
    """Return the least power of two that is not smaller."""
    return 1 << max(0, number - 1).bit_length()


class Writer:
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
        placed: list[Value | Store] = [*space.values, *space.stores]
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


def indented(lines: Sequence[str]) -> list[str]:
    """Return the lines of a block."""
    return [f"    {line}" for line in lines]
