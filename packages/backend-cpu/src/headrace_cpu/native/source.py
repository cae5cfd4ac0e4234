"""Sources of generated kernels, and the words that they are written with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal

from headrace.extend.records import dataclass

# Buffers that a kernel can tell apart: the number of an access says which one it touches.
MAX_BUFFERS = 48


def _none() -> Mapping[Any, Any]:
    return {}


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Functions that kernels call besides those that all have (``native.instructions``).

    Attributes:
        modules: Names of the modules, or packages, that define them. A change of their files makes
            kernels compile anew.
        functions: Imports them, and returns what writes the call of each, by name; it is called
            only when a kernel is compiled. A function whose key is no name is given one by the
            kernel, such as ``exp = FUNCTIONS["Exp", "float32"]``.
    """

    modules: tuple[str, ...] = ()
    functions: Callable[[], Mapping[Any, Any]] = _none


@dataclass(frozen=True, slots=True)
class KernelSource:
    """A generated kernel, ``void name(int64_t *block)``.

    Attributes:
        name: The name of its function.
        text: Its source. In "python" it defines ``def name(block)``, where ``block`` is the address
            of a block of 64-bit words, in the little of Python that ``native.translate`` knows. In
            "llvm" it is a module of LLVM's assembly that defines ``void @name(i64 %block)``.
        language: In what it is written.
        vocabulary: What a text in Python calls.
        slp: Whether LLVM makes vectors of statements beside one another, too (superword-level
            parallelism), not of loops only. It is for loops of a few steps, which are unrolled.
    """

    name: str
    text: str
    language: Literal["python", "llvm"] = "python"
    vocabulary: Vocabulary = field(default=Vocabulary(), compare=False)
    slp: bool = False
