"""Heaps of HDF5 that were forged are refused; sound ones are read as HDF5 reads them."""

from __future__ import annotations

import io
import struct

import pytest

from headrace_train.checkpoint.heaps import Heaps


def _heap(*objects: tuple[int, int, bytes], size: int | None = None) -> bytes:
    """Return a heap of objects, each with the number and the length that it states."""
    body = b"".join(
        struct.pack("<HHxxxxQ", number, 1, length) + data.ljust(-(-len(data) // 8) * 8, b"\0")
        for number, length, data in objects
    )
    stated = 16 + len(body) if size is None else size
    return struct.pack("<4sB3xQ", b"GCOL", 1, stated) + body


def _heaps(content: bytes, base: int = 0) -> Heaps:
    return Heaps(io.BytesIO(b"\0" * base + content), base, base + len(content))


def test_objects_are_found_by_their_numbers() -> None:
    content = _heap((1, 5, b"first"), (7, 8, b"eightful"), (0, 0, b""), (2, 4, b"none"))
    heaps = _heaps(content, base=24)
    assert heaps.element(5, 0, 1).tobytes() == b"first"
    assert heaps.element(3, 0, 7).tobytes() == b"eig"
    assert heaps.element(0, 12345, 9).tobytes() == b""
    # What comes behind the object without a number is room that is left.
    with pytest.raises(ValueError, match="the heap at byte 24 lacks its object 2"):
        heaps.element(4, 0, 2)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (_heap((1, 2**64 - 8, b"loop")), "the heap at byte 0 is damaged"),
        (_heap((1, 2**64 - 1, b"loop")), "the heap at byte 0 is damaged"),
        (_heap((1, 9, b"long")), "the heap at byte 0 is damaged"),
        (_heap((1, 4, b"once"), (1, 4, b"more")), "the heap at byte 0 is damaged"),
        (_heap((2, 4, b"else")), "lacks its object 1"),
        (_heap((1, 3, b"few")), "lacks its object 1"),
        (_heap((1, 4, b"much"), size=2**40), "there is no heap at byte 0"),
        (_heap((1, 4, b"none"), size=0), "lacks its object 1"),
        (b"GCOL" + b"\2" * 40, "there is no heap at byte 0"),
        (b"HEAP" * 10, "there is no heap at byte 0"),
        (b"GCOL", "the file ends inside of it"),
        (b"", "the file ends inside of it"),
    ],
)
def test_forged_heaps_are_refused(content: bytes, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        _heaps(content).element(4, 0, 1)


def test_heaps_that_overlap_take_no_more_than_the_file() -> None:
    one = _heap((1, 4, b"data"))
    heaps = _heaps(one + one)
    heaps.element(4, 0, 1)
    heaps.element(4, len(one), 1)
    with pytest.raises(ValueError, match="there is no heap at byte"):
        heaps.element(4, 8, 1)


def test_addresses_beyond_the_file_are_refused() -> None:
    with pytest.raises(ValueError, match="the file ends inside of it"):
        _heaps(_heap((1, 4, b"data"))).element(4, 2**63, 1)
