"""A file for HDF5 to write into, which tells of failures only when HDF5 is done.

The HDF5 library cannot close a file of which a write failed, as on a full disk: it keeps the file
in mind, and ends the process with a segmentation fault when that exits. So nothing fails while it
works: what cannot be written is let go of, and the error is raised afterwards.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self, final

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_LARGEST_WRITE = 1 << 30


@final
class LateErrors:
    """A file object as h5py takes it; leaving its block raises what failed in between."""

    def __init__(self, path: Path) -> None:
        """Open a file.

        Args:
            path: The file, which exists; its content is given up.

        Raises:
            OSError: if it cannot be opened.
        """
        self._descriptor = os.open(path, os.O_RDWR | os.O_TRUNC | os.O_CLOEXEC)
        self._place = 0
        # As long as HDF5 believes the file to be.
        self._length = 0
        self._failure: OSError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)
        if self._failure is not None:
            raise self._failure

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place in the file, and return it."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._length}[whence]
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        """Return the place in the file."""
        return self._place

    def write(self, data: bytes | memoryview) -> int:
        """Write all of ``data``, or keep the error in mind."""
        view = memoryview(data).cast("B")
        place = self._place
        self._place += len(view)
        self._length = max(self._length, self._place)
        try:
            while view and self._failure is None:
                done = os.pwrite(self._descriptor, view[:_LARGEST_WRITE], place)
                view, place = view[done:], place + done
        except OSError as error:
            self._failure = error
        return len(data)

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes of the file; h5py knows a file object by this method."""
        buffer = bytearray(size)
        self.readinto(memoryview(buffer))
        return bytes(buffer)

    def readinto(self, buffer: memoryview) -> int:
        """Fill a buffer from the file; what is not in it reads as zeros."""
        view = memoryview(buffer).cast("B")
        got = b""
        try:
            got = os.pread(self._descriptor, len(view), self._place)
        except OSError as error:
            self._failure = self._failure or error
        view[: len(got)] = got
        view[len(got) :] = bytes(len(view) - len(got))
        self._place += len(view)
        return len(view)

    def truncate(self, size: int) -> int:
        """Give the file a length."""
        self._length = size
        try:
            if self._failure is None:
                os.ftruncate(self._descriptor, size)
        except OSError as error:
            self._failure = error
        return size

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""
