"""External arrays: kept apart from a graph's document, each once, named by a hash of its bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol, final

from headrace.errors import DocumentError, told
from headrace.graph.context_blocks import read, within

_PREFIX = "blake2b:"
# Smaller ones cost less in the document than their name does.
_LEAST_BYTES = 4096


class ArrayStore(Protocol):
    """Where the bytes of arrays are put when a document is written, and found when it is read."""

    def put(self, name: str, data: bytes) -> None:
        """Take the bytes of an array, little-endian and in C order."""

    def get(self, name: str) -> bytes | None:
        """Return the bytes of an array, None if they are not here."""


@final
class Arrays:
    """A store that remembers what is new in it.

    Attributes:
        known: The names of arrays that whoever reads the document has already.
        new: The bytes of all others, by name.
    """

    def __init__(self, known: Mapping[str, object] | set[str] | frozenset[str]) -> None:
        """Begin with nothing new."""
        self.known = known
        self.new: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        """Take the bytes of an array, unless they are known."""
        if name not in self.known:
            self.new[name] = data

    def get(self, name: str) -> bytes | None:
        """Return what was put here."""
        return self.new.get(name)


_store: ContextVar[ArrayStore | None] = ContextVar("headrace_array_store", default=None)


@contextmanager
def arrays_apart(store: ArrayStore) -> Iterator[None]:
    """Keep large arrays of documents that are written or read in the block in a store."""
    with within(_store, store):
        yield


def put_external(data: bytes) -> str | None:
    """Put the bytes of an array into the store in force; return its name, None without one."""
    store = read(_store)
    if store is None or len(data) < _LEAST_BYTES:
        return None
    # lazy: importing it takes 3 ms, and few programs write documents
    import hashlib

    name = _PREFIX + hashlib.blake2b(data, digest_size=20).hexdigest()
    store.put(name, data)
    return name


def get_external(name: object) -> bytes | None:
    """Return the bytes of an array that is apart, None for what is no name of one.

    Raises:
        DocumentError: if the store in force does not have it.
    """
    store = read(_store)
    if store is None or not isinstance(name, str) or not name.startswith(_PREFIX):
        return None
    data = store.get(name)
    if data is None:
        raise DocumentError(f"the array {told(name)} did not come with the document")
    return data
