"""Files of events: records that TensorBoard finds by their names."""

from __future__ import annotations

import logging
import os
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import final

from headrace.errors import FailedPreconditionError, InvalidArgumentError, shown
from headrace_io import protos
from headrace_io.records.writing import framed
from headrace_io.streams import error_of_system

# What the first record of a file says.
_VERSION = "brain.Event:2"
_LOG = logging.getLogger("headrace.train")


@final
class EventFile:
    """A file of events, in a folder that is made where it is not there.

    What ``append`` was given is the system's when it returns, so that it is in the file whatever
    becomes of the process.

    Attributes:
        path: The file.
    """

    def __init__(self, folder: Path, suffix: str = "") -> None:
        """Begin a file.

        Args:
            folder: Where.
            suffix: What its name ends in.

        Raises:
            OpError: of the family of what the system says, if the file cannot be made.
        """
        self._folder, self._suffix = folder, suffix
        self._begin()

    def append(self, records: list[bytes]) -> None:
        """Append records, all or none of them.

        A file that somebody deleted is begun anew.

        Raises:
            OpError: of the family of what the system says, if they cannot be written.
        """
        try:
            if os.fstat(self._descriptor).st_nlink == 0:
                _LOG.warning("%s was deleted; its events are lost, others follow", self.path)
                self.close()
                self._begin()
            self._write(b"".join(part for record in records for part in framed(record)))
        except OSError as error:
            raise error_of_system(error, f"cannot write events to {self.path}") from error

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            os.close(self._descriptor)

    def _begin(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self.path, self._descriptor = self._open_new()
        except FileExistsError as error:
            raise FailedPreconditionError(
                f"cannot write events to the folder {str(self._folder)!r}: {error.filename!r} is "
                "not a directory"
            ) from error
        except OSError as error:
            doing = f"cannot write events to the folder {str(self._folder)!r}"
            raise error_of_system(error, doing) from error
        except ValueError as error:
            # NUL, or half of a surrogate pair.
            raise InvalidArgumentError(
                f"{shown(str(self._folder))} names no folder: {error}"
            ) from error
        self._size = 0
        first = protos.Event(wall_time=time.time(), file_version=_VERSION)
        try:
            self._write(b"".join(framed(first.SerializeToString())))
        except OSError as error:
            self.close()
            self.path.unlink(missing_ok=True)
            raise error_of_system(error, f"cannot write events to {self.path}") from error

    def _open_new(self) -> tuple[Path, int]:
        """Open a file that was not there; names of one second get numbers, in their order."""
        base = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        number = 0
        while True:
            path = self._folder / (base + (f".{number:03d}" if number else "") + self._suffix)
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
                return path, os.open(path, flags, 0o666)
            except FileExistsError:
                if not path.exists():
                    raise
                number += 1

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._descriptor, view) :]
        except OSError:
            # Half a record would hide those behind it.
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
