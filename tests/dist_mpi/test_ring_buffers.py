"""Rings of messages in shared memory."""

from __future__ import annotations

import random

import pytest

from headrace_mpi.shared_memory.ring_buffer import (
    MAX_MESSAGE_BYTES,
    RING_BYTES,
    TOTAL_BYTES,
    RingReader,
    RingWriter,
)
from tests.dist_mpi.linked import NEEDS_FUTEXES

pytestmark = NEEDS_FUTEXES


def a_ring() -> tuple[RingWriter, RingReader]:
    room, count = memoryview(bytearray(TOTAL_BYTES)), memoryview(bytearray(8))
    return RingWriter(room, count), RingReader(room, count)


def test_messages_come_out_as_they_went_in_whatever_their_sizes() -> None:
    writer, reader = a_ring()
    draw = random.Random(7)
    sent: list[bytes] = []
    came: list[bytes] = []
    sizes = [0, 1, 7, 8, 9, 40, 4095, MAX_MESSAGE_BYTES]
    for _ in range(3000):
        message = draw.randbytes(draw.choice([*sizes, draw.randrange(2000)]))
        while not writer.put(message):
            took = reader.get()
            assert took is not None
            came.append(bytes(took))
        sent.append(message)
    while (took := reader.get()) is not None:
        came.append(bytes(took))
    assert sum(map(len, sent)) > 10 * RING_BYTES
    assert came == sent


def test_a_full_ring_takes_nothing_and_loses_nothing() -> None:
    writer, reader = a_ring()
    put = 0
    while writer.put(bytes([put % 251]) * 1000):
        put += 1
    assert put == RING_BYTES // 1008
    for index in range(put):
        took = reader.get()
        assert took == bytes([index % 251]) * 1000
    assert reader.get() is None
    assert not reader.waiting


def test_a_ring_gives_several_messages_at_once() -> None:
    writer, reader = a_ring()
    sent = [bytes([number]) * (100 * number) for number in range(60)]
    came: list[bytes] = []
    for start in range(0, 600, 3):
        for number in range(start, start + 3):
            assert writer.put(sent[number % 60])
        most = 1 + start % 5
        took: list[tuple[int, bytearray]] = []
        assert reader.drain(took, 7, most) == len(took) <= most
        reader.drain(took, 7, 100)
        assert reader.drain(took, 7, 1) == 0
        assert {sender for sender, _ in took} == {7}
        came += (bytes(message) for _, message in took)
    assert came == sent * 10


def test_a_ring_with_a_length_that_cannot_be_is_reported() -> None:
    room, count = memoryview(bytearray(TOTAL_BYTES)), memoryview(bytearray(8))
    writer, reader = RingWriter(room, count), RingReader(room, count)
    writer.put(b"good")
    room[64:72].cast("Q")[0] = 1 << 40
    with pytest.raises(ValueError, match="its next message has 1099511627776 bytes"):
        reader.get()
