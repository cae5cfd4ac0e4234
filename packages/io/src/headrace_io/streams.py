"""Files as streams of bytes, plain or compressed, whose errors belong to Headrace's families."""

from __future__ import annotations

import errno
import io
import os
import stat
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias, final

from headrace.errors import (
    AlreadyExistsError,
    AttributeValueError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    OpError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnknownError,
    shown,
)

# A file's name: as text, as the bytes that the system has, or as a path.
FileName: TypeAlias = "str | bytes | os.PathLike[str] | os.PathLike[bytes]"

# How much is read at a time: much more than a record, and little beside a batch.
CHUNK = 1 << 18
# No more is, however many records are wanted together.
LARGEST = 1 << 22

# What zlib calls the formats: a window of 32 KiB, and 16 more for the header of gzip.
WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS + 16}

# How compressed data end where their writer flushed them, to go on later.
FLUSHED = b"\x00\x00\xff\xff"

_FAMILIES: tuple[tuple[type[OSError], type[OpError]], ...] = (
    (FileNotFoundError, NotFoundError),
    (PermissionError, PermissionDeniedError),
    (IsADirectoryError, FailedPreconditionError),
    (NotADirectoryError, FailedPreconditionError),
    (FileExistsError, AlreadyExistsError),
)
_EXHAUSTED = {
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    *(errno.EMFILE, errno.ENFILE, errno.ENOMEM),
}


def file_name(path: FileName) -> str:
    """Return the name of a file as text; bytes that are no text stay what they are.

    Raises:
        InvalidArgumentError: if it has a NUL byte or half of a surrogate pair, which no name
            of a file has.
    """
    name = os.fsdecode(path)
    if "\0" in name:
        raise InvalidArgumentError(f"{shown(name)} is no name of a file: it has a NUL byte")
    try:
        os.fsencode(name)
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{shown(name)} is no name of a file: it has half of a surrogate pair"
        ) from error
    return name


def error_of_system(error: OSError, doing: str) -> OpError:
    """Return the error of Headrace's families that the system's error is.

    Args:
        error: The system's.
        doing: What failed, as in ``"cannot read 'a.txt'"``.
    """
    text = f"{doing}: {error.strerror or error}"
    if error.errno in _EXHAUSTED:
        return ResourceExhaustedError(text)
    for theirs, family in _FAMILIES:
        if isinstance(error, theirs):
            return family(text)
    return UnknownError(text)


def check_compression(compression: str) -> str:
    """Return the name of a compression: ``""``, ``"ZLIB"`` or ``"GZIP"``.

    Raises:
        AttributeValueError: if it is none.
    """
    if compression != "" and compression not in WINDOW_BITS:
        raise AttributeValueError(
            f"compression must be '', 'ZLIB' or 'GZIP', got {shown(compression)}"
        )
    return compression


@final
class InputStream:
    """The bytes of a file, from its beginning on, after decompression.

    Attributes:
        name: The file's name.
        compression: ``""``, ``"ZLIB"`` or ``"GZIP"``.
    """

    def __init__(self, path: FileName, compression: str = "") -> None:
        """Open a file.

        Args:
            path: Its name.
            compression: How it is compressed.

        Raises:
            NotFoundError: if it is not there, and other errors of the families of
                ``headrace.errors`` for what else the system says.
        """
        self.name = file_name(path)
        self.compression = check_compression(compression)
        try:
            # Unbuffered: what is read is large, and kept by whoever reads.
            self._file = io.FileIO(self.name)
        except OSError as error:
            raise self._failure(error) from error
        self._inflater: Any = zlib.decompressobj(WINDOW_BITS[compression]) if compression else None
        self._compressed = b""
        self._last = b""
        self._inflated = 0

    def read(self, size: int = CHUNK) -> bytes:
        """Return the next bytes, some of them at least; none at the end.

        Compressed data that their writer flushed and has not finished end there for now.

        Args:
            size: How many at most.

        Raises:
            DataLossError: if compressed data are damaged, or end early.
        """
        if self._inflater is None:
            return self._raw(size)
        while True:
            if self._inflater.eof and not self._next_member():
                return b""
            if not self._compressed:
                self._compressed = self._next_compressed()
                if not self._compressed:
                    if self._last in (b"", FLUSHED):
                        return b""
                    raise DataLossError(
                        f"{self.name!r} is cut short: its {self.compression} data end early, "
                        f"after {self._inflated} bytes of content"
                    )
            try:
                found: bytes = self._inflater.decompress(self._compressed, size)
            except zlib.error as error:
                raise DataLossError(
                    f"{self.name!r} is no {self.compression} data, or is damaged, after "
                    f"{self._inflated} bytes of content: {error}"
                ) from error
            self._compressed = self._inflater.unconsumed_tail or self._inflater.unused_data
            if found:
                self._inflated += len(found)
                return found

    def _next_compressed(self) -> bytes:
        found = self._raw(CHUNK)
        self._last = (self._last + found[-len(FLUSHED) :])[-len(FLUSHED) :]
        return found

    def _next_member(self) -> bool:
        """Go on to the next stream, as files that were appended to have; False at the end."""
        if not self._compressed:
            self._compressed = self._next_compressed()
        if self._compressed:
            self._inflater = zlib.decompressobj(WINDOW_BITS[self.compression])
        return bool(self._compressed)

    def length(self) -> int | None:
        """Return how many bytes there are; None if decompression or a device decides that."""
        if self._inflater is not None:
            return None
        try:
            status = os.fstat(self._file.fileno())
        except OSError as error:
            raise self._failure(error) from error
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def skip(self, count: int) -> None:
        """Go on by some bytes, or to the end where there are less."""
        if not count:
            return
        # A pipe has no place to go to, and is read.
        if self._inflater is None and self._file.seekable():
            try:
                self._file.seek(count, os.SEEK_CUR)
            except OSError as error:
                raise self._failure(error) from error
            return
        while count:
            passed = len(self.read(min(count, CHUNK)))
            if not passed:
                return
            count -= passed

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _raw(self, size: int) -> bytes:
        try:
            return self._file.read(size) or b""
        except OSError as error:
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> OpError:
        return error_of_system(error, f"cannot read {self.name!r}")


def read_whole(path: FileName) -> bytes:
    """Return the content of a file.

    Raises:
        NotFoundError: as ``InputStream``.
    """
    name = file_name(path)
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise error_of_system(error, f"cannot read {name!r}") from error


def write_whole(path: FileName, content: bytes) -> None:
    """Write a file, in place of what it held; folders that are missing are made.

    Raises:
        FailedPreconditionError: if the name is a folder's, and other errors of the families for
            what else the system says.
    """
    name = file_name(path)
    try:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)
    except FileExistsError as error:
        # A file stands where a folder should.
        raise FailedPreconditionError(
            f"cannot write {name!r}: {error.filename!r} is not a directory"
        ) from error
    except OSError as error:
        raise error_of_system(error, f"cannot write {name!r}") from error
