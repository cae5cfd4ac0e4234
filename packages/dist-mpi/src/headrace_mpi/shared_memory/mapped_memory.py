"""Memory that other processes of this host can map, and theirs.

It has no name in any file system (``memfd_create``): it vanishes with the last process that has it
mapped, however that ends, and there is nothing to clean away. Others find it through ``/proc``, as
a descriptor of the process that made it, which the system allows to processes of one user. It
begins with a word of chance: where process numbers mean something else (containers), the word is
missing.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import weakref
from collections.abc import Callable
from typing import NamedTuple, final

_WORD_BYTES = 16
_WORDS_AT = 64
PAGE_BYTES = mmap.PAGESIZE
_FAILED = ctypes.c_void_p(-1).value


class Address(NamedTuple):
    """Where other processes find memory.

    Attributes:
        pid: The process that made it.
        descriptor: Its number there.
        nbytes: Its size.
        word: What it begins with, as hexadecimal digits.
    """

    pid: int
    descriptor: int
    nbytes: int
    word: str


@functools.cache
def _calls() -> tuple[Callable[..., int], Callable[..., int]]:
    """Return what maps memory and what ends that.

    Python's own ``mmap`` keeps a descriptor for each mapping, before 3.13 in any case.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int),
        *(ctypes.c_int, ctypes.c_int, ctypes.c_long),
    )
    libc.munmap.restype = ctypes.c_int
    libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    return libc.mmap, libc.munmap


def _mapped(descriptor: int, nbytes: int) -> memoryview:
    """Map memory, until the last view of the result goes.

    Raises:
        OSError: if the system does not let it.
    """
    map_pages, unmap_pages = _calls()
    access = mmap.PROT_READ | mmap.PROT_WRITE
    address = map_pages(None, nbytes, access, mmap.MAP_SHARED, descriptor, 0)
    if address in (None, _FAILED):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    room = (ctypes.c_char * nbytes).from_address(address)
    # The system does so for a process that ends, also where an array is in use until then.
    weakref.finalize(room, unmap_pages, address, nbytes).atexit = False
    return memoryview(room).cast("B")


@final
class SharedMemory:
    """Memory that is mapped here.

    Attributes:
        view: Its bytes behind the first page, which holds the word.
        words: Eight numbers of 64 bits in the first page.
        address: Where others find it.
    """

    __slots__ = ("address", "view", "words")

    def __init__(self, mapped: memoryview, address: Address) -> None:
        """Use ``make`` or ``find``."""
        self.address = address
        self.view = mapped[PAGE_BYTES:]
        self.words = mapped[_WORDS_AT : _WORDS_AT + 64].cast("Q")

    def close(self) -> None:
        """Let go of it here, and of its descriptor; arrays that lie in it keep it mapped."""
        if self.address.pid == os.getpid():
            with contextlib.suppress(OSError):
                os.close(self.address.descriptor)
        self.words.release()
        with contextlib.suppress(BufferError):
            self.view.release()


def make(nbytes: int) -> SharedMemory:
    """Return new memory, all zero, behind a page for its word.

    Raises:
        OSError: if the system has none.
    """
    descriptor = os.memfd_create("headrace", os.MFD_CLOEXEC)
    try:
        total = PAGE_BYTES + nbytes
        # The pages themselves, for what is written where there is none ends the process.
        os.posix_fallocate(descriptor, 0, total)
        word = os.urandom(_WORD_BYTES)
        os.pwrite(descriptor, word, 0)
        mapped = _mapped(descriptor, total)
    except BaseException:
        os.close(descriptor)
        raise
    return SharedMemory(mapped, Address(os.getpid(), descriptor, total, word.hex()))


def find(address: Address) -> SharedMemory:
    """Return the memory of another process of this host.

    Raises:
        OSError: if it cannot be opened, or is not what the address says.
    """
    descriptor = os.open(f"/proc/{address.pid}/fd/{address.descriptor}", os.O_RDWR | os.O_CLOEXEC)
    try:
        if os.pread(descriptor, _WORD_BYTES, 0).hex() != address.word:
            raise OSError(f"process {address.pid} has other memory as {address.descriptor}")
        if os.fstat(descriptor).st_size != address.nbytes:
            raise OSError(f"the memory of process {address.pid} has another size")
        mapped = _mapped(descriptor, address.nbytes)
    finally:
        os.close(descriptor)
    return SharedMemory(mapped, address._replace(pid=0))
