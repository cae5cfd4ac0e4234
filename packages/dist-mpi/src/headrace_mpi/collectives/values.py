"""The interface between algorithms of collectives and their group, and other ranks' values."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from headrace_mpi.collectives.parts import Array, LocalPart, Part
from headrace_mpi.collectives.reduction_buffers import ReductionBuffers
from headrace_mpi.transport.buffers import Buffers


class Value(NamedTuple):
    """A value that another rank gave.

    Attributes:
        part: Its elements.
        dtype: Their dtype.
        shape: Its dimensions.
    """

    part: Part
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def array(self, buffers: Buffers) -> Array:
        """Return it as an array in this process."""
        if isinstance(self.part, LocalPart):
            return self.part.array.reshape(self.shape)
        room = buffers.empty(self.shape, self.dtype)
        self.part.read(0, room.size, room.reshape(-1))
        return room


# Who gave it -> the value.
Values: TypeAlias = dict[int, Value]
Algorithm: TypeAlias = Generator[tuple[int, Sequence[int]], Values, list[Any]]


class Link(Protocol):
    """What an algorithm sees of the group.

    Attributes:
        rank: This rank.
        size: The number of ranks.
        buffers: Memory for results.
        reduction_buffers: Memory for results that all ranks make together.
        what: The collective, for messages.
    """

    rank: int
    size: int
    buffers: Buffers
    reduction_buffers: ReductionBuffers
    what: str

    def give(self, rank: int, phase: int, array: Array) -> bool:
        """Send an array to a rank, or let it read the array where it is.

        Returns:
            Whether it reads the array: this must stay as it is until the rank thanks for it.
        """
