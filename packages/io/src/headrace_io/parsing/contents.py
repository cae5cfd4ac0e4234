"""Contents: what a batch of examples holds of each feature, still as bytes.

Examples that one program wrote are mostly alike up to the values, and of one length. They are
taken apart together: one is scanned, and of those behind it NumPy compares what stands around the
values with what stands there in the first.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from headrace.extend.kernels import StringRows
from headrace_io.parsing.wire import NOTHING, Content, Found, example_of

Array: TypeAlias = Any

# How many examples are compared at once: the first by itself, as most that differ do so at once.
_BLOCKS = (16, 64, 256, 1024)
_BLOCK_BYTES = 1 << 22


class Contents(NamedTuple):
    """What some examples, or steps of them, hold of one feature.

    Attributes:
        kinds: [n], numbers of kinds; ``NOTHING`` where there is no feature.
        raw: The bytes of each; [n, length], uint8, where those of all stand in one array.
    """

    kinds: Array
    raw: list[bytes] | Array


def contents_of(contents: Sequence[Content | None]) -> Contents:
    """Return contents that were found one by one; None stands for no feature."""
    kinds = np.array([NOTHING if c is None else c[0] for c in contents], np.uint8)
    return Contents(kinds, [b"" if c is None else c[1] for c in contents])


def features_of(
    examples: Sequence[bytes] | StringRows, keys: Collection[bytes], label: Callable[[int], str]
) -> dict[bytes, Contents]:
    """Return the contents of those features of ``Example`` messages that are asked for.

    Args:
        examples: The bytes of the examples.
        keys: The names of the features.
        label: What messages call each example.

    Raises:
        InvalidArgumentError: if the bytes are no example.
    """
    if isinstance(examples, StringRows):
        if examples.size:
            together = taken_together(examples.rows, keys, label)
            if together is not None:
                return together
        examples = examples.tolist()
    total = len(examples)
    lengths = list(map(len, examples))
    even = total > 1 and total * lengths[0] <= _BLOCK_BYTES and len(set(lengths)) == 1
    # One that differs does so at once, mostly.
    if even and taken_together(_rows(examples[:2]), keys, label) is not None:
        together = taken_together(_rows(examples), keys, label)
        if together is not None:
            return together
    found = {key: Contents(np.full(total, NOTHING, np.uint8), [b""] * total) for key in keys}
    number = 0
    while number < total:
        first = example_of(examples[number], keys, label(number))
        alike: Sequence[bytes] = [first.data]
        if first.data is examples[number]:
            alike = examples[number : number + _count_alike(examples, lengths, number, first)]
        stop = number + len(alike)
        for key, (kind, a, b) in first.spans.items():
            kinds, raw = found[key]
            kinds[number:stop] = kind
            raw[number:stop] = [data[a:b] for data in alike]
        number = stop
    return found


def _rows(examples: Sequence[bytes]) -> Array:
    return np.frombuffer(b"".join(examples), np.uint8).reshape(len(examples), -1)


def taken_together(
    rows: Array, keys: Collection[bytes], label: Callable[[int], str]
) -> dict[bytes, Contents] | None:
    """Return the contents of examples of one length; None where they differ but in values.

    Args:
        rows: [n, length], uint8, the bytes of the examples; at least one.
        keys: The names of the features.
        label: What messages call each example.
    """
    total = len(rows)
    data = rows[0].tobytes()
    first = example_of(data, keys, label(0))
    if first.data is not data:
        return None
    # Joined, which is quicker than comparing row by row.
    if any(rows[:, a:b].tobytes() != data[a:b] * total for a, b in _frame(first) if a < b):
        return None
    found = {}
    for key in keys:
        kind, a, b = first.spans.get(key, (NOTHING, 0, 0))
        found[key] = Contents(np.full(total, kind, np.uint8), rows[:, a:b])
    return found


def _frame(found: Found) -> list[tuple[int, int]]:
    """Return the beginnings and ends of what stands around the values of an example."""
    spans = sorted([*((a, b) for _, a, b in found.spans.values()), *found.skipped])
    edges = [0, *itertools.chain.from_iterable(spans), len(found.data)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _count_alike(
    examples: Sequence[bytes], lengths: Sequence[int], first: int, found: Found
) -> int:
    """Return how many examples differ from the first only in values, itself among them."""
    data = found.data
    length = len(data)
    end = first + 1
    if end == len(examples) or lengths[end] != length:
        return 1
    frame = _frame(found)
    following = examples[end]
    if any(following[a:b] != data[a:b] for a, b in frame):
        return 1
    end += 1
    places = np.concatenate([np.arange(a, b) for a, b in frame])
    expected = np.frombuffer(data, np.uint8)[places]
    for most in itertools.chain(_BLOCKS, itertools.repeat(_BLOCKS[-1])):
        stop = min(end + most, end + max(1, _BLOCK_BYTES // length), len(examples))
        others = (number for number in range(end, stop) if lengths[number] != length)
        count = next(others, stop) - end
        block = np.frombuffer(b"".join(examples[end : end + count]), np.uint8)
        differ = (block.reshape(count, length)[:, places] != expected).any(axis=1)
        if differ.any():
            return end + int(differ.argmax()) - first
        end += count
        if end < stop or end == len(examples):
            return end - first
    raise AssertionError
