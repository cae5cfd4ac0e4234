"""Records of files of comma-separated values, in which quoted fields may hold ends of lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import final

from headrace.errors import InvalidArgumentError
from headrace_io.lines import lines_and_ends
from headrace_io.streams import FileName, file_name

_QUOTE, _RETURN = b'"', b"\r"


def read_csv_records(
    path: FileName,
    compression: str = "",
    *,
    delimiter: str = ",",
    quotes: bool = True,
    header: bool = False,
    start: int = 0,
) -> Iterator[tuple[int, int, bytes]]:
    r"""Yield the records of a file, without their ends: ``\n``, ``\r\n`` or ``\r``.

    A record of wrong quotes ends with its line.

    Args:
        path: The file.
        compression: ``""``, ``"ZLIB"`` or ``"GZIP"``.
        delimiter: The character between fields.
        quotes: Whether fields may stand in double quotes.
        header: Whether the first line is left out.
        start: The byte to begin at, of the content after decompression: one at which a record
            begins, as of an earlier reading; 0 for the first one.

    Yields:
        The byte at which a record begins, the one at which the next does, and the record.

    Raises:
        InvalidArgumentError: if there is no line to leave out.
        NotFoundError: if the file is not there; see ``InputStream`` for others.
        DataLossError: if compressed data are damaged, or end early.
    """
    scan = _Scan(delimiter.encode(), quotes)
    position, skipped = start, not header or start > 0
    begin, begun = start, list[bytes]()
    for lines, end in lines_and_ends(path, compression, start):
        for line in lines:
            first, position = position, position + len(line) + end
            if not skipped:
                skipped = True
                begin = position
                continue
            if scan.plain(line):
                yield first, position, line.removesuffix(_RETURN)
                begin = position
                continue
            done = 0
            for stop in scan.ends(line):
                after = position if stop + 1 == len(line) else first + stop + 1
                yield begin, after, b"".join([*begun, line[done:stop]])
                begin, done = after, stop + 1
                begun.clear()
            rest = line[done:]
            if scan.inside:
                begun.append(rest + b"\n" * end)
            elif rest or begun or not done:
                yield begin, position, b"".join([*begun, rest])
                begin = position
                begun.clear()
    if not skipped:
        raise InvalidArgumentError(f"cannot read the header of the file {file_name(path)}")
    if begun:
        yield begin, position, b"".join(begun)


@final
@dataclass(slots=True)
class _Scan:
    """Finds the ends of records within lines.

    Attributes:
        delimiter: The character between fields.
        quotes: Whether fields may stand in quotes.
        inside: Whether the last line ended within quotes.
    """

    delimiter: bytes
    quotes: bool
    inside: bool = False
    _next: re.Pattern[bytes] = field(init=False)

    def __post_init__(self) -> None:
        marks = self.delimiter + _RETURN + (_QUOTE if self.quotes else b"")
        self._next = re.compile(b"[" + re.escape(marks) + b"]")

    def plain(self, line: bytes) -> bool:
        """Whether a line is a record as it stands."""
        if self.inside or (self.quotes and _QUOTE in line):
            return False
        return line.find(_RETURN, 0, -1) < 0

    def ends(self, line: bytes) -> Iterator[int]:
        """Yield where records end within a line."""
        at = 0
        while at < len(line):
            if self.inside or (self.quotes and line.startswith(_QUOTE, at)):
                at = self._behind_quotes(line, at if self.inside else at + 1)
                if self.inside:
                    return
                if at == len(line):
                    return
                if line.startswith(self.delimiter, at):
                    at += 1
                    continue
                at = line.find(_RETURN, at)
            else:
                found = self._next.search(line, at)
                if found is None:
                    return
                at = found.start()
                if line.startswith(self.delimiter, at):
                    at += 1
                    continue
                at = line.find(_RETURN, at)
            if at < 0:
                return
            yield at
            at += 1

    def _behind_quotes(self, line: bytes, at: int) -> int:
        """Return where quotes that were opened are closed, one behind that."""
        while True:
            at = line.find(_QUOTE, at)
            if at < 0:
                self.inside = True
                return len(line)
            if not line.startswith(_QUOTE, at + 1):
                self.inside = False
                return at + 1
            at += 2
