"""Reductions along any dimensions, in CUDA C++.

Where neighbors in memory belong to different results, neighboring threads work on neighboring
results; elsewhere they share one. Where there are too few results for all processors, each is cut
into parts, which a second pass joins in their order: so that equal operands give equal bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from headrace_cpu.for_backends import Space, Value
from headrace_cuda.fusion.passes import Kind, Pass
from headrace_cuda.fusion.text import FOLDS, TYPES, identity
from headrace_cuda.fusion.writer import (
    CHUNK,
    SEVERAL,
    THREADS,
    Parameters,
    Piece,
    Word,
    Writer,
    indented,
    power,
    wide,
)

# A thread reduces so many elements before a reduction is cut into parts.
_LEAST_SHARE = 32


def partials(step: Pass, space: Space, processors: int) -> int:
    """Return into how many parts a reduction is cut, so that there is work for all processors."""
    if step.kind is not Kind.REDUCE:
        return 1
    shape = ReductionShape(step, space)
    wanted = -(-8 * processors // shape.blocks)
    most = shape.reduced // (shape.threads * _LEAST_SHARE)
    return max(1, min(wanted, most, 1024))


class ReductionShape:
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
            self.across = min(32, power(sizes[step.dims[-1]]))
            self.blocks = -(-self.kept // self.across)
        else:
            self.across = min(THREADS, power(-(-self.reduced // 4)))
            self.blocks = -(-self.kept // (THREADS // self.across))
        self.down = THREADS // self.across

    @property
    def threads(self) -> int:
        """How many threads share what one result is made of."""
        return self.down if self.columns else self.across


class ReduceWriter(Writer):
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
        self.shape = ReductionShape(step, space)
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
        long = share > CHUNK * threads
        codes = {v: wide(v) if long else v.code for v in reductions}
        given = ", ".join(f"{TYPES[v.args[0].code]} &o{v.number}" for v in reductions)
        ends = [f"o{v.number} = {self.value(v.args[0])};" for v in reductions]
        lines = [
            *self.found(count, mine, shape.kept, "kept"),
            f"const {self.index} begin = ({self.index})block_y * {share};",
            f"const {self.index} last = min(begin + {share}, ({self.index}){shape.reduced});",
            *self.decoded(step.kept, "kept"),
            *self.row,
            *(_begun(v, codes[v]) for v in reductions),
            f"auto one = [&](const {self.index} part, {given}) {{",
            *indented([*self.decoded(step.over, "part"), *self.inner, *ends]),
            "};",
            f"{self.index} part = begin + {thread};",
            # Several loads are on the way at once.
            f"for (; part + {(SEVERAL - 1) * threads} < last; part += {SEVERAL * threads}) {{",
            *indented(self._folded(reductions, codes, SEVERAL, threads)),
            "}",
            f"for (; part < last; part += {threads}) {{",
            *indented(self._folded(reductions, codes, 1, threads)),
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
                lines.append(
                    f"{name} = {fold}()({name}, ({TYPES[codes[value]]})a{value.number}_{k});"
                )
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


def _begun(value: Value, code: str) -> str:
    """Return what begins a fold."""
    return f"{TYPES[code]} f{value.number} = {identity(value.name, code)};"


class JoinWriter(Writer):
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
        across = min(THREADS, power(parts)) if kept < 4096 else 1
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
