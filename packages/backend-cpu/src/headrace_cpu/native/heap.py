"""Freed memory that the process keeps for the next step.

A step's results, and what the rounds of a loop leave behind for its gradient, are freed when the
step is over. The C library gives such memory back to the system once some hundreds of KiB are free
at the end of its heap, and blocks of 128 KiB at once; the next step gets new pages, each of which
the system clears first. That took a third of the time of an LSTM's step. glibc raises both limits
by itself as large blocks are freed, but not where all blocks are small. They are set here to what
it would come to at most.

References:
    mallopt(3), Linux manual pages, M_MMAP_THRESHOLD and M_TRIM_THRESHOLD
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
# The largest limit to which glibc goes for blocks, and twice that for the end of the heap.
_LARGEST_BLOCK = 32 << 20
_KEPT = 2 * _LARGEST_BLOCK
# What a user tells glibc by these holds.
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_")
_TUNABLES = "GLIBC_TUNABLES"


@functools.cache
def keep_freed_memory() -> bool:
    """Let the process keep up to 64 MiB of memory that it has freed; return whether it does.

    It is done once in a process, on glibc, where the environment says nothing of its limits.
    """
    told = any(name in os.environ for name in _VARIABLES)
    if told or "glibc.malloc" in os.environ.get(_TUNABLES, "") or sys.platform != "linux":
        return False
    try:
        library = ctypes.CDLL(None)
        # Another C library has a function of this name that does nothing.
        library.gnu_get_libc_version  # noqa: B018
        mallopt = library.mallopt
    except (OSError, AttributeError):
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    limits = ((_M_MMAP_THRESHOLD, _LARGEST_BLOCK), (_M_TRIM_THRESHOLD, _KEPT))
    answers = [mallopt(number, value) for number, value in limits]
    return all(answers)
