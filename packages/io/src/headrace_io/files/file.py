"""``GFile``: a file that is opened when it is first read or written."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    PermissionDeniedError,
    shown,
)
from headrace.extend.arguments import whole
from headrace_io.streams import FileName, error_of_system, file_name

_MODES = ("r", "w", "a", "r+", "w+", "a+")


class GFile:
    """A file, as text or bytes. Its errors are those of ``headrace.errors``.

    It can be iterated over, line by line, and be used in a ``with`` statement, which closes it.
    """

    def __init__(self, name: FileName, mode: str = "r") -> None:
        """Name the file; it is opened when it is first used.

        Args:
            name: Its name.
            mode: ``"r"``, ``"w"`` or ``"a"``, with ``"+"`` to read and write, and with ``"b"`` for
                bytes.

        Raises:
            AttributeValueError: if the mode is none of these.
        """
        if mode.replace("b", "") not in _MODES:
            raise AttributeValueError(f"mode is none of {', '.join(_MODES)}, got {shown(mode)}")
        self._path, self._mode = name, mode
        self._binary = "b" in mode
        self._readable = "r" in mode or "+" in mode
        self._writable = "r" not in mode or "+" in mode
        self._file: IO[bytes] | None = None

    @property
    def name(self) -> FileName:
        """The file's name."""
        return self._path

    @property
    def mode(self) -> str:
        """How it is opened."""
        return self._mode

    def _open(self, *, writing: bool = False) -> IO[bytes]:
        """Return the open file.

        Raises:
            PermissionDeniedError: if the mode does not allow what is done with it.
        """
        if not (self._writable if writing else self._readable):
            raise PermissionDeniedError(
                f"{shown(self._path)} was opened with mode {self._mode!r}: it is not open for "
                f"{'writing' if writing else 'reading'}"
            )
        return self._opened()

    def _opened(self) -> IO[bytes]:
        if self._file is None:
            name = file_name(self._path)
            try:
                kind = self._mode.replace("b", "")
                self._file = Path(name).open(f"{kind}b")  # noqa: SIM115 - see close
            except OSError as error:
                raise error_of_system(error, f"cannot open {name!r}") from error
        return self._file

    def _answer(self, data: bytes) -> Any:
        return data if self._binary else data.decode()

    def read(self, n: int = -1) -> Any:
        """Return the next bytes or characters' bytes as text.

        Args:
            n: How many bytes at most; all that are left if negative.
        """
        file = self._open()
        try:
            return self._answer(file.read(n))
        except OSError as error:
            raise error_of_system(error, f"cannot read {shown(self._path)}") from error

    def readline(self) -> Any:
        """Return the next line with its end; nothing at the end of the file."""
        return self._answer(self._open().readline())

    def readlines(self) -> list[Any]:
        """Return all lines that are left."""
        return [self._answer(line) for line in self._open()]

    def write(self, file_content: Any) -> None:
        """Write text or bytes.

        Raises:
            ArgumentTypeError: if it is neither.
        """
        file = self._open(writing=True)
        if not isinstance(file_content, str | bytes):
            raise ArgumentTypeError(f"files take text or bytes, got {shown(file_content)}")
        data = file_content.encode() if isinstance(file_content, str) else file_content
        try:
            file.write(data)
        except OSError as error:
            raise error_of_system(error, f"cannot write {shown(self._path)}") from error

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Go to another place.

        Args:
            offset: How many bytes from ``whence``.
            whence: 0 for the beginning, 1 for where it is, 2 for the end.
            position: Another name of ``offset``.

        Raises:
            ArgumentTypeError: if no place is given.
            AttributeValueError: if ``whence`` is something else.
        """
        target = position if offset is None else offset
        if target is None:
            raise ArgumentTypeError("seek needs an offset")
        if whole(whence, "whence") not in (0, 1, 2):
            raise AttributeValueError(f"whence is 0, 1 or 2, got {shown(whence)}")
        self._open().seek(target, whence)

    def seekable(self) -> bool:
        """Return True: a place can be chosen."""
        return True

    def tell(self) -> int:
        """Return how many bytes stand before the place that is read or written next."""
        return self._opened().tell()

    def size(self) -> int:
        """Return the number of bytes of the file."""
        if self._file is not None and self._writable:
            self._file.flush()
        name = file_name(self._path)
        try:
            return Path(name).stat().st_size
        except OSError as error:
            raise error_of_system(error, f"cannot look at {name!r}") from error

    def flush(self) -> None:
        """Hand what was written to the system."""
        if self._file is not None and self._writable:
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def next(self) -> Any:
        """Return the next line, as iterating does.

        Raises:
            StopIteration: at the end.
        """
        return self.__next__()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_file", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return f"<GFile {shown(self._path)} mode={self._mode!r}>"


class FastGFile(GFile):
    """``GFile`` under its older name."""
