"""A bell in shared memory on which one process sleeps, and that any other one can ring.

Linux's futex puts a process to sleep as long as a word has the value that it saw last. A bell is
two words: how often it was rung, and whether somebody sleeps, so that ringing costs a call of the
system only where there is somebody to wake.

Who sleeps says so first and then looks for messages; who sends puts the message there first and
then looks for sleepers. Each does something in between that no processor moves reads or writes
across (a lock is released), so one of the two sees the other. Sleeping has a time limit all the
same.

References:
    U. Drepper, Futexes Are Tricky, 2011.
"""

from __future__ import annotations

import ctypes
import functools
import platform
import sys
import threading
from collections.abc import Callable
from typing import Any, final

# The number of the system call. Only where stores of one processor are seen in their order by the
# others can Python share memory without barriers of its own.
_FUTEX = {"x86_64": 202}
_WAIT = 0
_WAKE = 1
_ALL = 2**31 - 1

WORDS_BYTES = 8


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


@functools.cache
def _calls() -> tuple[Callable[..., int], Callable[..., int]] | None:
    """Return what waits for a word and what wakes those who do; None where nothing does."""
    number = _FUTEX.get(platform.machine())
    if number is None or not sys.platform.startswith("linux"):
        return None
    try:
        wait: Any = ctypes.CDLL(None)["syscall"]
        # Waking is over in a moment: the interpreter lock is kept.
        wake: Any = ctypes.PyDLL(None)["syscall"]
    except (OSError, AttributeError):
        return None
    for call in (wait, wake):
        call.restype = ctypes.c_long
        call.argtypes = (
            *(ctypes.c_long, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32),
            *(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32),
        )
    return functools.partial(wait, number), functools.partial(wake, number)


def is_supported() -> bool:
    """Whether processes of this machine can wake each other through shared memory."""
    return _calls() is not None


@final
class Doorbell:
    """A bell in memory of eight bytes, which all who ring or sleep have mapped."""

    __slots__ = ("_address", "_asleep", "_fence", "_wait", "_wake", "_words")

    def __init__(self, memory: memoryview) -> None:
        """Use a bell.

        Args:
            memory: [8 bytes], writable, aligned to 4 bytes, zero when the bell is made.

        Raises:
            OSError: if this system has no such bells.
        """
        calls = _calls()
        if calls is None:
            raise OSError("this system has no futexes that Headrace knows")
        self._wait, self._wake = calls
        self._words = memory.cast("I")
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        # How many threads of this process sleep, or are about to.
        self._asleep = 0
        self._fence = threading.Lock()

    def listen(self) -> int:
        """Say that this process is about to sleep; return what ``sleep`` wants to know."""
        with self._fence:
            heard = self._words[0]
            self._asleep += 1
            self._words[1] = self._asleep
        return heard

    def sleep(self, heard: int, seconds: float) -> None:
        """Sleep until somebody rings, has rung since ``listen``, or the time is over."""
        whole = int(seconds)
        limit = _Time(whole, int((seconds - whole) * 1e9))
        self._wait(self._address, _WAIT, heard, ctypes.addressof(limit), None, 0)
        self.stay()

    def stay(self) -> None:
        """Do not sleep after all, or any longer."""
        with self._fence:
            self._asleep -= 1
            self._words[1] = self._asleep

    def ring(self) -> None:
        """Wake all who sleep; to be called after a lock was released behind the message."""
        words = self._words
        if words[1]:
            words[0] = (words[0] + 1) & 0xFFFFFFFF
            self._wake(self._address, _WAKE, _ALL, None, None, 0)

    def close(self) -> None:
        """Let go of the memory."""
        self._words.release()
