"""Writes kernels in LLVM's assembly: vectors, indices, pointers and loops as Python values.

For kernels that must say which values stay in registers, which LLVM's vectoriser
cannot be told. Arithmetic on a ``Vector`` or an ``Index`` writes an instruction:
``(a + b) * 0.5`` writes two.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

import numpy as np

from headrace.extend.records import dataclass

_SIZES = {"float": 4, "double": 8}
# Words of memory for a counter of turns, which lies in cache lines of its own (see ``taken``).
COUNTER_WORDS = 32


@functools.cache
def vector_bytes() -> int:
    """Return how many bytes the processor's vectors have, as far as Linux tells."""
    try:
        facts = Path("/proc/cpuinfo").read_text()
    except OSError:
        return 16
    flags = next((line for line in facts.splitlines() if line.startswith("flags")), "").split()
    if "avx512f" in flags:
        return 64
    return 32 if "avx" in flags else 16


def counter_in(block: int, words: int) -> int:
    """Return the address of the counter in the last words of a kernel's block.

    Args:
        block: The address of the block.
        words: How many words it has, with ``COUNTER_WORDS``.
    """
    return block + 8 * (words - COUNTER_WORDS // 2)


@dataclass(frozen=True, slots=True)
class Vector:
    """A vector of floating-point numbers in a register."""

    code: Assembly
    name: str

    def __add__(self, other: Vector) -> Vector:
        return self.code.vector(f"fadd {self.code.kind} {self.name}, {other.name}")

    def __sub__(self, other: Vector) -> Vector:
        return self.code.vector(f"fsub {self.code.kind} {self.name}, {other.name}")

    def __mul__(self, factor: Vector | float) -> Vector:
        number = factor.name if isinstance(factor, Vector) else self.code.constant(factor)
        return self.code.vector(f"fmul {self.code.kind} {self.name}, {number}")

    def __neg__(self) -> Vector:
        return self.code.vector(f"fneg {self.code.kind} {self.name}")


@dataclass(frozen=True, slots=True)
class Index:
    """A whole number of 64 bits, not negative where it is divided."""

    code: Assembly
    name: str

    def _with(self, operation: str, other: Index | int) -> Index:
        return Index(self.code, self.code.new(f"{operation} i64 {self.name}, {_text(other)}"))

    def __add__(self, other: Index | int) -> Index:
        return self if other == 0 else self._with("add nsw", other)

    def __sub__(self, other: Index | int) -> Index:
        return self if other == 0 else self._with("sub nsw", other)

    def __mul__(self, other: Index | int) -> Index:
        return self if other == 1 else self._with("mul nsw", other)

    def __floordiv__(self, other: Index | int) -> Index:
        return self if other == 1 else self._with("udiv", other)

    def __mod__(self, other: Index | int) -> Index:
        return self._with("urem", other)

    def least(self, other: Index | int) -> Index:
        """Return the smaller of two."""
        return self._chosen("slt", other)

    def most(self, other: Index | int) -> Index:
        """Return the larger of two."""
        return self._chosen("sgt", other)

    def _chosen(self, comparison: str, other: Index | int) -> Index:
        bit = self.code.new(f"icmp {comparison} i64 {self.name}, {_text(other)}")
        choice = f"select i1 {bit}, i64 {self.name}, i64 {_text(other)}"
        return Index(self.code, self.code.new(choice))

    def compared(self, comparison: str, other: Index | int) -> str:
        """Return a comparison such as ``sge`` with another, as a bit."""
        return self.code.new(f"icmp {comparison} i64 {self.name}, {_text(other)}")

    def unless(self, bit: str, other: Index | int) -> Index:
        """Return another where a bit is set, else itself."""
        choice = f"select i1 {bit}, i64 {_text(other)}, i64 {self.name}"
        return Index(self.code, self.code.new(choice))

    def within(self, size: Index | int) -> str:
        """Return whether it is at least 0 and below a size, as a bit."""
        return self.code.new(f"icmp ult i64 {self.name}, {_text(size)}")


def _text(value: Index | int) -> str:
    return value.name if isinstance(value, Index) else str(value)


@dataclass(slots=True)
class Loop:
    """A loop that is being written.

    Attributes:
        index: Its counter.
        values: Vectors that it carries from turn to turn; set ``after`` to their next values.
        after: What they become at the end of a turn; behind the loop, what they ended as.
    """

    index: Index
    values: list[Vector] = field(default_factory=list)
    after: list[Vector] = field(default_factory=list)


class Assembly:
    """The text of one kernel, ``void @name(i64 %block)``, as it is written.

    Args:
        element: "float" or "double".
        lanes: Elements of a vector.
    """

    def __init__(self, element: str, lanes: int) -> None:
        self.element = element
        self.lanes = lanes
        self.kind = f"<{lanes} x {element}>"
        self._suffix = f"v{lanes}f{8 * _SIZES[element]}"
        self._lines: list[str] = []
        self._count = 0
        self._block = "entry"

    def text(self, name: str, more: str = "") -> str:
        """Return the module that defines the kernel, of a block and of ``more`` parameters."""
        kind, suffix, bits = self.kind, self._suffix, f"<{self.lanes} x i1>"
        head = (
            "declare i32 @omp_get_thread_num()",
            "declare i32 @omp_get_num_threads()",
            "declare void @GOMP_barrier()",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
            f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})",
            f"declare {kind} @llvm.masked.load.{suffix}.p0(ptr, i32, {bits}, {kind})",
            f"declare void @llvm.masked.store.{suffix}.p0({kind}, ptr, i32, {bits})",
            f"declare {self.element} @llvm.vector.reduce.fadd.{suffix}({self.element}, {kind})",
            f"define void @{name}({', '.join(filter(None, ('i64 %block', more)))}) {{",
            "entry:",
        )
        return "\n".join((*head, *self._lines, "  ret void", "}", "!0 = !{i32 1}"))

    def do(self, text: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {text}")

    def new(self, text: str) -> str:
        """Write an instruction, and return the name of its result."""
        self._count += 1
        self.do(f"%t{self._count} = {text}")
        return f"%t{self._count}"

    def vector(self, text: str) -> Vector:
        """Write an instruction whose result is a vector."""
        return Vector(self, self.new(text))

    def index(self, value: int) -> Index:
        """Return a constant index."""
        return Index(self, str(value))

    def constant(self, number: float) -> str:
        """Return the text of a vector of equal numbers, rounded to the element type."""
        kind = np.float32 if self.element == "float" else np.float64
        # LLVM takes the bits of a double for either type.
        bits = np.float64(kind(number)).view(np.uint64)
        return f"<{', '.join([f'{self.element} 0x{bits:016X}'] * self.lanes)}>"

    def zero(self) -> Vector:
        """Return a vector of zeros."""
        return Vector(self, "zeroinitializer")

    def fma(self, a: Vector, b: Vector, c: Vector) -> Vector:
        """Return ``a * b + c``, rounded once."""
        kind = self.kind
        return self.vector(
            f"call {kind} @llvm.fma.{self._suffix}({kind} {a.name}, {kind} {b.name}, "
            f"{kind} {c.name})"
        )

    def relu(self, a: Vector) -> Vector:
        """Return ``max(a, 0)``, NaN for NaN."""
        below = self.new(f"fcmp olt {self.kind} {a.name}, zeroinitializer")
        kind = self.kind
        return self.vector(
            f"select <{self.lanes} x i1> {below}, {kind} zeroinitializer, {kind} {a.name}"
        )

    def words(self, names: Sequence[str]) -> dict[str, str]:
        """Load the addresses that the kernel's block begins with, by names."""
        block = self.new("inttoptr i64 %block to ptr")
        places = [self.new(f"getelementptr i64, ptr {block}, i64 {i}") for i in range(len(names))]
        return {name: self.new(f"load ptr, ptr {p}") for name, p in zip(names, places, strict=True)}

    def numbers(self, names: Sequence[str], first: int) -> dict[str, Index]:
        """Load numbers from the kernel's block, beginning with word ``first``, by names."""
        block = self.new("inttoptr i64 %block to ptr")
        found = {}
        for word, name in enumerate(names, first):
            place = self.new(f"getelementptr i64, ptr {block}, i64 {word}")
            found[name] = Index(self, self.new(f"load i64, ptr {place}"))
        return found

    def at(self, base: str, offset: Index | int) -> str:
        """Return the address of an element."""
        if offset == 0:
            return base
        return self.new(f"getelementptr {self.element}, ptr {base}, i64 {_text(offset)}")

    def choose(self, bit: str, one: str, other: str) -> str:
        """Return one of two addresses."""
        return self.new(f"select i1 {bit}, ptr {one}, ptr {other}")

    def both(self, one: str, other: str) -> str:
        """Return whether two bits are set."""
        return self.new(f"and i1 {one}, {other}")

    def load(self, base: str, offset: Index | int = 0, count: Index | int | None = None) -> Vector:
        """Load a vector from elements beside one another; behind the first ``count``, zeros."""
        place, align = self.at(base, offset), _SIZES[self.element]
        if count is None or (isinstance(count, int) and count >= self.lanes):
            return self.vector(f"load {self.kind}, ptr {place}, align {align}")
        return self.vector(
            f"call {self.kind} @llvm.masked.load.{self._suffix}.p0(ptr {place}, i32 {align}, "
            f"{self._first(count)}, {self.kind} zeroinitializer)"
        )

    def stream(self, value: Vector, base: str, offset: Index | int = 0) -> None:
        """Store a vector past the caches, to an address that is a multiple of its size.

        Such stores come in no order with others until a locked instruction, such as those of
        ``taken``: a kernel that has none must not end with them.
        """
        place, size = self.at(base, offset), self.lanes * _SIZES[self.element]
        self.do(f"store {self.kind} {value.name}, ptr {place}, align {size}, !nontemporal !0")

    def store(
        self,
        value: Vector,
        base: str,
        offset: Index | int = 0,
        count: Index | int | None = None,
    ) -> None:
        """Store a vector, or its first ``count`` elements, to elements beside one another."""
        place, align = self.at(base, offset), _SIZES[self.element]
        if count is None or (isinstance(count, int) and count >= self.lanes):
            self.do(f"store {self.kind} {value.name}, ptr {place}, align {align}")
            return
        self.do(
            f"call void @llvm.masked.store.{self._suffix}.p0({self.kind} {value.name}, "
            f"ptr {place}, i32 {align}, {self._first(count)})"
        )

    def _first(self, count: Index | int) -> str:
        """Return the mask of the first elements."""
        if isinstance(count, Index):
            kind = f"<{self.lanes} x i64>"
            one = self.new(f"insertelement {kind} poison, i64 {count.name}, i64 0")
            zeros = f"<{self.lanes} x i32> zeroinitializer"
            all_of_them = self.new(f"shufflevector {kind} {one}, {kind} poison, {zeros}")
            places = ", ".join(f"i64 {place}" for place in range(self.lanes))
            mask = self.new(f"icmp slt {kind} <{places}>, {all_of_them}")
            return f"<{self.lanes} x i1> {mask}"
        bits = ", ".join(f"i1 {str(place < count).lower()}" for place in range(self.lanes))
        return f"<{self.lanes} x i1> <{bits}>"

    def total(self, value: Vector) -> str:
        """Return the sum of a vector's elements, in an order that is always the same."""
        suffix, element = self._suffix, self.element
        return self.new(
            f"call reassoc {element} @llvm.vector.reduce.fadd.{suffix}"
            f"({element} -0.0, {self.kind} {value.name})"
        )

    def put(self, number: str, base: str, offset: Index | int = 0) -> None:
        """Store one element."""
        self.do(f"store {self.element} {number}, ptr {self.at(base, offset)}")

    def element_at(self, base: str, offset: Index | int = 0) -> str:
        """Load one element."""
        return self.new(f"load {self.element}, ptr {self.at(base, offset)}")

    def spread(self, base: str, offset: Index | int = 0) -> Vector:
        """Load an element into all places of a vector."""
        value = self.new(f"load {self.element}, ptr {self.at(base, offset)}")
        return self._spread(value)

    def reciprocal(self, base: str, offset: Index | int = 0) -> Vector:
        """Load an element, and return what is one divided by it in all places of a vector."""
        value = self.new(f"load {self.element}, ptr {self.at(base, offset)}")
        return self._spread(self.new(f"fdiv {self.element} 1.0, {value}"))

    def _spread(self, value: str) -> Vector:
        one = self.new(f"insertelement {self.kind} poison, {self.element} {value}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.vector(f"shufflevector {self.kind} {one}, {self.kind} poison, {mask}")

    def collect(self, base: str, stride: int) -> Vector:
        """Load a vector from elements a stride apart."""
        value = "poison"
        for lane in range(self.lanes):
            each = self.new(f"load {self.element}, ptr {self.at(base, lane * stride)}")
            value = self.new(
                f"insertelement {self.kind} {value}, {self.element} {each}, i64 {lane}"
            )
        return Vector(self, value)

    def transposed(self, rows: Sequence[Vector]) -> list[Vector]:
        """Return the columns of as many rows as a vector has elements."""
        rows, step, places = list(rows), 1, range(self.lanes)
        while step < self.lanes:
            lower = [j if not j & step else self.lanes + j - step for j in places]
            upper = [j + step if not j & step else self.lanes + j for j in places]
            for i in (i for i in places if not i & step):
                one, other = rows[i], rows[i + step]
                rows[i] = self._mixed(one, other, lower)
                rows[i + step] = self._mixed(one, other, upper)
            step *= 2
        return rows

    def _mixed(self, one: Vector, other: Vector, places: Sequence[int]) -> Vector:
        """Return a vector of elements of two, numbered through."""
        mask = ", ".join(f"i32 {place}" for place in places)
        return self.vector(
            f"shufflevector {self.kind} {one.name}, {self.kind} {other.name}, "
            f"<{self.lanes} x i32> <{mask}>"
        )

    def prefetch(self, base: str, offset: Index | int = 0) -> None:
        """Ask for the cache line of an element, which may be beyond the end of what there is."""
        self.do(f"call void @llvm.prefetch.p0(ptr {self.at(base, offset)}, i32 0, i32 3, i32 1)")

    def local(self, count: int) -> str:
        """Return the address of so many elements that are the calling thread's own; of few KiB."""
        return self.new(f"alloca [{count} x {self.element}], align 64")

    def barrier(self) -> None:
        """Wait for the other threads."""
        self.do("call void @GOMP_barrier()")

    def part(self, units: Index | int) -> tuple[Index, Index, Index]:
        """Return the thread's number, and the first of its units and the one behind its last."""
        me, team = self._number("omp_get_thread_num"), self.team()
        count = units if isinstance(units, Index) else self.index(units)
        return me, me * count // team, (me + 1) * count // team

    def team(self) -> Index:
        """Return the number of threads."""
        return self._number("omp_get_num_threads")

    def _number(self, function: str) -> Index:
        return Index(self, self.new(f"sext i32 {self.new(f'call i32 @{function}()')} to i64"))

    @contextmanager
    def loop(
        self,
        first: Index | int,
        last: Index | int,
        step: int = 1,
        values: Sequence[Vector] = (),
    ) -> Iterator[Loop]:
        """Write a loop from ``first`` to below ``last``; what is written inside is its body."""
        self._count += 1
        label, before = f"l{self._count}", self._block
        head = len(self._lines)
        index = Index(self, f"%{label}.i")
        inside = [Vector(self, f"%{label}.v{i}") for i in range(len(values))]
        self._begin(f"{label}.body")
        state = Loop(index, inside)
        yield state
        for name, value in zip(inside, state.after, strict=True):
            # A name for what the turn ends with, so that the next begins with it.
            self.do(f"{name.name}.n = bitcast {self.kind} {value.name} to {self.kind}")
        self.do(f"{index.name}.n = add nsw i64 {index.name}, {step}")
        self.do(f"br label %{label}.head")
        back = self._block
        # The head knows only now from where the loop comes back.
        lines = [f"  br label %{label}.head", f"{label}.head:"]
        lines.append(
            f"  {index.name} = phi i64 [ {_text(first)}, %{before} ], [ {index.name}.n, %{back} ]"
        )
        for name, value in zip(inside, values, strict=True):
            lines.append(
                f"  {name.name} = phi {self.kind} [ {value.name}, %{before} ], "
                f"[ {name.name}.n, %{back} ]"
            )
        lines.append(f"  {index.name}.more = icmp slt i64 {index.name}, {_text(last)}")
        lines.append(f"  br i1 {index.name}.more, label %{label}.body, label %{label}.done")
        self._lines[head:head] = lines
        self._begin(f"{label}.done")
        state.after = inside

    @contextmanager
    def when(self, bit: str) -> Iterator[None]:
        """Write what is done only where a bit is set; it yields no values."""
        self._count += 1
        label = f"w{self._count}"
        self.do(f"br i1 {bit}, label %{label}.then, label %{label}.end")
        self._begin(f"{label}.then")
        yield
        self.do(f"br label %{label}.end")
        self._begin(f"{label}.end")

    @contextmanager
    def taken(self, counter: str, count: int) -> Iterator[Index]:
        """Write a loop whose turns the threads take one by one, each when it is ready for more.

        Cores are seldom equally fast: of two in a virtual machine the slower one came to 0.7 of
        the other, now this one and now that. A thread that gets half of the turns beforehand is
        waited for.

        Args:
            counter: The address of two words of memory, 64 bytes apart, such as ``counter_in``
                returns. They are 0 before the kernel runs, and again when all threads have left
                the loop. A kernel can have one such loop for each.
            count: The number of turns.
        """
        self._count += 1
        label, before = f"l{self._count}", self._block
        left = self.new(f"getelementptr i8, ptr {counter}, i64 64")
        take = f"atomicrmw add ptr {counter}, i64 1 monotonic"
        self.do(f"%{label}.f = {take}")
        self.do(f"br label %{label}.head")
        self._begin(f"{label}.head")
        head = len(self._lines)
        self._begin(f"{label}.body")
        yield Index(self, f"%{label}.i")
        self.do(f"%{label}.n = {take}")
        self.do(f"br label %{label}.head")
        # The head knows only now from where the loop comes back.
        ways = f"[ %{label}.f, %{before} ], [ %{label}.n, %{self._block} ]"
        self._lines[head:head] = [
            f"  %{label}.i = phi i64 {ways}",
            f"  %{label}.more = icmp slt i64 %{label}.i, {count}",
            f"  br i1 %{label}.more, label %{label}.body, label %{label}.done",
        ]
        self._begin(f"{label}.done")
        gone = Index(self, self.new(f"atomicrmw add ptr {left}, i64 1 acq_rel")) + 1
        last = self.new(f"icmp eq i64 {gone.name}, {self.team().name}")
        self.do(f"br i1 {last}, label %{label}.reset, label %{label}.end")
        self._begin(f"{label}.reset")
        for word in (counter, left):
            self.do(f"store i64 0, ptr {word}")
        self.do(f"br label %{label}.end")
        self._begin(f"{label}.end")

    def _begin(self, block: str) -> None:
        self._lines.append(f"{block}:")
        self._block = block
