"""Instructions: what a program is made of, each computing one or several operations at once.

An instruction works on memory. It names the tensors that it reads and writes; the program lays
them out, and binds the instruction to their addresses once for each instance of the program.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from headrace import Tensor
from headrace.extend.records import dataclass
from headrace_cpu.native.source import KernelSource
from headrace_cpu.program.implementation import Implementation

# Buffers start at multiples of this many bytes: a cache line, and the widest vector.
ALIGNMENT = 64


class Held(Protocol):
    """A library that can be kept on the threads that call it."""

    def hold(self) -> None:
        """Keep it there, until as many calls of ``let_go``."""

    def let_go(self) -> None:
        """Undo one ``hold``."""


@dataclass(frozen=True, slots=True)
class NativeCall:
    """A call of a function of the machine, of at most four words.

    Attributes:
        function: Its address.
        words: What it takes.
        threads: 1 for a kernel, ``void kernel(int64_t *block)``, of the calling thread; more for
            one of as many threads of the pool, or of the step's share of them where that is
            smaller.
        checked: Whether it returns an int that is not 0 where it fails.
        report: The address of a word that is not 0 after it where it has refused something.
        late: The tensors whose addresses are words of it, by the number of the word.
        own: How many threads the library behind it must be set to, 0 for any number.
        held: The library that must be held while it runs, None where none is.
    """

    function: int
    words: tuple[int, ...]
    threads: int = 1
    checked: bool = False
    report: int = 0
    late: Mapping[int, Tensor] = field(default_factory=dict)
    own: int = 0
    held: Held | None = None


class Inner(Protocol):
    """Tables of calls that a call makes by itself, as a loop among other calls does.

    Attributes:
        own: Whether a library behind some call is set to a number of threads of its own.
        held: The libraries that must be held while it runs.
    """

    own: bool
    held: list[Held]

    def allow(self, threads: int) -> None:
        """Let calls run on so many threads."""

    def pay_from(self, budget: int) -> None:
        """Take what begins a round from the word at an address; come back where it is 0."""

    def reset(self) -> None:
        """Forget what had begun, after a call has failed."""


@dataclass(frozen=True, slots=True)
class Native:
    """What an instruction runs without Python.

    Attributes:
        calls: The calls, in order.
        words: Where words lie that are the address of a tensor and so many bytes, for those whose
            address was not known when it was bound.
        inner: The tables behind the calls.
        set_threads: The address of what sets the number of threads that ``NativeCall.own`` asks
            for, 0 where no call does.
        refused: What is called where a call has reported something, in place of what is left of
            the calls: it makes up for them, or says what is wrong; None where nothing may report.
    """

    calls: tuple[NativeCall, ...]
    words: tuple[tuple[Tensor, int, int], ...] = ()
    set_threads: int = 0
    inner: tuple[Inner, ...] = ()
    refused: Callable[[], object] | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """An instruction bound to the buffers of one instance of a program.

    Attributes:
        call: Runs it; it keeps everything that ``native`` knows by its address.
        point: For each tensor or handle whose address is not known when it is bound, the function
            that takes the address, called in each step before ``call``.
        native: What does the same as ``call`` without Python, None where there is no such thing.
    """

    call: Callable[[], object]
    point: Mapping[Tensor, Callable[[int], object]] = field(default_factory=dict)
    native: Native | None = None


def setter_of_all(setters: Sequence[Callable[[int], object]]) -> Callable[[int], object]:
    """Return what hands an address to each of several setters; see ``Bound.point``."""
    if len(setters) == 1:
        return setters[0]

    def put(place: int) -> None:
        for setter in setters:
            setter(place)

    return put


class Addresses(ABC):
    """Where an instance of a program keeps its buffers."""

    @abstractmethod
    def of(self, tensor: Tensor) -> int | None:
        """Return the address of a tensor's buffer, None where each step has another."""

    @abstractmethod
    def scratch(self) -> int:
        """Return the address of the instruction's scratch memory."""

    def part(self, instruction: Instruction) -> Addresses:
        """Return where an instruction has its buffers that this one is made of, among others."""
        raise NotImplementedError(f"{type(self).__name__} knows no parts")


class Instruction(Implementation, ABC):
    """An implementation that a program binds to its buffers, and runs.

    Buffers that the program allocated are aligned to 64 bytes.
    """

    package = "headrace-backend-cpu"

    @abstractmethod
    def bind(self, at: Addresses) -> Bound:
        """Return what runs the instruction on buffers at ``at``."""

    def kernels(self) -> Sequence[KernelSource]:
        """Return the kernels that it runs once they are compiled; others may compute until then.

        Called by any thread, until they are adopted.
        """
        return ()

    def plain_seconds(self) -> float:
        """Return about how long a run takes without ``kernels``; 0 where these matter little."""
        return 0.0

    def adopt(self, addresses: Sequence[int]) -> None:
        """Run ``kernels``, which are at these addresses, from the next binding on."""

    def prepare(self) -> None:
        """Compile its kernels and adopt them."""
        self.adopt(self.compiled())

    def compiled(self) -> list[int]:
        """Compile its kernels, or take them from the cache; return their addresses."""
        # lazy: the compiler is imported where there is something to compile
        from headrace_cpu.native.build import build

        sources = self.kernels()
        return build(sources) if sources else []
