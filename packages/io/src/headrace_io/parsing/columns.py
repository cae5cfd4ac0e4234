"""Columns: the values of one feature in a batch of examples, as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headrace import DType, Shape
from headrace.errors import InvalidArgumentError
from headrace.extend.kernels import StringRows
from headrace_io.parsing.contents import Contents
from headrace_io.parsing.wire import BYTES, FLOATS, INTEGERS, KIND_NAMES, NOTHING, strings_in

Array: TypeAlias = Any
# From the number of an example, or of a step of one, to what messages call it.
Label: TypeAlias = Callable[[int], str]

_KIND_OF_DTYPE = {"string": BYTES, "float32": FLOATS, "int64": INTEGERS}
_LONGEST = 10


class Column(NamedTuple):
    """The values of one feature.

    Attributes:
        values: Those of all examples, one after the other; ``StringRows`` where these were asked
            for and each example has one string, all of one length.
        counts: How many of them are each example's.
        there: Whether each example has the feature.
        each: How many values each has, where it is known that all have as many.
    """

    values: Array
    counts: Array
    there: Array
    each: int = -1


def column(
    contents: Contents, key: str, dtype: DType, label: Label, *, in_rows: bool = False
) -> Column:
    """Read a column.

    Args:
        contents: What each example holds of the feature.
        key: The feature's name.
        dtype: The dtype that is asked for.
        label: What messages call each example.
        in_rows: Whether strings may be ``StringRows``.

    Raises:
        InvalidArgumentError: if a feature is of another kind, or is damaged.
    """
    kind = _KIND_OF_DTYPE[dtype.name]
    kinds, raw = contents
    if not isinstance(raw, list) and kinds[0] == kind:
        # Those of all are alike.
        there, wrong = np.ones(len(kinds), bool), np.empty(0, np.intp)
    else:
        there = kinds != NOTHING
        wrong = np.flatnonzero(there & (kinds != kind))
    if len(wrong):
        number = int(wrong[0])
        raise InvalidArgumentError(
            f"feature {key!r} of {label(number)} holds {KIND_NAMES[kinds[number]]}, expected "
            f"{dtype}"
        )
    each = -1
    if not isinstance(raw, list):
        if kind == BYTES:
            values, counts = _strings_of_one_length(raw, key, label, in_rows=in_rows)
            each = 1 if isinstance(values, StringRows) else -1
        elif kind == FLOATS:
            values = np.ascontiguousarray(raw).reshape(-1).view("<f4").astype(np.float32)
            each = raw.shape[1] // 4
            counts = np.full(len(raw), each, np.int64)
        else:
            joined = np.ascontiguousarray(raw).reshape(-1)
            sizes = np.full(len(raw), raw.shape[1], np.int64)
            values, counts = _integers(joined, sizes, key, label)
            # Each takes a byte where all bytes are ends.
            each = raw.shape[1] if counts is sizes else -1
    elif kind == BYTES:
        values, counts = _strings(raw, key, label)
    elif kind == FLOATS:
        counts = np.fromiter(map(len, raw), np.int64, len(raw)) // 4
        values = np.frombuffer(b"".join(raw), "<f4").astype(np.float32, copy=False)
    else:
        joined = np.frombuffer(b"".join(raw), np.uint8)
        sizes = np.fromiter(map(len, raw), np.int64, len(raw))
        values, counts = _integers(joined, sizes, key, label)
    return Column(values, counts, there, each)


def _strings(raw: Sequence[bytes], key: str, label: Label) -> tuple[Array, Array]:
    found: list[bytes] = []
    counts = np.ones(len(raw), np.int64)
    # One string and no more, as long as the one before: what stands before it says so.
    length, before = -1, b""
    if len(set(map(len, raw))) == 1:
        found = _alike(raw)
    for number, content in enumerate(raw[len(found) :], len(found)):
        if len(content) == length and content.startswith(before):
            found.append(content[len(before) :])
            continue
        try:
            strings = strings_in(content)
        except Exception as error:
            raise InvalidArgumentError(f"feature {key!r} of {label(number)} is damaged") from error
        if len(strings) == 1:
            length, before = len(content), content[: len(content) - len(strings[0])]
        counts[number] = len(strings)
        found += strings
    values = np.empty(len(found), object)
    values[:] = found
    return values, counts


def _strings_of_one_length(
    raw: Array, key: str, label: Label, *, in_rows: bool
) -> tuple[Array, Array]:
    """Return what ``_strings`` does, of contents [n, length]."""
    length = raw.shape[1]
    try:
        strings = strings_in(raw[0].tobytes())
    except Exception:
        strings = []
    start = length - len(strings[0]) if len(strings) == 1 else length
    if start == length or raw[:, :start].tobytes() != raw[0, :start].tobytes() * len(raw):
        return _strings([row.tobytes() for row in raw], key, label)
    rows = StringRows(raw[:, start:])
    return rows if in_rows else np.asarray(rows), np.ones(len(raw), np.int64)


def _alike(raw: Sequence[bytes]) -> list[bytes]:
    """Return the one string in each of some contents of one length, none if they differ."""
    try:
        (first,) = strings_in(raw[0])
    except Exception:
        return []
    start = len(raw[0]) - len(first)
    if len({content[:start] for content in raw}) > 1:
        return []
    return [content[start:] for content in raw]


def _integers(joined: Array, sizes: Array, key: str, label: Label) -> tuple[Array, Array]:
    """Decode packed integers, all at once: seven bits in each byte, the lowest first.

    Args:
        joined: The bytes of all examples.
        sizes: How many are each example's.
        key: The feature's name.
        label: What messages call each example.
    """
    is_last = joined < 0x80
    if is_last.all():
        return joined.astype(np.int64), sizes
    behind = np.cumsum(sizes)
    cut = np.flatnonzero((sizes > 0) & ~is_last[behind - 1])
    if len(cut):
        raise InvalidArgumentError(
            f"feature {key!r} of {label(int(cut[0]))} is damaged: its last integer is cut short"
        )
    ends = np.flatnonzero(is_last)
    counts = np.diff(np.searchsorted(ends, behind), prepend=0)
    starts = np.concatenate([[0], ends[:-1] + 1])
    lengths = ends - starts + 1
    if lengths.max() > _LONGEST:
        number = int(np.searchsorted(np.cumsum(counts), lengths.argmax(), side="right"))
        raise InvalidArgumentError(
            f"feature {key!r} of {label(number)} is damaged: an integer takes more than "
            f"{_LONGEST} bytes"
        )
    values = (joined[starts] & 0x7F).astype(np.uint64)
    for place in range(1, int(lengths.max())):
        longer = np.flatnonzero(lengths > place)
        bits = (joined[starts[longer] + place] & 0x7F).astype(np.uint64)
        values[longer] |= bits << np.uint64(7 * place)
    return values.view(np.int64), counts.astype(np.int64)


# -- what becomes of columns


def dense(found: Column, key: str, shape: Shape, default: Array, label: Label) -> Array:
    """Return a column of fixed length, [n, *shape].

    Args:
        found: The column.
        key: The feature's name.
        shape: The shape of each example's values.
        default: The values of an example without the feature; empty if it must have it.
        label: What messages call each example.

    Raises:
        InvalidArgumentError: if an example lacks the feature, or has another number of values.
    """
    size = shape.num_elements() or 0
    sizes = tuple(shape.known)
    alike = found.each == size and found.there[:1].all()
    if alike or (found.there.all() and (found.counts == size).all()):
        if isinstance(found.values, StringRows):
            return found.values
        return found.values.reshape(len(found.counts), *sizes)
    default = np.asarray(default, found.values.dtype)
    if not default.size and not found.there.all():
        number = int(np.flatnonzero(~found.there)[0])
        raise InvalidArgumentError(
            f"{label(number)} has no feature {key!r}, and there is no default value"
        )
    wrong = np.flatnonzero(found.there & (found.counts != size))
    if len(wrong):
        number = int(wrong[0])
        raise InvalidArgumentError(
            f"feature {key!r} of {label(number)} has {found.counts[number]} values, expected "
            f"{size}, for the shape {shape}"
        )
    made = np.empty((len(found.counts), size), found.values.dtype)
    made[found.there] = found.values.reshape(-1, size)
    made[~found.there] = default.reshape(-1)
    return made.reshape(len(found.counts), *sizes)


def padded(found: Column, key: str, item: Shape, padding: Array, label: Label) -> Array:
    """Return a column of sequences of items, [n, longest, *item].

    Args:
        found: The column.
        key: The feature's name.
        item: The shape of each item.
        padding: A scalar to fill up with.
        label: What messages call each example.

    Raises:
        InvalidArgumentError: if an example's values are no whole number of items.
    """
    size = item.num_elements() or 0
    wrong = np.flatnonzero(found.counts % size if size else found.counts)
    if len(wrong):
        number = int(wrong[0])
        raise InvalidArgumentError(
            f"feature {key!r} of {label(number)} has {found.counts[number]} values, expected a "
            f"multiple of {size}, for items of the shape {item}"
        )
    longest = int(found.counts.max(initial=0))
    rows = len(found.counts)
    made = np.empty((rows, longest), found.values.dtype)
    made[...] = np.asarray(padding, found.values.dtype)[()]
    made[np.arange(longest) < found.counts[:, None]] = found.values
    return made.reshape(rows, longest // size if size else 0, *item.known)


def sparse(found: Column) -> tuple[Array, Array, Array]:
    """Return indices [m, 2], values [m] and shape [2] of a column."""
    counts = found.counts
    begins = np.cumsum(counts) - counts
    indices = np.empty((len(found.values), 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
    indices[:, 1] = np.arange(len(found.values)) - np.repeat(begins, counts)
    shape = np.array([len(counts), counts.max(initial=0)], np.int64)
    return indices, found.values, shape
