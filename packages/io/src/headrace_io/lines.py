"""Lines of text files."""

from __future__ import annotations

from collections.abc import Iterator

from headrace_io.streams import CHUNK, FileName, InputStream


def read_lines(
    path: FileName, compression: str = "", *, skip_header_lines: int = 0, start: int = 0
) -> Iterator[tuple[int, int, bytes]]:
    r"""Yield the lines of a file, without their ends, which are ``\n`` or ``\r\n``.

    Args:
        path: The file.
        compression: ``""``, ``"ZLIB"`` or ``"GZIP"``.
        skip_header_lines: How many lines to leave out.
        start: The byte to begin at, of the content after decompression: one at which a line
            begins, as of an earlier reading.

    Yields:
        The byte at which a line begins, the one at which the next does, and the line.

    Raises:
        NotFoundError: if the file is not there; see ``InputStream`` for others.
        DataLossError: if compressed data are damaged, or end early.
    """
    position, skip = start, skip_header_lines
    for lines, end in lines_and_ends(path, compression, start):
        for line in lines:
            begin, position = position, position + len(line) + end
            if skip:
                skip -= 1
            else:
                yield begin, position, line.removesuffix(b"\r")


def read_runs_of_lines(path: FileName, *, skip_header_lines: int = 0) -> Iterator[list[bytes]]:
    """Yield the lines of a file, many at once; otherwise as ``read_lines``."""
    skip = skip_header_lines
    for lines, _ in lines_and_ends(path, "", 0):
        run = lines[skip:]
        skip -= len(lines) - len(run)
        if run:
            yield [line.removesuffix(b"\r") for line in run]


def lines_and_ends(
    path: FileName, compression: str, start: int
) -> Iterator[tuple[list[bytes], int]]:
    """Yield lines, with how many bytes end each: one, or none behind the last of the file."""
    with InputStream(path, compression) as stream:
        stream.skip(start)
        # The beginning of a line whose end is not read yet.
        begun: list[bytes] = []
        while chunk := stream.read(CHUNK):
            if b"\n" not in chunk:
                begun.append(chunk)
                continue
            lines = b"".join([*begun, chunk]).split(b"\n")
            begun = [lines.pop()]
            yield lines, 1
        last = b"".join(begun)
        if last:
            yield [last], 0
