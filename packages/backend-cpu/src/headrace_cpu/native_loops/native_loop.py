"""Sources of native loops, and what calls them.

A native loop is written in the Python of kernels (``native.translate``) with placeholders for
dtypes, and gets everything by words: addresses and sizes. So there is one for each combination of
dtypes.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from textwrap import indent
from typing import Any

import numpy as np

from headrace.extend.records import dataclass
from headrace_cpu.native.memory import address
from headrace_cpu.native.source import KernelSource
from headrace_cpu.native.threads import bare_kernel, open_mp

# What every native loop gets first: the functions of OpenMP, and a word to tell of what is wrong
# with.
TEAM = ("number_of", "count_of", "barrier", "status")
_BEGIN = """\
me, team = 0, 1
if number_of != 0:
    me, team = ask(number_of), ask(count_of)
"""
# So deep may parts stand within parts.
_DEPTH = 4
STATUS = TEAM.index("status")

# The codes of dtypes in kernels.
CODES: Mapping[str, str] = {
    "bool": "b8", "int8": "i8", "uint8": "u8", "int16": "i16", "uint16": "u16", "int32": "i32",
    "uint32": "u32", "int64": "i64", "uint64": "u64", "float32": "f32", "float64": "f64",
}  # fmt: skip
SIZES: Mapping[str, int] = {
    "b8": 1, "i8": 1, "u8": 1, "i16": 2, "u16": 2, "i32": 4, "u32": 4, "f32": 4, "i64": 8,
    "u64": 8, "f64": 8, "u128": 16,
}  # fmt: skip


def code_of(dtype: Any) -> str | None:
    """Return the code of a dtype in kernels, None where they do not compute with it."""
    return CODES.get(np.dtype(dtype).name)


@dataclass(frozen=True, slots=True)
class NativeLoop:
    """The source of a native loop.

    Attributes:
        name: What it is called, without its dtypes.
        words: What its block holds, by the names that the text has for it.
        text: Its statements. ``load_X`` is of the dtype that stands for X, ``SIZE_X`` its bytes.
        types: What stands for each capital letter.
        parts: Further texts, by the names that stand for them in the text, each in a line of its
            own; they are written where they stand.
    """

    name: str
    words: tuple[str, ...]
    text: str
    types: Mapping[str, str] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)

    def written(self) -> str:
        """Return the text with its parts."""
        text = self.text
        for _ in range(_DEPTH):
            for name, part in self.parts.items():
                text = _with_part(text, name, part)
        return text

    def source(self) -> KernelSource:
        """Return the kernel."""
        words = (*TEAM, *self.words)
        reads = "".join(f"{word} = word(block, {i})\n" for i, word in enumerate(words))
        body = reads + _BEGIN + self.written()
        for letter, code in self.types.items():
            body = body.replace(f"SIZE_{letter}", str(SIZES.get(code, 0)))
            body = re.sub(rf"_{letter}\b", f"_{code}", body)
        name = "_".join((self.name, *self.types.values()))
        return KernelSource(name, f"def {name}(block):\n{indent(body, '    ')}")


def _with_part(text: str, name: str, part: str) -> str:
    """Return a text with a part in place of the lines that name it."""

    def placed(found: re.Match[str]) -> str:
        return indent(part, found[1]).rstrip()

    return re.sub(rf"^( *){name}$", placed, text, flags=re.MULTILINE)


@functools.cache
def _team() -> tuple[int, int, int]:
    """Return the addresses of OpenMP's functions."""
    pool = open_mp()
    assert pool is not None
    symbols = pool.symbols
    names = ("omp_get_thread_num", "omp_get_num_threads", "GOMP_barrier")
    number, count, barrier = (symbols[name] for name in names)
    return number, count, barrier


class Call:
    """Calls a native loop; several threads may at once."""

    __slots__ = ("_bare", "_count", "_free", "_pack", "_place")

    def __init__(self, place: int, count: int) -> None:
        """Call what is at an address.

        Args:
            place: The address.
            count: How many words it takes, besides those that all native loops get.
        """
        self._place = place
        self._bare = bare_kernel(place)
        self._count = count + len(TEAM)
        self._pack = struct.Struct(f"{self._count}q").pack_into
        self._free: list[tuple[Any, int]] = []

    def __call__(self, threads: int, *words: int) -> int:
        """Run it.

        Args:
            threads: How many threads may do so together.
            words: Addresses and sizes.

        Returns:
            Its status: 0 where all went well.
        """
        try:
            held = self._free.pop()
        except IndexError:
            made = np.empty(self._count, np.int64)
            held = made, address(made)
        block, where = held
        pool = open_mp() if threads > 1 else None
        if pool is None:
            self._pack(block, 0, 0, 0, 0, 0, *words)
            self._bare(where)
        else:
            self._pack(block, 0, *_team(), 0, *words)
            pool.parallel(self._place, where, threads, 0)
        status: int = block.item(STATUS)
        self._free.append(held)
        return status


def set_status(code: int = 1) -> str:
    """Return the statement by which a native loop says that something is wrong."""
    return f"set_word(block, {STATUS}, {code})"


# Elements of work that are worth a thread: waking one takes some microseconds.
_WORTH_A_THREAD = 1 << 13


def team_for(work: int, threads: int) -> int:
    """Return how many threads are worth so much work.

    Args:
        work: Elements, of about a nanosecond each.
        threads: How many there are.
    """
    return max(1, min(threads, work // _WORTH_A_THREAD))


Run = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What a node's native loops are, and how they compute its outputs.

    Attributes:
        native_loops: The sources.
        run: Called as ``run(calls, threads, *values)`` with what calls each of them, how many
            threads it may use, and the node's inputs; returns the outputs, or None where the plain
            kernel is to compute them, or to say what is wrong with the inputs.
        only: Returns the job that yields but some of the outputs, and None for others; None where
            that is the same work.
    """

    native_loops: Sequence[NativeLoop]
    run: Run
    only: Callable[[Sequence[bool]], Job] | None = None
