"""Reduction buffers: shared memory in which the ranks of one host make a sum together.

A rank that reads another's memory, adds up a piece and lets the others read that moves every
element twice between processors. Here each rank writes what it has of another's piece into a
*reduction buffer*, each adds up its own piece in place, and all ranks read the result where it is,
without copying it.

The first rank of a group makes the buffer. Its first page says which ranks still use what is in it;
the owner reuses it when none does. Nobody may change what is in a reduction buffer, so it is handed
out as read-only memory.
"""

from __future__ import annotations

import contextlib
import json
import weakref
from collections.abc import Callable
from typing import Any, final

import numpy as np

from headrace_mpi.shared_memory import mapped_memory
from headrace_mpi.shared_memory.mapped_memory import PAGE_BYTES, Address, SharedMemory
from headrace_mpi.transport.buffers import Array

# How much memory a rank has in reduction buffers at most; what is larger travels in pieces.
MOST_BYTES = 1 << 30
# A reduction buffer is used for what is at least so much smaller.
_SPARE = 1.25
_RETIRED = 0
_FIRST_HOLDER = 1
# There is a word for each holder in the first page.
MOST_RANKS = PAGE_BYTES // 8 - _FIRST_HOLDER


@final
class ReductionBuffer:
    """A reduction buffer as one rank sees it: rows of as many bytes as the tensor has.

    Attributes:
        handle: What other ranks need to find it.
    """

    def __init__(self, shared: SharedMemory, rank: int) -> None:
        """Use ``ReductionBuffers``."""
        self.handle = json.dumps(shared.address)
        self._shared = shared
        self._rank = rank
        self._words = shared.view[:PAGE_BYTES].cast("Q")
        self._held: weakref.ref[Array] | None = None

    @property
    def capacity(self) -> int:
        """How many bytes it has."""
        return self._shared.view.nbytes - PAGE_BYTES

    @property
    def held(self) -> bool:
        """Whether this rank still holds what is on it."""
        return self._held is not None and self._held() is not None

    @property
    def retired(self) -> bool:
        """Whether its owner has given it up."""
        return bool(self._words[_RETIRED])

    def row(self, number: int, nbytes: int, dtype: np.dtype[Any]) -> Array:
        """Return a row, flat, to write on."""
        start = PAGE_BYTES + number * nbytes
        return np.frombuffer(self._shared.view[start : start + nbytes], dtype)

    def result(self, nbytes: int, dtype: np.dtype[Any]) -> Array:
        """Return the first row, flat, to read; it is held until nothing refers to it any more."""
        view = self._shared.view[PAGE_BYTES : PAGE_BYTES + nbytes].toreadonly()
        found: Array = np.frombuffer(view, dtype)
        self._held = weakref.ref(found, _letting_go(self._words, _FIRST_HOLDER + self._rank))
        return found

    def lend(self, ranks: int) -> None:
        """Count it as held by all ranks."""
        for rank in range(ranks):
            self._words[_FIRST_HOLDER + rank] = 1

    def take_back(self, ranks: int) -> None:
        """Count it as held by none: it was offered, and nobody needed it."""
        for rank in range(ranks):
            self._words[_FIRST_HOLDER + rank] = 0

    def is_free(self, ranks: int) -> bool:
        """Whether no rank holds what is on it."""
        return not any(self._words[_FIRST_HOLDER : _FIRST_HOLDER + ranks])

    def let_go(self) -> None:
        """Say that this rank holds nothing of it."""
        _letting_go(self._words, _FIRST_HOLDER + self._rank)(None)

    def retire(self) -> None:
        """Give it up; who has mapped it lets go of it when it next looks."""
        self._words[_RETIRED] = 1
        self.close()

    def close(self) -> None:
        """Let go of the memory, which stays mapped as long as somebody reads it."""
        self._words.release()
        self._shared.close()


def _letting_go(words: memoryview, place: int) -> Callable[[object], None]:
    def let_go(_: object) -> None:
        # Its rank may have let go of the memory before.
        with contextlib.suppress(ValueError):
            words[place] = 0

    return let_go


@final
class ReductionBuffers:
    """The reduction buffers of a group, as a rank sees them; called with the group's lock held.

    Attributes:
        usable: Whether all ranks of the group can map each other's memory, as far as is known.
    """

    def __init__(self, rank: int, ranks: int, usable: bool) -> None:
        """Begin without any.

        Args:
            rank: This rank.
            ranks: How many there are.
            usable: Whether all of them are linked by shared memory.
        """
        self.usable = usable and 1 < ranks <= MOST_RANKS
        self._rank = rank
        self._ranks = ranks
        self._own: list[ReductionBuffer] = []
        self._found: dict[str, ReductionBuffer] = {}

    @property
    def count(self) -> int:
        """How many this rank has made and not given up; for tests."""
        return len(self._own)

    def offer(self, nbytes: int, rows: int | None = None) -> ReductionBuffer | None:
        """Return a buffer with room for a tensor of all ranks; None if there is none to be had.

        Args:
            nbytes: The bytes of the tensor.
            rows: How many of its size are written side by side; None for one less than the ranks.
        """
        total = nbytes * (self._ranks - 1 if rows is None else rows)
        if not self.usable or total > MOST_BYTES:
            return None
        free = [buffer for buffer in self._own if buffer.is_free(self._ranks)]
        fitting = [buffer for buffer in free if total <= buffer.capacity <= _SPARE * total]
        if fitting:
            buffer = min(fitting, key=lambda buffer: buffer.capacity)
            # What was used last is given up last.
            self._own.remove(buffer)
        else:
            while free and sum(b.capacity for b in self._own) + total > MOST_BYTES:
                self.give_up(free.pop(0))
            if sum(b.capacity for b in self._own) + total > MOST_BYTES:
                return None
            try:
                buffer = ReductionBuffer(mapped_memory.make(PAGE_BYTES + total), self._rank)
            except OSError:
                return None
        self._own.append(buffer)
        buffer.lend(self._ranks)
        return buffer

    def find(self, handle: str) -> ReductionBuffer | None:
        """Return the buffer that another rank offers; None if it cannot be mapped."""
        buffer = self._found.get(handle)
        if buffer is None:
            self._sweep()
            if not self.usable:
                return None
            try:
                address = Address(*json.loads(handle))
                buffer = ReductionBuffer(mapped_memory.find(address), self._rank)
            except (OSError, ValueError, TypeError):
                return None
            self._found[handle] = buffer
        return buffer

    def give_up(self, buffer: ReductionBuffer) -> None:
        """Use a buffer no more: its owner retires it."""
        if buffer in self._own:
            self._own.remove(buffer)
            buffer.retire()
        else:
            buffer.let_go()

    def _sweep(self) -> None:
        for handle, buffer in list(self._found.items()):
            if buffer.retired and not buffer.held:
                del self._found[handle]
                buffer.close()

    def close(self) -> None:
        """Let go of all."""
        self.usable = False
        for buffer in self._own:
            buffer.retire()
        for buffer in self._found.values():
            buffer.close()
        self._own.clear()
        self._found.clear()
