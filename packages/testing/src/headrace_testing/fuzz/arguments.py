"""What a random call hands in: arrays that enter a graph in different ways, and plain values.

Arguments are trees of lists, tuples and dictionaries, whose leaves are plain Python values,
dtypes, and the classes of this module. ``Given`` and the others become tensors when the call is
made, as constants or as placeholders.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from headrace import DType, SparseTensor, Tensor, Variable, constant, placeholder
from headrace.errors import shorten
from headrace_testing.inputs import NDArray

# How an array enters: as a constant, or fed to a placeholder that knows its shape, a part of it,
# or not even its rank; or as a Python list.
ENTRIES = ("constant", "fed", "partly", "unknown", "plain")
_FED = ("fed", "partly", "unknown")


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """An array, and how it enters the graph.

    Attributes:
        array: The values.
        entry: One of ``ENTRIES``.
    """

    array: NDArray
    entry: str = "constant"

    def flipped(self) -> Given:
        """Return the same as a constant if it is fed, and fed if it is a constant."""
        if self.entry == "plain":
            return self
        return replace(self, entry="constant" if self.entry in _FED else "fed")

    def known(self) -> Given:
        """Return the same as a constant, unless it is a Python list."""
        return self if self.entry == "plain" else replace(self, entry="constant")

    def __str__(self) -> str:
        values = np.array2string(self.array, separator=", ", threshold=24, edgeitems=3)
        name = "string" if self.array.dtype == object else str(self.array.dtype)
        shape = ",".join(map(str, self.array.shape))
        return f"{name}[{shape}]{{{' '.join(values.split())}}}:{self.entry}"


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """The parts of a sparse tensor, each of them as ``Given`` or as a maker of arrays."""

    indices: Any
    values: Any
    dense_shape: Any

    def __str__(self) -> str:
        return f"Sparse({self.indices}, {self.values}, {self.dense_shape})"


@dataclass(frozen=True, slots=True, eq=False)
class Stored:
    """What a variable holds when the call runs, as ``Given`` or as a maker of an array."""

    value: Any

    def __str__(self) -> str:
        return f"Variable({self.value})"


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to every leaf of an argument."""
    if isinstance(value, dict):
        return {key: mapped(function, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        items = [mapped(function, item) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, Sparse):
        parts = (value.indices, value.values, value.dense_shape)
        return Sparse(*(mapped(function, part) for part in parts))
    if isinstance(value, Stored):
        return Stored(mapped(function, value.value))
    return function(value)


def flipped(value: Any) -> Any:
    """Exchange constants and placeholders in an argument."""
    return mapped(lambda leaf: leaf.flipped() if isinstance(leaf, Given) else leaf, value)


def described(value: Any) -> str:
    """Return an argument in one line."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {described(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        ends = "[]" if isinstance(value, list) else "()"
        return ends[0] + ", ".join(map(described, value)) + ends[1]
    if isinstance(value, Given | Sparse | Stored | DType):
        return str(value)
    return shorten([repr(value)], 1)


class Entrance:
    """Puts arguments into the default graph.

    Attributes:
        feeds: What to feed for the placeholders that were made.
        kept: Pairs of an array that was handed in and an untouched copy.
        variables: The variables that were made.
    """

    def __init__(self) -> None:
        self.feeds: dict[Tensor, NDArray] = {}
        self.kept: list[tuple[NDArray, NDArray]] = []
        self.variables: list[Variable] = []

    def enter(self, value: Any) -> Any:
        """Return an argument with tensors in the places of arrays."""
        if isinstance(value, Sparse):
            parts = (value.indices, value.values, value.dense_shape)
            return SparseTensor(*(self.enter(part) for part in parts))
        if isinstance(value, Stored):
            held = value.value.array
            if held.dtype == object:
                held = held.tolist()
            variable = Variable(held, trainable=False)
            self.variables.append(variable)
            return variable
        if isinstance(value, dict):
            return {key: self.enter(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            items = [self.enter(item) for item in value]
            return items if isinstance(value, list) else tuple(items)
        return self._tensor(value) if isinstance(value, Given) else value

    def _tensor(self, given: Given) -> Any:
        array = given.array
        if given.entry == "plain":
            return array.tolist()
        if given.entry == "constant":
            return constant(array)
        shape: Any = array.shape
        if given.entry == "unknown":
            shape = None
        elif given.entry == "partly":
            shape = [None if i % 2 == 0 else size for i, size in enumerate(shape)]
        tensor = placeholder("string" if array.dtype == object else array.dtype, shape)
        handed = array.copy()
        self.feeds[tensor] = handed
        self.kept.append((handed, array))
        return tensor
