"""Random numbers as elements."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace as hr
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    INFINITE,
    DatasetValue,
    Element,
    State,
    Stream,
    stream,
)
from headrace_data.structure import Described
from headrace_data.transformations.shuffling import seed_arguments

# Numbers are drawn from the generator in blocks.
_BLOCK = 256
_WORD = 1 << 64


def random_(seed: Any) -> Described:
    """Return a data set of random numbers, the same ones in each pass."""
    seeds, seeded = seed_arguments(seed)
    element = structure.TensorComponent(hr.int64, hr.Shape([]))
    return make("random", element, arguments=seeds, settings={"seeded": seeded})


@stream("random")
class RandomStream(Stream):
    """The numbers of a sequence that is known by its key."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._key: tuple[int, int] = (value.scalar(0), value.scalar(1))
        if not value.settings["seeded"]:
            self._key = run.key("random", None)
        self._drawn = 0
        self._block: Any = None
        self._first = -1

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return that there is no end."""
        return INFINITE

    def next(self) -> Element | None:
        """Return the next number."""
        first, offset = divmod(self._drawn, _BLOCK)
        if first != self._first:
            key = self._key[0] % _WORD << 64 | self._key[1] % _WORD
            bits = np.random.Philox(key=key, counter=first << 64)
            self._block = np.random.Generator(bits).integers(0, 1 << 32, _BLOCK, np.int64)
            self._first = first
        self._drawn += 1
        return (self._block[offset, ...],)

    def save(self) -> State:
        """Return how many numbers were drawn."""
        return self._drawn

    def restore(self, state: State) -> None:
        """Go on after a number of numbers."""
        self._drawn = state
