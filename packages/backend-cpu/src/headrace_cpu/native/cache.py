"""The cache of object code on disk.

An entry is a file of its own: a line that says what it is, the checksum of the rest, and the code.
It is written beside its place and then moved there, so that processes that start together may all
write it and none ever reads a part. An entry that does not agree with its checksum is removed. When
the folder grows too large, the entries that were not used for the longest time go. Entries are code
that runs: what another user may have written is refused, and compiled again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from headrace.extend.files import SharedFileError, read_private, write_private
from headrace.extend.settings import CACHE_SIZE, cache_folder
from headrace_cpu.native.report import notice

_MAGIC = b"headrace kernel 1\n"
_SUFFIX = ".kernel"
# Files of writers that did not come to their end are removed after so many seconds.
_STALE_S = 3600.0
# A folder that is too large shrinks to this part of its limit, so that it does so seldom.
_SHRINK_TO = 0.8
# So often is the size looked at while kernels of the limit's size are written.
_LOOKS = 16


class KernelCache:
    """Object code by key, in a folder that processes may share.

    Where the folder cannot be read or written, or others can write it, nothing is kept, which is
    said once.

    Attributes:
        folder: Where the entries are.
        limit: How many bytes they may take together.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        # How many bytes this process may write before it looks at the folder's size again.
        self._allowance = 0

    def allow(self, size: int) -> None:
        """Let so many bytes be written before the folder's size is looked at."""
        self._allowance = size

    def get(self, key: str) -> bytes | None:
        """Return the code of a key, None where there is none that is whole."""
        place = self._place(key)
        try:
            data = read_private(place)
        except SharedFileError as reason:
            self._refuse(reason)
            return None
        except OSError:
            return None
        code = _unpacked(data)
        with contextlib.suppress(OSError):
            if code is None:
                place.unlink()
            else:
                os.utime(place)
        return code

    def has(self, key: str) -> bool:
        """Whether there is an entry of a key; it may turn out not to be whole."""
        return self._place(key).exists()

    def put(self, key: str, code: bytes) -> None:
        """Keep the code of a key; nothing happens where the folder cannot be written."""
        data = _packed(code)
        place = self._place(key)
        try:
            write_private(place, data)
        except SharedFileError as reason:
            self._refuse(reason)
            return
        except OSError as reason:
            notice(
                f"compiled kernels are not kept on disk: {self.folder}: "
                f"{reason.strerror or reason}; set HEADRACE_CACHE to a folder of your own"
            )
            return
        self._allowance -= len(data)
        if self._allowance <= 0:
            self._allowance = (self.limit - self.shrink()) // 4

    def _refuse(self, reason: SharedFileError) -> None:
        notice(
            f"compiled kernels on disk are not used: {reason}; or set HEADRACE_CACHE to a folder "
            "that only you can write"
        )

    def drop(self, key: str) -> None:
        """Remove an entry, as one that turned out to be of no use."""
        with contextlib.suppress(OSError):
            self._place(key).unlink()

    def clear(self) -> None:
        """Remove all entries."""
        for _, _, place in self._entries():
            with contextlib.suppress(OSError):
                place.unlink()

    def size(self) -> int:
        """Return the bytes of all entries."""
        return sum(size for _, size, _ in self._entries())

    def shrink(self) -> int:
        """Remove what was not used for the longest time, down to the limit; return the size."""
        now = time.time()
        for draft in self._files(".tmp"):
            with contextlib.suppress(OSError):
                if now - draft.stat().st_mtime > _STALE_S:
                    draft.unlink()
        entries = sorted(self._entries())
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return total
        for _, size, place in entries:
            if total <= self.limit * _SHRINK_TO:
                break
            with contextlib.suppress(OSError):
                place.unlink()
            total -= size
        return total

    def _place(self, key: str) -> Path:
        return self.folder / f"{key}{_SUFFIX}"

    def _files(self, suffix: str) -> Iterator[Path]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as found:
            for entry in found:
                if entry.name.endswith(suffix):
                    yield Path(entry.path)

    def _entries(self) -> Iterator[tuple[float, int, Path]]:
        """Yield when each entry was used last, its size, and where it is."""
        for place in self._files(_SUFFIX):
            with contextlib.suppress(OSError):
                facts = place.stat()
                if stat.S_ISREG(facts.st_mode):
                    yield facts.st_mtime, facts.st_size, place


def _packed(code: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(code).digest() + code


def _unpacked(data: bytes) -> bytes | None:
    start = len(_MAGIC)
    code = data[start + 32 :]
    if data[:start] != _MAGIC or hashlib.sha256(code).digest() != data[start : start + 32]:
        return None
    return code


def kernel_cache() -> KernelCache:
    """Return the cache that the environment's settings describe, one for the whole process."""
    return _cache_of(cache_folder() / "cpu", CACHE_SIZE.read())


@functools.cache
def _cache_of(folder: Path, limit: int) -> KernelCache:
    cache = KernelCache(folder, limit)
    # Looking at the size takes as long as compiling where there are thousands of kernels. Processes
    # that write little look seldom, and all together once for some share of the limit.
    # Not the numbers of ``random``, which programs may have seeded.
    drawn = int.from_bytes(os.urandom(8), "little")
    cache.allow(drawn % (limit // _LOOKS + 1))
    return cache
