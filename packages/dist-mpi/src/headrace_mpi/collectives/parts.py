"""Values of other ranks: those that have arrived, and those that wait in the memory of their rank.

On one host a rank can read another's memory (``process_vm_readv`` of Linux), where the system lets
it: one copy, out of the sender's tensor into where it is needed, and nothing to set up, recycle or
clean away. The sender says where its tensor is, and keeps it until all have read it.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from typing import Any, Protocol, final

import numpy as np

from headrace.errors import UnavailableError
from headrace_mpi.settings import READ_MEMORY

Array = np.ndarray[Any, Any]


class Part(Protocol):
    """A rank's value of a collective, flat."""

    @property
    def size(self) -> int:
        """Number of elements."""

    def read(self, start: int, stop: int, room: Array) -> Array:
        """Return some of the elements: where they are, or read into ``room``."""


@final
class LocalPart:
    """A value that is in this process."""

    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        """Take a flat array."""
        self.array = array

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.array.size

    def read(self, start: int, stop: int, room: Array) -> Array:
        """Return some of the elements, where they are."""
        return self.array[start:stop]


@final
class RemotePart:
    """A value in the memory of another process of this host."""

    __slots__ = ("_address", "_itemsize", "_pid", "_rank", "size")

    def __init__(self, rank: int, pid: int, address: int, size: int, itemsize: int) -> None:
        """Say where it is.

        Args:
            rank: Whose it is, for messages.
            pid: The process.
            address: Of the first element.
            size: Number of elements.
            itemsize: Bytes of an element.
        """
        self._rank = rank
        self._pid = pid
        self._address = address
        self._itemsize = itemsize
        self.size = size

    def read(self, start: int, stop: int, room: Array) -> Array:
        """Read some of the elements into ``room``, and return it.

        Raises:
            UnavailableError: if the memory cannot be read, as when the rank has ended.
        """
        target = room[: stop - start]
        code = read_memory(self._pid, self._address + start * self._itemsize, target)
        if code:
            raise UnavailableError(
                f"the memory of rank {self._rank} (pid {self._pid}) cannot be read: "
                f"{os.strerror(code)}; has the rank ended? {READ_MEMORY.variable}=0 lets values "
                "travel in another way"
            )
        return target


class _Range(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


@functools.cache
def _reader() -> Callable[..., int] | None:
    try:
        call: Any = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except (OSError, AttributeError):
        return None
    call.restype = ctypes.c_ssize_t
    one = ctypes.POINTER(_Range)
    call.argtypes = (ctypes.c_int, one, ctypes.c_ulong, one, ctypes.c_ulong, ctypes.c_ulong)
    return call  # type: ignore[no-any-return]


def read_memory(pid: int, address: int, room: Array) -> int:
    """Fill a contiguous array from another process; return an ``errno``, 0 if all is well."""
    call = _reader()
    if call is None:
        return 38  # ENOSYS
    done = 0
    while done < room.nbytes:
        here = _Range(room.ctypes.data + done, room.nbytes - done)
        there = _Range(address + done, room.nbytes - done)
        got = call(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
        if got <= 0:
            return ctypes.get_errno() or 14  # EFAULT
        done += got
    return 0


@final
class Probe:
    """A word in this process that others read, to see whether they can."""

    def __init__(self) -> None:
        """Put a word of chance in memory."""
        self._word = np.frombuffer(os.urandom(8), np.int64).copy()
        self._on = READ_MEMORY.read() and _reader() is not None

    @property
    def handle(self) -> list[int]:
        """Where the word is, and what it is; empty where nobody is to read."""
        if not self._on:
            return []
        return [os.getpid(), self._word.ctypes.data, int(self._word[0])]

    def reads(self, handle: list[int]) -> int:
        """Return the process id of another rank's handle if its word can be read, else 0."""
        if not self._on or len(handle) != 3:
            return 0
        pid, address, word = handle
        room = np.zeros(1, np.int64)
        return pid if read_memory(pid, address, room) == 0 and int(room[0]) == word else 0
