"""The kernels of a program: compiled while a step waits, or behind the steps, and adopted together.

Some instructions go by whether the kernels of others are there, so all change over at once, between
two bindings. What fails is told when they do, as if they had been compiled there and then.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence

from headrace.extend.devices import Background
from headrace_cpu.native.compiler import give_up
from headrace_cpu.native.report import Compiled, compiling_for, tell
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.settings import CompileSettings

# A run that takes so long without kernels begins with those that the cache has: what loads them is
# imported meanwhile, in up to 0.05 s.
_LONG_S = 0.025


class Compilation:
    """Compiles the kernels of some instructions, once."""

    def __init__(self, instructions: Sequence[Instruction], settings: CompileSettings) -> None:
        """Begin with nothing."""
        self._instructions = instructions
        self._settings = settings
        self._work = Compiled()
        self._found: dict[Instruction, list[int] | Exception] = {}
        self._since = 0.0
        self._behind = False
        self._done = False
        self._after = settings.compile_after

    def begins(self) -> bool:
        """Whether the first run is to have kernels: the cache has them, and it is long without."""
        long = [each for each in self._instructions if each.plain_seconds()]
        if sum(each.plain_seconds() for each in long) < _LONG_S:
            return False
        # lazy: what is small never comes here
        from headrace_cpu.native.build import is_at_hand

        if not all(is_at_hand(source) for each in long for source in each.kernels()):
            return False
        self._after = 0
        return True

    def wait(self) -> None:
        """Compile all, on all threads of the session; return when they are compiled."""
        self._behind = False
        pieces = self._begin()
        others = min(self._settings.threads, len(pieces)) - 1
        if others < 1:
            for piece in pieces:
                piece()
            return
        together = Background()
        together.submit(pieces, lambda: None, threads=others)
        together.close(drop=False)

    def start(
        self, background: Background, done: Callable[[], object], lost: Callable[[], object]
    ) -> None:
        """Have all compiled behind the steps, on half of the threads of the session.

        Args:
            background: What does so.
            done: Called when they are compiled, by another thread.
            lost: Called when that will not be.
        """
        self._behind = True
        pieces = self._begin()
        threads = max(1, self._settings.threads // 2)
        if pieces:
            background.submit(pieces, done, threads=threads, dropped=lost)
        else:
            done()

    def adopt(self) -> None:
        """Let the instructions run what was compiled, and tell of it.

        Raises:
            KernelError: if something did not compile, where that is an error.
        """
        self._done = True
        if self._work.kernels:
            self._work.seconds = time.perf_counter() - self._since
            tell(self._work)
        for instruction, found in self._found.items():
            try:
                if isinstance(found, Exception):
                    raise found
                instruction.adopt(found)
            except Exception as error:
                # Whatever is wrong with a generator: what it generates for still works without.
                give_up((op.type for op in instruction.ops), error, self._settings.verify)
        self._found.clear()

    @property
    def done(self) -> bool:
        """Whether instructions run what was compiled."""
        return self._done

    def describe(self, left: int | None) -> str:
        """Return what became of the kernels.

        Args:
            left: How many runs are left before they are compiled, None where none is.
        """
        after = self._after
        why = f"after {after} run{'s' * (after != 1)}" if after else "before the first run"
        if left is not None:
            when = f"after {left} more run{'s' * (left != 1)}" if left else "with the next run"
            return f"no kernels yet, NumPy does their work: compiled {when}"
        if not self._done:
            seconds = time.perf_counter() - self._since
            since = f"since it has run {after} times" if after else "before the first run"
            return f"kernels being compiled for {seconds:.1f} s, {since}"
        where = "behind the steps" if self._behind else "while the step waited"
        work = self._work
        if work.kernels:
            return f"{work}, {why}, {where}"
        if work.cached:
            return f"{work.cached} kernels from the cache, {why}, {where}"
        return f"kernels that the process had, {why}"

    def _begin(self) -> list[Callable[[], None]]:
        self._since = time.perf_counter()
        return [functools.partial(self._compile, each) for each in self._instructions]

    def _compile(self, instruction: Instruction) -> None:
        with compiling_for(self._work):
            try:
                self._found[instruction] = instruction.compiled()
            except Exception as error:
                self._found[instruction] = error
