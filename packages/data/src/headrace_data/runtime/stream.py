"""Data sets as values of steps, and streams: single passes over their elements.

A ``DatasetValue`` says how elements come about; nothing in it changes. ``open`` starts a pass.
Each kind of data set has a class of streams, which stands beside the function that adds it to a
graph, in a module of its own under ``sources/`` or ``transformations/``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np

from headrace.errors import AttributeValueError, told
from headrace_data.runtime.functions import BoundFunction
from headrace_data.runtime.passes import Pass

# The tensors of an element, flat.
Element: TypeAlias = tuple[Any, ...]
# What a stream saves: numbers, strings, bytes, arrays, None, and lists and dicts of these.
State: TypeAlias = Any


@dataclass(frozen=True, eq=False, slots=True)
class DatasetValue:
    """A data set.

    Attributes:
        kind: Which transformation or source it is.
        sources: The data sets that it transforms.
        arguments: The tensors that it depends on; nobody changes them.
        settings: What the kind takes besides.
        functions: What it calls, by the name of the attribute.
        site: The line of the program that made it, for messages.
    """

    kind: str
    sources: tuple[DatasetValue, ...] = ()
    arguments: tuple[Any, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    functions: Mapping[str, BoundFunction] = field(default_factory=dict)
    site: str = ""

    @property
    def function(self) -> BoundFunction:
        """What it calls for elements."""
        return self.functions["function"]

    def open(self, run: Pass) -> Stream:
        """Start a pass over the elements.

        Raises:
            HeadraceError: if an argument is one that the kind does not take.
        """
        return STREAMS[self.kind](self, run)

    def check(self) -> None:
        """Refuse arguments that its kind, or that of a source, does not take."""
        for source in self.sources:
            source.check()
        STREAMS[self.kind].check(self)

    def signature(self) -> list[Any]:
        """Return what must be equal where a saved position is restored."""
        if STREAMS[self.kind].transparent:
            return self.sources[0].signature()
        return [self.kind, [source.signature() for source in self.sources]]

    def scalar(self, index: int) -> Any:
        """Return an argument that is a number."""
        value = np.asarray(self.arguments[index])
        if value.shape != ():
            raise AttributeValueError(
                f"{self.kind}: argument {told(index)} must be a scalar, got shape "
                f"{list(value.shape)}"
            )
        return value[()].item()


class Stream:
    """A single pass over the elements of a data set, and where it stands.

    ``next``, ``save`` and ``restore`` are called by one thread at a time. ``restore`` is called on
    a stream from which nothing was taken yet.

    Attributes:
        value: The data set.
        run: The pass that it belongs to.
        transparent: Whether positions are those of the one source.
    """

    cardinality: ClassVar[Callable[[DatasetValue], int]]
    transparent: ClassVar[bool] = False

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        self.value = value
        self.run = run

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse arguments that the kind does not take."""

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are, ``INFINITE`` or ``UNKNOWN``."""
        return UNKNOWN

    def next(self) -> Element | None:
        """Return the next element, None at the end, and again and again after it."""
        raise NotImplementedError

    def save(self) -> State:
        """Return where it stands."""
        raise NotImplementedError

    def restore(self, state: State) -> None:
        """Go to where a stream of an equal data set stood."""
        raise NotImplementedError

    def close(self) -> None:
        """End what runs by itself; nothing is taken afterwards."""


class OneSource(Stream):
    """A stream over the elements of one other data set.

    Attributes:
        source: The stream over these.
    """

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self.source = value.sources[0].open(run.part(0))

    def save(self) -> State:
        """Return where the source stands."""
        return self.source.save()

    def restore(self, state: State) -> None:
        """Bring the source to where it stood."""
        self.source.restore(state)

    def close(self) -> None:
        """Close the source."""
        self.source.close()


INFINITE = -1
UNKNOWN = -2
STREAMS: dict[str, type[Stream]] = {}
S = TypeVar("S", bound=type[Stream])


def stream(kind: str) -> Callable[[S], S]:
    """Let a class be that of the streams of a kind of data sets."""

    def add(cls: S) -> S:
        assert kind not in STREAMS
        STREAMS[kind] = cls
        return cls

    return add


def count_of(value: DatasetValue) -> int:
    """Return how many elements a data set has, ``INFINITE`` or ``UNKNOWN``."""
    return STREAMS[value.kind].count(value)


def frozen(value: Any) -> Any:
    """Return an array that nobody changes: the same one, or a copy."""
    array = np.asarray(value)
    owner: Any = array
    while isinstance(owner, np.ndarray) and not owner.flags.writeable:
        if owner.base is None:
            return array
        owner = owner.base
    copy = np.array(array, order="C")
    copy.flags.writeable = False
    return copy


def read_only(element: Sequence[Any]) -> Element:
    """Return an element that is handed out more than once, so that no receiver changes it."""
    for value in element:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return tuple(element)
