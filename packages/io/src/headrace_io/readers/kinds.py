"""The kinds of readers: what the records of a piece of work are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import final

from headrace.extend.kernels import StringRows
from headrace_io.fixed_length_records import read_fixed_runs
from headrace_io.lines import read_runs_of_lines
from headrace_io.readers.reader import Reader, Record
from headrace_io.readers.run import Run, numbered
from headrace_io.records.reading import read_runs
from headrace_io.streams import read_whole


@final
class TextLines(Reader):
    """Lines of files; a key is the file and the number of the line, from 1."""

    def __init__(self, name: str, *, skip_header_lines: int) -> None:
        super().__init__(name)
        self._skip = skip_header_lines

    def runs_of(self, work: bytes) -> Iterator[Run]:
        """Yield the lines of a file."""
        number = self._skip + 1
        for lines in read_runs_of_lines(work, skip_header_lines=self._skip):
            yield Run(numbered(work, range(number, number + len(lines))), lines)
            number += len(lines)


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

    def runs_of(self, work: bytes) -> Iterator[Run]:
        """Yield the records of a file."""
        number = 0
        runs = read_fixed_runs(work, *self._lengths, self._encoding, wanted=lambda: self.wanted)
        for rows in runs:
            numbers = range(number, number + len(rows))
            yield Run(numbered(work, numbers), StringRows(rows))
            number += len(rows)


@final
class Records(Reader):
    """Records of files of records; a key is the file and the byte at which the record begins."""

    def __init__(self, name: str, *, compression_type: str) -> None:
        super().__init__(name)
        self._compression = compression_type
        # How long the records were that were read last: those of the next file are mostly alike.
        self._size = 0

    def runs_of(self, work: bytes) -> Iterator[Run]:
        """Yield the records of a file."""

        def wanted() -> tuple[int, int]:
            return self.wanted, self.limit

        for begins, data in read_runs(work, self._compression, wanted=wanted, size=self._size):
            self._size = begins[-1] - begins[-2]
            values = data if isinstance(data, list) else StringRows(data)
            yield Run(numbered(work, begins), values)


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

    def may_block(self, work: bytes) -> bool:
        """Return False: what the queue holds is there."""
        return False

    def records_of(self, work: bytes) -> Iterator[Record]:
        """Yield the work itself."""
        yield work, work
