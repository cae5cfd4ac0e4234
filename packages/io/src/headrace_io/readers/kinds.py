"""The kinds of readers: what the records of a piece of work are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from headrace_io.fixed import read_fixed
from headrace_io.lines import read_lines
from headrace_io.readers.reader import Reader, Record, Run
from headrace_io.records.reading import read_runs
from headrace_io.streams import read_whole


@final
class TextLines(Reader):
    """Lines of files; a key is the file and the number of the line, from 1."""

    def __init__(self, name: str, *, skip_header_lines: int) -> None:
        super().__init__(name)
        self._skip = skip_header_lines

    def records_of(self, work: bytes) -> Iterator[Record]:
        """Yield the lines of a file."""
        lines = read_lines(work, skip_header_lines=self._skip)
        for number, (_, _, line) in enumerate(lines, self._skip + 1):
            yield b"%b:%d" % (work, number), line


@final
class FixedLengthRecords(Reader):
    """Records of one length; a key is the file and the number of the record, from 0."""

    def __init__(
        self,
        name: str,
        *,
        record_bytes: int,
        header_bytes: int,
        footer_bytes: int,
        hop_bytes: int,
        encoding: str,
    ) -> None:
        super().__init__(name)
        self._lengths = record_bytes, header_bytes, footer_bytes, hop_bytes
        self._encoding = encoding

    def records_of(self, work: bytes) -> Iterator[Record]:
        """Yield the records of a file."""
        records = read_fixed(work, *self._lengths, self._encoding)
        for number, (_, _, record) in enumerate(records):
            yield b"%b:%d" % (work, number), record


@final
class Records(Reader):
    """Records of files of records; a key is the file and the byte at which the record begins."""

    def __init__(self, name: str, *, compression_type: str) -> None:
        super().__init__(name)
        self._compression = compression_type

    def runs_of(self, work: bytes) -> Iterator[Run]:
        """Yield the records of a file."""
        # A name may hold what stands for a place in a form.
        key = (work.replace(b"%", b"%%") + b":%d").__mod__
        for begins, data in read_runs(work, self._compression):
            yield list(map(key, begins[:-1])), data


@final
class WholeFiles(Reader):
    """Files; a key is the file's name."""

    serializable = single = True

    def records_of(self, work: bytes) -> Iterator[Record]:
        """Yield the content of a file."""
        yield work, read_whole(work)


@final
class Identity(Reader):
    """What the queue holds, as key and value."""

    serializable = single = True

    def records_of(self, work: bytes) -> Iterator[Record]:
        """Yield the work itself."""
        yield work, work
