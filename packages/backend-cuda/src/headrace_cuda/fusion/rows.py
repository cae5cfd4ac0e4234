"""Passes over rows, in CUDA C++: some threads share a row, and go over it in phases."""

from __future__ import annotations

from math import prod

from headrace_cpu.for_backends import Root, Value
from headrace_cuda.fusion.text import FOLDS, TYPES, identity
from headrace_cuda.fusion.writer import CHUNK, THREADS, Piece, Writer, indented, power, wide


class RowsWriter(Writer):
    """Some threads for each row, which go over it once in each phase."""

    def write(self) -> Piece:
        """Return the piece."""
        step, sizes = self.step, self.sizes
        outer, last = step.dims[:-1], step.dims[-1]
        rows, size = prod(sizes[d] for d in outer), sizes[last]
        self.varying = frozenset({last})
        across = 1 if size <= 4 else min(1024 if size > 8192 else THREADS, power(-(-size // 4)))
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
        loop = [f"for ({steps}) {{", *indented([*self.inner, *ends]), "}"]
        lines = [*self.row, *begin, *loop]
        self.row = []
        for value in reductions:
            self._join(value, size)
        return lines

    def _own(self, value: Value, size: int) -> str:
        """Return the code in which a thread reduces what it sees."""
        return wide(value) if size > CHUNK * self.across else value.code

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
