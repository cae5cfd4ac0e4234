"""Shuffling: an element out of a buffer, by chance, and the next of the data set in its place."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace.extend.state import op_seeds
from headrace_data.build import make, scalar, static
from headrace_data.runtime.passes import Counter, Pass, derived
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    OneSource,
    State,
    count_of,
    stream,
)
from headrace_data.structure import Described

# Numbers are drawn from the generator in blocks.
_BLOCK = 1024
_WORD = 1 << 64


def seed_arguments(seed: Any) -> tuple[list[Any], bool]:
    """Return the seeds of an op that draws, as tensors, and whether there are any."""
    if isinstance(seed, hr.Tensor) or hasattr(seed, "_as_tensor"):
        graph_seed, _ = op_seeds(0) or (0, 0)
        return [hr.constant(graph_seed, hr.int64), scalar(seed, hr.int64, "seed")], True
    seeds = op_seeds(seed)
    pair = (0, 0) if seeds is None else (seeds[0], seeds[1])
    return [hr.constant(s, hr.int64, name="seed") for s in pair], seeds is not None


def shuffle(
    dataset: Described, buffer_size: Any, seed: Any, reshuffle_each_iteration: bool | None
) -> Described:
    """Return a data set of the elements in another order."""
    size = scalar(buffer_size, hr.int64, "buffer_size")
    _check_size(static(size))
    seeds, seeded = seed_arguments(seed)
    again = True if reshuffle_each_iteration is None else bool(reshuffle_each_iteration)
    return make(
        "shuffle",
        dataset.spec,
        sources=[dataset],
        arguments=[size, *seeds],
        settings={"seeded": seeded, "again": again},
    )


def _check_size(size: int | None) -> None:
    if size is not None and size < 1:
        raise InvalidArgumentError(f"shuffle: buffer_size must be greater than zero, got {size}")


class RandomIndices:
    """A sequence of random numbers that is known by its key, and by how many were drawn."""

    def __init__(self, key: tuple[int, int]) -> None:
        self.key = key
        self.drawn = 0
        self._block: list[float] = []
        self._first = -1

    def below(self, size: int) -> int:
        """Return a number from 0 to ``size - 1``."""
        first, offset = divmod(self.drawn, _BLOCK)
        if first != self._first:
            bits = np.random.Philox(
                key=(self.key[0] % _WORD) << 64 | self.key[1] % _WORD, counter=first << 64
            )
            self._block = np.random.Generator(bits).random(_BLOCK).tolist()
            self._first = first
        self.drawn += 1
        return int(self._block[offset] * size)


@stream("shuffle")
class ShuffleStream(OneSource):
    """The elements in an order that the seeds and the number of the pass give."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._size = value.scalar(0)
        self._passes = run.cell(Counter, "passes")
        self._indices: RandomIndices | None = None
        self._buffer: list[Element] = []
        self._ended = False

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse a buffer without room."""
        _check_size(value.scalar(0))

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def _begin(self) -> RandomIndices:
        value = self.value
        key = (value.scalar(1), value.scalar(2))
        if not value.settings["seeded"]:
            key = self.run.key("shuffle", None)
        number = self._passes.advance()
        return RandomIndices(derived(key, number) if value.settings["again"] else key)

    def next(self) -> Element | None:
        """Return an element of the buffer."""
        if self._indices is None:
            self._indices = self._begin()
        buffer = self._buffer
        while not self._ended and len(buffer) < self._size:
            element = self.source.next()
            if element is None:
                self._ended = True
            else:
                buffer.append(element)
        if not buffer:
            return None
        chosen = self._indices.below(len(buffer))
        found, buffer[chosen] = buffer[chosen], buffer[-1]
        buffer.pop()
        return found

    def save(self) -> State:
        """Return the buffer, and what was drawn."""
        drawn = None if self._indices is None else [*self._indices.key, self._indices.drawn]
        buffer = [list(element) for element in self._buffer]
        return [drawn, self._ended, buffer, self.source.save()]

    def restore(self, state: State) -> None:
        """Have the same buffer, and go on drawing."""
        drawn, self._ended, buffer, inner = state
        if drawn is not None:
            self._indices = RandomIndices((drawn[0], drawn[1]))
            self._indices.drawn = drawn[2]
        self._buffer = [tuple(element) for element in buffer]
        self.source.restore(inner)
