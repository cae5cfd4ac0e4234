"""Blocks: the words that a kernel gets, bound to the buffers of one instance of a program.

A kernel is ``void kernel(int64_t *block)``. The words of its block are addresses of tensors and of
scratch memory, addresses of functions, and numbers. Tensors whose address is not known when an
instruction is bound get their words in each step, before the kernel runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import numpy as np

from headrace import Tensor
from headrace_cpu.native.memory import address
from headrace_cpu.native.threads import launch, open_mp
from headrace_cpu.program.instruction import Addresses, Bound, Native, NativeCall, setter_of_all


class Block:
    """The words of one kernel of one instance.

    Attributes:
        words: The words.
        address: Where they are.
        late: The words of tensors whose addresses are not known yet, each with the bytes that are
            added to the address.
    """

    def __init__(self, count: int, at: Addresses) -> None:
        """Begin with zeros.

        Args:
            count: How many words the kernel knows.
            at: Where the instance has its buffers.
        """
        self.words = np.zeros(count, np.int64)
        self.address = address(self.words)
        self._at = at
        self.late: dict[Tensor, list[tuple[int, int]]] = {}

    def bind(self, tensor: Tensor, word: int, offset: int = 0) -> None:
        """Let a word be a tensor's address.

        Args:
            tensor: The tensor, or the handle of a variable.
            word: The number of the word.
            offset: Bytes that are added to the address.
        """
        known = self._at.of(tensor)
        if known is None:
            self.late.setdefault(tensor, []).append((word, offset))
        else:
            self.words[word] = known + offset

    def bind_scratch(self, word: int, offset: int = 0) -> None:
        """Let a word be an address in the instruction's scratch memory."""
        self.words[word] = self._at.scratch() + offset

    def bind_team(self, thread: int, threads: int, barrier: int) -> None:
        """Let words be the addresses of OpenMP's functions; they stay 0 where there is none."""
        pool = open_mp()
        if pool is not None:
            self.words[thread] = pool.symbols["omp_get_thread_num"]
            self.words[threads] = pool.symbols["omp_get_num_threads"]
            self.words[barrier] = pool.symbols["GOMP_barrier"]

    def launch(self, kernel: int, threads: int) -> Callable[[], object]:
        """Return what runs a kernel on the block, on so many threads."""
        call = self.kept(launch(kernel, self.address, threads))
        call.__dict__["native"] = NativeCall(kernel, (self.address,), threads)
        return call

    def kept(self, call: Callable[[], object]) -> Callable[[], object]:
        """Return a call that keeps the block alive: what reads it knows its address only."""
        call.__dict__["block"] = self.words
        return call


def bound(
    call: Callable[[], object], blocks: Iterable[Block], tensors: Iterable[Tensor], at: Addresses
) -> Bound:
    """Return an instruction bound to its buffers.

    Args:
        call: Runs it. Where it has a ``native``, a ``NativeCall`` or a tuple of them, that does all
            that it does; a ``refused``
            says what is to be done where one of them has reported something.
        blocks: The blocks of its kernels.
        tensors: All that the instruction names. Those without an address yet get one in each step,
            whether or not a kernel reads them.
        at: Where the instance has its buffers.
    """
    late: dict[Tensor, list[Callable[[int], object]]] = {
        tensor: [] for tensor in tensors if at.of(tensor) is None
    }
    words = []
    for block in blocks:
        for tensor, places in block.late.items():
            late[tensor].append(_setter(block.words, places))
            words += [(tensor, block.address + 8 * word, offset) for word, offset in places]
    made = getattr(call, "native", None)
    calls = made if isinstance(made, tuple) else (made,)
    refused = getattr(call, "refused", None)
    native = None if made is None else Native(calls, tuple(words), refused=refused)
    return Bound(call, {tensor: setter_of_all(setters) for tensor, setters in late.items()}, native)


def _setter(words: np.ndarray, places: list[tuple[int, int]]) -> Callable[[int], object]:
    if len(places) == 1 and not places[0][1]:
        # Nothing is quicker than the array's own method.
        return functools.partial(words.__setitem__, places[0][0])

    def put(place: int) -> None:
        for word, offset in places:
            words[word] = place + offset

    return put
