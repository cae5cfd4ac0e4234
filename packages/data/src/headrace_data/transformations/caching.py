"""Caches: the elements of a first pass are kept for those that follow, in memory or a file."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

import headrace as hr
from headrace.errors import AlreadyExistsError, DataLossError
from headrace_data.build import make, scalar
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    OneSource,
    State,
    Stream,
    count_of,
    read_only,
    stream,
)
from headrace_data.state.encoding import decode, encode
from headrace_data.structure import Described

_SUFFIX = ".cache"
# A file under construction has another name, and takes its own when all elements are in it.
_PARTIAL = ".partial"


def cache(dataset: Described, filename: Any) -> Described:
    """Return a data set of the same elements, kept after the first pass."""
    name = scalar(filename, hr.string, "filename")
    return make("cache", dataset.spec, sources=[dataset], arguments=[name])


class CachedElements:
    """The elements that a cache in memory has, of all passes of an iterator."""

    def __init__(self) -> None:
        self.elements: list[Element] | None = None

    def save(self) -> State:
        """Return the elements."""
        return None if self.elements is None else [list(element) for element in self.elements]

    def restore(self, state: State) -> None:
        """Have the same elements."""
        self.elements = None if state is None else [tuple(element) for element in state]


@stream("cache")
class CacheStream(Stream):
    """The elements of the data set, or those that are kept."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        name = bytes(np.asarray(value.arguments[0])[()]).decode()
        self._stream = FileCache(value, run, name) if name else MemoryCache(value, run)

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def next(self) -> Element | None:
        """Return the next element."""
        return self._stream.next()

    def save(self) -> State:
        """Return how many were taken, and where the source stands in the first pass."""
        return self._stream.save()

    def restore(self, state: State) -> None:
        """Go there."""
        self._stream.restore(state)

    def close(self) -> None:
        """Close the source."""
        self._stream.close()


class MemoryCache(OneSource):
    """A pass over elements that are kept in memory, or that keeps them."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._kept = run.cell(CachedElements)
        self._reading = self._kept.elements is not None
        self._new: list[Element] = []
        self._at = 0

    def next(self) -> Element | None:
        """Return the next element."""
        if not self._reading:
            element = self.source.next()
            if element is None:
                # Passes that end early keep nothing: others could miss what they left out.
                self._kept.elements = self._new
                self._reading, self._at = True, len(self._new)
                return None
            element = read_only(element)
            self._new.append(element)
            return element
        elements = self._kept.elements
        if elements is None or self._at >= len(elements):
            return None
        self._at += 1
        return elements[self._at - 1]

    def save(self) -> State:
        """Return what it keeps so far, or how many were taken of what was kept before."""
        if self._reading:
            return [self._at]
        return [[list(element) for element in self._new], self.source.save()]

    def restore(self, state: State) -> None:
        """Go there."""
        if len(state) == 1:
            self._reading, self._at = True, state[0]
            return
        self._new = [read_only(element) for element in state[0]]
        self.source.restore(state[1])


_WRITING: set[str] = set()
_LOCK = threading.Lock()


class FileCache(Stream):
    """A pass over elements that are kept in a file, or that keeps them.

    Each element is written behind the number of its bytes. The file takes its name when all are in
    it; a pass that ends early leaves nothing that another one would read.
    """

    def __init__(self, value: DatasetValue, run: Pass, name: str) -> None:
        super().__init__(value, run)
        self._path = Path(name + _SUFFIX)
        self._partial = Path(name + _SUFFIX + _PARTIAL)
        self._source: Stream | None = None
        self._file: BinaryIO | None = None
        self._offset = 0
        self._writing = False
        self._ended = False

    def next(self) -> Element | None:
        """Return the next element.

        Raises:
            DataLossError: if the file is damaged.
        """
        if self._ended:
            return None
        if self._file is None:
            self._begin()
        return self._write() if self._writing else self._read()

    def _begin(self) -> None:
        if self._path.is_file():
            self._file = self._path.open("rb")
            return
        self._claim()
        self._partial.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._partial.open("wb")
        self._source = self.value.sources[0].open(self.run.part(0))

    def _claim(self) -> None:
        with _LOCK:
            if str(self._partial) in _WRITING:
                raise AlreadyExistsError(
                    f"the cache {str(self._path)!r} is being written by another iterator; let its "
                    "first pass end, or give this one a file of its own"
                )
            _WRITING.add(str(self._partial))
        self._writing = True

    def _write(self) -> Element | None:
        assert self._file is not None
        assert self._source is not None
        element = self._source.next()
        if element is None:
            self._file.close()
            self._partial.replace(self._path)
            self._ended = True
            self._let_go()
            return None
        data = encode(list(element))
        self._file.write(len(data).to_bytes(8, "little") + data)
        self._offset += 8 + len(data)
        return element

    def _read(self) -> Element | None:
        assert self._file is not None
        head = self._file.read(8)
        if not head:
            self._ended = True
            return None
        data = self._file.read(int.from_bytes(head, "little"))
        try:
            element = tuple(decode(data))
        except DataLossError as error:
            raise DataLossError(
                f"the cache {str(self._path)!r} is damaged at byte {self._offset}: {error}; delete "
                "it to have it written again"
            ) from None
        self._offset += len(head) + len(data)
        return element

    def save(self) -> State:
        """Return the place in the file, and where the source stands in the first pass."""
        if self._writing and self._file is not None and not self._ended:
            self._file.flush()
            assert self._source is not None
            return [self._offset, self._ended, [self._source.save()]]
        return [self._offset, self._ended, None]

    def restore(self, state: State) -> None:
        """Go there.

        Raises:
            DataLossError: if the file is gone.
        """
        self._offset, self._ended, source = state
        if self._ended or (self._offset == 0 and source is None):
            return
        if self._path.is_file():
            # Also where the position is one of the first pass, which went on after it was saved.
            self._file = self._path.open("rb")
            self._file.seek(self._offset)
            return
        if source is None or not self._partial.is_file():
            raise DataLossError(
                f"the cache {str(self._path)!r} is gone, or was never complete, and the saved "
                "position is in the middle of it; start anew, without the position"
            )
        self._claim()
        self._file = self._partial.open("r+b")
        self._file.truncate(self._offset)
        self._file.seek(self._offset)
        self._source = self.value.sources[0].open(self.run.part(0))
        self._source.restore(source[0])

    def _let_go(self) -> None:
        with _LOCK:
            _WRITING.discard(str(self._partial))

    def close(self) -> None:
        """Close file and source."""
        if self._file is not None:
            self._file.close()
        if self._writing:
            self._let_go()
        if self._source is not None:
            self._source.close()
