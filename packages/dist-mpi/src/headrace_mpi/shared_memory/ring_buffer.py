"""A ring buffer of messages from one process to another, in memory that both have mapped.

One process writes and one reads; each has a count of bytes of its own that only it writes, and that
the other one looks at. A message is its length in 8 bytes and its bytes, filled up to 8; one that
does not fit before the end of the memory begins at its start again.

The writer's count lies apart, beside those of the reader's other rings: one look at them tells
whether anything came at all.
"""

from __future__ import annotations

from typing import final

RING_BYTES = 1 << 18
# What is before the messages: the reader's count, on a cache line of its own.
_COUNT_BYTES = 64
TOTAL_BYTES = _COUNT_BYTES + RING_BYTES
# Leaves room for others, also where the end of the memory is passed over.
MAX_MESSAGE_BYTES = RING_BYTES // 4
_MASK = RING_BYTES - 1
_SKIP = (1 << 64) - 1


def _parts(memory: memoryview) -> tuple[memoryview, memoryview, memoryview]:
    """Return the reader's count, the lengths and the bytes of a ring."""
    data = memory[_COUNT_BYTES:TOTAL_BYTES]
    return memory[:8].cast("Q"), data.cast("Q"), data


@final
class RingWriter:
    """The end of a ring into which messages go; one thread at a time."""

    __slots__ = ("_data", "_head", "_lengths", "_read", "_written")

    def __init__(self, memory: memoryview, count: memoryview) -> None:
        """Write messages.

        Args:
            memory: [TOTAL_BYTES], all zero.
            count: [8], all zero: how many bytes were written.
        """
        self._read, self._lengths, self._data = _parts(memory)
        self._written = count.cast("Q")
        self._head = 0

    def put(self, message: bytes) -> bool:
        """Write a message of at most ``MAX_MESSAGE_BYTES``; return whether there was room."""
        size = len(message)
        need = 8 + ((size + 7) & ~7)
        head = self._head
        at = head & _MASK
        left = RING_BYTES - at
        skipped = left if need > left else 0
        if head + skipped + need - self._read[0] > RING_BYTES:
            return False
        if skipped:
            self._lengths[at >> 3] = _SKIP
            head += skipped
            at = 0
        self._lengths[at >> 3] = size
        self._data[at + 8 : at + 8 + size] = message
        # Last: whoever sees the count sees the message.
        self._written[0] = self._head = head + need
        return True

    def close(self) -> None:
        """Let go of the memory."""
        for view in (self._read, self._written, self._lengths, self._data):
            view.release()


@final
class RingReader:
    """The end of a ring out of which messages come; one thread at a time."""

    __slots__ = ("_data", "_lengths", "_read", "_tail", "_written")

    def __init__(self, memory: memoryview, count: memoryview) -> None:
        """Read messages; arguments as for the writer."""
        self._read, self._lengths, self._data = _parts(memory)
        self._written = count.cast("Q")
        self._tail = 0

    @property
    def waiting(self) -> bool:
        """Whether a message is there."""
        return bool(self._written[0] != self._tail)

    @property
    def taken(self) -> int:
        """What the writer's count is where nothing is left."""
        return self._tail

    def get(self) -> bytearray | None:
        """Return a copy of the next message, None if there is none.

        Raises:
            ValueError: if what is there is no message; nothing comes out of this ring any more.
        """
        found: list[tuple[int, bytearray]] = []
        return found[0][1] if self.drain(found, 0, 1) else None

    def drain(self, into: list[tuple[int, bytearray]], sender: int, most: int) -> int:
        """Append copies of the next messages that are there, each with its sender, to a list.

        Args:
            into: The list.
            sender: Who wrote them.
            most: How many to take at most.

        Returns:
            How many there were.

        Raises:
            ValueError: if what is there is no message; nothing comes out of this ring any more.
        """
        count = 0
        tail, written = self._tail, self._written[0]
        while tail != written and count < most:
            at = tail & _MASK
            size = self._lengths[at >> 3]
            if size == _SKIP:
                tail += RING_BYTES - at
                at = 0
                size = self._lengths[0]
            if size > MAX_MESSAGE_BYTES or at + 8 + size > RING_BYTES:
                raise ValueError(f"a ring says that its next message has {size} bytes")
            into.append((sender, bytearray(self._data[at + 8 : at + 8 + size])))
            self._read[0] = self._tail = tail = tail + 8 + ((size + 7) & ~7)
            count += 1
        return count

    def close(self) -> None:
        """Let go of the memory."""
        for view in (self._read, self._written, self._lengths, self._data):
            view.release()
