"""Writing files of records."""

from __future__ import annotations

import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

from headrace.errors import (
    AttributeValueError,
    FailedPreconditionError,
    OpError,
    shown,
)
from headrace_io.records.checksum import crc32c, masked
from headrace_io.records.options import TFRecordOptions
from headrace_io.records.reading import CHECKSUM, LENGTH
from headrace_io.streams import CHUNK, WINDOW_BITS, FileName, error_of_system, file_name


def framed(record: bytes) -> tuple[bytes, bytes, bytes]:
    """Return a record as it stands in files: length with checksum, data, checksum."""
    crc = crc32c()
    length = len(record).to_bytes(8, "little")
    head = LENGTH.pack(len(record), masked(crc(length)))
    return head, record, CHECKSUM.pack(masked(crc(record)))


@final
class TFRecordWriter:
    """A file of records that is being written.

    Used as a context it is closed at its end::

        with hr.io.TFRecordWriter("numbers.tfrecord") as writer:
            writer.write(b"one")
    """

    def __init__(self, path: FileName, options: Any = None) -> None:
        """Begin a file, in place of what it held.

        Args:
            path: The file.
            options: How to compress it: what ``TFRecordOptions`` takes, or one.

        Raises:
            AttributeValueError: if the compression is none.
            NotFoundError: if its folder is not there, and other errors of the families of
                ``headrace.errors`` for what else the system says.
        """
        given = options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)
        self._name = file_name(path)
        self._deflater = _deflater(given)
        self._flush_mode = zlib.Z_NO_FLUSH if given.flush_mode is None else given.flush_mode
        self._limit = given.input_buffer_size or CHUNK
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        try:
            # 1 would stand for the buffering of lines.
            size = max(given.output_buffer_size or CHUNK, 2)
            self._file = Path(self._name).open("wb", buffering=size)  # noqa: SIM115 - see close
        except OSError as error:
            raise self._failure(error) from error

    def write(self, record: bytes) -> None:
        """Append a record.

        Args:
            record: Its data.

        Raises:
            TypeError: if it is no bytes.
            FailedPreconditionError: if the file is closed.
        """
        if not isinstance(record, bytes):
            raise TypeError(f"a record is bytes, got {type(record).__name__}: {shown(record, 60)}")
        self._check_open()
        self._waiting += framed(record)
        self._waiting_bytes += len(record) + 16
        if self._waiting_bytes >= self._limit:
            self._pass_on()

    def flush(self) -> None:
        """Write what was appended so far, so that who reads the file finds it.

        Raises:
            FailedPreconditionError: if the file is closed.
        """
        self._check_open()
        self._pass_on()
        try:
            if self._deflater is not None:
                self._file.write(self._deflater.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()
        except OSError as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Write what is left, and close the file; once more does nothing."""
        if self._file.closed:
            return
        try:
            self._pass_on()
            if self._deflater is not None:
                self._file.write(self._deflater.flush(zlib.Z_FINISH))
            self._file.close()
        except OSError as error:
            raise self._failure(error) from error
        finally:
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

    def _pass_on(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._waiting_bytes = 0
        try:
            if self._deflater is None:
                self._file.write(data)
                return
            self._file.write(self._deflater.compress(data))
            if self._flush_mode != zlib.Z_NO_FLUSH:
                self._file.write(self._deflater.flush(self._flush_mode))
        except OSError as error:
            raise self._failure(error) from error

    def _check_open(self) -> None:
        if self._file.closed:
            raise FailedPreconditionError(f"{self._name!r} is closed: it takes no more records")

    def _failure(self, error: OSError) -> OpError:
        return error_of_system(error, f"cannot write {self._name!r}")


def _deflater(options: TFRecordOptions) -> Any:
    """Return what compresses, None for no compression."""
    compression = TFRecordOptions.get_compression_type_string(options)
    if not compression:
        return None
    given: dict[str, Any] = {
        "level": options.compression_level,
        "method": options.compression_method,
        "wbits": WINDOW_BITS[compression] if options.window_bits is None else options.window_bits,
        "memLevel": options.mem_level,
        "strategy": options.compression_strategy,
    }
    try:
        return zlib.compressobj(**{k: v for k, v in given.items() if v is not None})
    except ValueError as error:
        told = ", ".join(f"{k}={v}" for k, v in given.items() if v is not None)
        raise AttributeValueError(f"zlib does not take {told}: {error}") from error
