"""Where the features of an example stand in its bytes.

The form that writers give examples is scanned for the places of the lists of values, which NumPy
then reads as a whole. What has the meaning of an example in another form, such as numbers that are
not packed, is brought into the usual one by the Protocol Buffers library.

References:
    https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple, TypeAlias, TypeVar

from headrace.errors import InvalidArgumentError
from headrace_io import protos

T = TypeVar("T")

# What is in a feature, as the numbers of its fields say.
NOTHING, BYTES, FLOATS, INTEGERS = 0, 1, 2, 3
KIND_NAMES = ("nothing", "strings", "floats", "integers")

# The kind of a feature, and its content: for strings a list of messages, else packed numbers.
Content: TypeAlias = tuple[int, bytes]
# The same, as the places of the first byte and the one behind the last.
Span: TypeAlias = tuple[int, int, int]

_FIRST, _SECOND, _THIRD = 0x0A, 0x12, 0x1A
_KIND_OF = {_FIRST: BYTES, _SECOND: FLOATS, _THIRD: INTEGERS}


class _OddError(Exception):
    """The bytes are not in the usual form."""


class Found(NamedTuple):
    """What is found in an example.

    Attributes:
        data: The example in the usual form.
        spans: Where the contents of the features that are asked for stand in it, by name.
        skipped: Where there are values of features that nobody asks for.
    """

    data: bytes
    spans: dict[bytes, Span]
    skipped: list[tuple[int, int]]


def example_of(data: bytes, keys: Collection[bytes], label: str) -> Found:
    """Return those features of an ``Example`` that are asked for and there.

    Raises:
        InvalidArgumentError: if the bytes are no example.
    """
    data, (spans, skipped) = _scanned(data, "Example", label, lambda usual: _example(usual, keys))
    return Found(data, spans, skipped)


def sequence_of(
    data: bytes, context_keys: Collection[bytes], list_keys: Collection[bytes], label: str
) -> tuple[dict[bytes, Content], dict[bytes, list[Content]]]:
    """Return those features and lists of a ``SequenceExample`` that are asked for and there.

    Raises:
        InvalidArgumentError: if the bytes are no example of a sequence.
    """
    data, (context, lists) = _scanned(
        data, "SequenceExample", label, lambda usual: _sequence(usual, context_keys, list_keys)
    )
    return (
        {key: (kind, data[a:b]) for key, (kind, a, b) in context.items()},
        {key: [(kind, data[a:b]) for kind, a, b in steps] for key, steps in lists.items()},
    )


def strings_in(content: bytes) -> list[bytes]:
    """Return the strings of a content.

    Raises:
        IndexError: if there is something else in it.
    """
    found, at, end = [], 0, len(content)
    while at < end:
        stop, at = _enter(content, at, _FIRST, end)
        found.append(content[at:stop])
        at = stop
    return found


def _scanned(data: bytes, message: str, label: str, scan: Callable[[bytes], T]) -> tuple[bytes, T]:
    """Return a message in the usual form, and what is found in it."""
    try:
        return data, scan(data)
    except (_OddError, IndexError):
        usual = _usual_form(data, message, label)
    return usual, scan(usual)


def _usual_form(data: bytes, message: str, label: str) -> bytes:
    # lazy: most examples are in the usual form
    from google.protobuf.message import DecodeError

    try:
        parsed: Any = getattr(protos, message).FromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(
            f"{label} is no {message}, or is damaged ({len(data)} bytes, {data[:24]!r}...): {error}"
        ) from error
    parsed.DiscardUnknownFields()
    usual: bytes = parsed.SerializeToString()
    return usual


def _enter(data: bytes, at: int, tag: int, end: int) -> tuple[int, int]:
    """Return the end and the beginning of a field that stands at a place."""
    if data[at] != tag:
        raise _OddError
    length = data[at + 1]
    at += 2
    if length > 0x7F:
        length, at = _varint(data, at - 1)
    stop = at + length
    if stop > end:
        raise _OddError
    return stop, at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _OddError


def _example(
    data: bytes, keys: Collection[bytes]
) -> tuple[dict[bytes, Span], list[tuple[int, int]]]:
    end = len(data)
    if not end:
        return {}, []
    stop, at = _enter(data, 0, _FIRST, end)
    if stop != end:
        raise _OddError
    return _features(data, at, end, keys)


def _features(
    data: bytes, at: int, end: int, keys: Collection[bytes]
) -> tuple[dict[bytes, Span], list[tuple[int, int]]]:
    found: dict[bytes, Span] = {}
    skipped = []
    while at < end:
        stop, at = _enter(data, at, _FIRST, end)
        key_stop, at = _enter(data, at, _FIRST, stop)
        key = data[at:key_stop]
        value_stop, at = _enter(data, key_stop, _SECOND, stop)
        if value_stop != stop:
            raise _OddError
        if key in keys:
            # Of several features of one name the last one counts.
            found[key] = _feature(data, at, stop)
        else:
            skipped.append((at, stop))
        at = stop
    return found, skipped


def _feature(data: bytes, at: int, end: int) -> Span:
    if at == end:
        return NOTHING, at, end
    tag = data[at]
    kind = _KIND_OF.get(tag, NOTHING)
    if not kind:
        raise _OddError
    stop, at = _enter(data, at, tag, end)
    if stop != end:
        raise _OddError
    if kind == BYTES or at == end:
        return kind, at, end
    # Numbers are packed into one field.
    stop, at = _enter(data, at, _FIRST, end)
    if stop != end or (kind == FLOATS and (end - at) % 4):
        raise _OddError
    return kind, at, end


def _sequence(
    data: bytes, context_keys: Collection[bytes], list_keys: Collection[bytes]
) -> tuple[dict[bytes, Span], dict[bytes, list[Span]]]:
    context: dict[bytes, Span] = {}
    lists: dict[bytes, list[Span]] = {}
    at, end = 0, len(data)
    if at < end and data[at] == _FIRST:
        stop, at = _enter(data, at, _FIRST, end)
        context, _ = _features(data, at, stop, context_keys)
        at = stop
    if at < end:
        stop, at = _enter(data, at, _SECOND, end)
        if stop != end:
            raise _OddError
        lists = _lists(data, at, stop, list_keys)
    return context, lists


def _lists(data: bytes, at: int, end: int, keys: Collection[bytes]) -> dict[bytes, list[Span]]:
    found = {}
    while at < end:
        stop, at = _enter(data, at, _FIRST, end)
        key_stop, at = _enter(data, at, _FIRST, stop)
        key = data[at:key_stop]
        value_stop, at = _enter(data, key_stop, _SECOND, stop)
        if value_stop != stop:
            raise _OddError
        if key in keys:
            steps = []
            while at < stop:
                step_stop, at = _enter(data, at, _FIRST, stop)
                steps.append(_feature(data, at, step_stop))
                at = step_stop
            found[key] = steps
        at = stop
    return found
