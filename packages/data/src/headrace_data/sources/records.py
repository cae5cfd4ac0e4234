"""Elements that files hold: lines of text, records, records of one length.

The formats are read by headrace-io. A position is the number of the file and the byte in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import DTypeError, InvalidArgumentError, ShapeError, shown
from headrace_data import structure
from headrace_data.build import make, scalar, static
from headrace_data.dataset import Dataset
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, State, Stream, stream
from headrace_io.csv_records import read_csv_records
from headrace_io.fixed_length_records import read_fixed
from headrace_io.lines import read_lines
from headrace_io.records import read_records

# What a file yields: where an item begins, where the next one does, and the item.
Items = Iterator[tuple[int, int, bytes]]


class _FileDataset(Dataset):
    """What the data sets of files have in common."""

    def _read(
        self, form: str, filenames: Any, numbers: list[Any], compression: Any, parallel: Any
    ) -> None:
        """Become a data set of what files hold.

        Args:
            form: How they are read.
            filenames: The files, strings or a data set of them.
            numbers: What the form takes.
            compression: [], string, or None.
            parallel: How many files are read at once; one after the other if None.
        """
        element = structure.TensorComponent(hr.string, hr.Shape([]))
        kind = scalar("" if compression is None else compression, hr.string, "compression_type")

        def read(names: Any) -> Any:
            given = [names, kind, *numbers]
            return make("records", element, arguments=given, settings={"form": form})

        made: Any
        if not isinstance(filenames, structure.Described) and parallel is None:
            names = hr.reshape(hr.convert_to_tensor(filenames, hr.string), [-1])
            made = read(names)
        else:
            files = _names(filenames)
            if parallel is None:
                made = files.flat_map(lambda name: read(hr.reshape(name, [-1])))
            else:
                made = files.interleave(
                    lambda name: read(hr.reshape(name, [-1])), parallel, 1, parallel
                )
        super().__init__(made.variant, element, made.inputs)


def _check_buffer(size: Any) -> None:
    known = None if size is None else static(scalar(size, hr.int64, "buffer_size"))
    if known is not None and known < 0:
        raise InvalidArgumentError(f"buffer_size must be >= 0, got {known}")


def _names(filenames: Any) -> Any:
    if not isinstance(filenames, structure.Described):
        names = hr.reshape(hr.convert_to_tensor(filenames, hr.string), [-1])
        return Dataset.from_tensor_slices(names)
    spec = filenames.spec
    if not isinstance(spec, structure.TensorComponent) or spec.dtype != hr.string:
        raise DTypeError("`filenames` must be a data set of strings")
    if not spec.shape.is_compatible_with([]):
        raise ShapeError("`filenames` must be a data set of scalars")
    return filenames


def csv_records(
    names: Any, compression: Any, delimiter: str, quotes: bool, header: bool
) -> structure.Described:
    """Return a data set of the records of files of comma-separated values, as texts.

    Args:
        names: [n], the files.
        compression: [], string, or None.
        delimiter: The character between fields.
        quotes: Whether fields may stand in double quotes.
        header: Whether the first line of each file is left out.
    """
    kind = scalar("" if compression is None else compression, hr.string, "compression_type")
    return make(
        "records",
        structure.TensorComponent(hr.string, hr.Shape([])),
        arguments=[names, kind],
        settings={"form": "csv", "delimiter": delimiter, "quotes": quotes, "header": header},
    )


class TextLineDataset(_FileDataset):
    """A data set of the lines of text files, without their ends."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        """Read files.

        Args:
            filenames: [] or [n], names of files, or a data set of names.
            compression_type: [], ``""``, ``"ZLIB"`` or ``"GZIP"``.
            buffer_size: [], how many bytes are read at once, not negative; without effect.
            num_parallel_reads: How many files take turns, each read by a thread.
        """
        _check_buffer(buffer_size)
        self._read("lines", filenames, [], compression_type, num_parallel_reads)


class TFRecordDataset(_FileDataset):
    """A data set of the records of files in TensorFlow's format."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        """Read files.

        Args:
            filenames: [] or [n], names of files, or a data set of names.
            compression_type: [], ``""``, ``"ZLIB"`` or ``"GZIP"``.
            buffer_size: [], how many bytes are read at once, not negative; without effect.
            num_parallel_reads: How many files take turns, each read by a thread.
        """
        _check_buffer(buffer_size)
        self._read("records", filenames, [], compression_type, num_parallel_reads)


class FixedLengthRecordDataset(_FileDataset):
    """A data set of the records of files in which all have one length."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: Any,
        header_bytes: Any = None,
        footer_bytes: Any = None,
        buffer_size: Any = None,
        compression_type: Any = None,
        num_parallel_reads: Any = None,
    ) -> None:
        """Read files.

        Args:
            filenames: [] or [n], names of files, or a data set of names.
            record_bytes: [], how long a record is.
            header_bytes: [], how many bytes stand before the first one; none if None.
            footer_bytes: [], how many stand behind the last one; none if None.
            buffer_size: [], how many bytes are read at once, not negative; without effect.
            compression_type: [], ``""``, ``"ZLIB"`` or ``"GZIP"``.
            num_parallel_reads: How many files take turns, each read by a thread.

        Drawing an element raises ``errors.InvalidArgumentError`` for a file that does not hold a
        whole number of records, before its first one; ``errors.DataLossError`` after the last
        one of a file that is compressed.
        """
        _check_buffer(buffer_size)
        numbers = [
            scalar(0 if value is None else value, hr.int64, name)
            for name, value in (
                ("record_bytes", record_bytes),
                ("header_bytes", header_bytes),
                ("footer_bytes", footer_bytes),
            )
        ]
        self._read("fixed", filenames, numbers, compression_type, num_parallel_reads)


def _items(value: DatasetValue, name: bytes, start: int | None) -> Items:
    """Return what a file holds from a byte on; from the first item for None."""
    compression = bytes(np.asarray(value.arguments[1])[()]).decode()
    if value.settings["form"] == "lines":
        return read_lines(name, compression, start=start or 0)
    if value.settings["form"] == "records":
        return read_records(name, compression, start=start or 0)
    if value.settings["form"] == "csv":
        settings = {key: value.settings[key] for key in ("delimiter", "quotes", "header")}
        return read_csv_records(name, compression, **settings, start=start or 0)
    length, header, footer = (value.scalar(i) for i in (2, 3, 4))
    return read_fixed(name, length, header, footer, 0, compression, start=start, whole=True)


@stream("records")
class RecordsStream(Stream):
    """What files hold, one file after the other."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._names: list[bytes] = np.asarray(value.arguments[0]).ravel().tolist()
        self._file = 0
        self._items: Any = None
        # Where the next item of the file begins; None for its first.
        self._next: int | None = None

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse compressions that there are not."""
        compression = bytes(np.asarray(value.arguments[1])[()]).decode()
        if compression not in ("", "ZLIB", "GZIP"):
            raise InvalidArgumentError(
                f"compression_type must be '', 'ZLIB' or 'GZIP', got {shown(compression)}"
            )

    def next(self) -> Element | None:
        """Return the next item.

        Raises:
            NotFoundError: if a file is not there.
            DataLossError: if it is damaged; the next file follows then.
        """
        while self._file < len(self._names):
            try:
                if self._items is None:
                    self._items = _items(self.value, self._names[self._file], self._next)
                item = next(self._items, None)
            except Exception:
                self._leave()
                raise
            if item is not None:
                self._next = item[1]
                return (np.array(item[2], object),)
            self._leave()
        return None

    def _leave(self) -> None:
        """Go on to the next file."""
        self._close()
        self._file += 1
        self._next = None

    def _close(self) -> None:
        items, self._items = self._items, None
        if items is not None:
            items.close()

    def save(self) -> State:
        """Return the file, and the byte in it."""
        return [self._file, self._next]

    def restore(self, state: State) -> None:
        """Go there."""
        self._file, self._next = state

    def close(self) -> None:
        """Close the file."""
        self._close()
