"""Elements in the order in which they are ready, where a program does not mind which it is."""

from __future__ import annotations

from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import (
    DatasetValue,
    Element,
    State,
    Stream,
    count_of,
    stream,
)
from headrace_data.structure import Described


def as_allowed(dataset: Described) -> Described:
    """Return what an iterator of a data set goes over.

    Where its options allow any order, what computes several elements at once need not keep theirs.
    """
    if dataset.options().experimental_deterministic is False:
        return make("any_order", dataset.spec, sources=[dataset])
    return dataset


@stream("any_order")
class AnyOrderStream(Stream):
    """The elements. Positions are those of the pipeline in a fixed order, and go on in either."""

    transparent = True

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._source = value.sources[0].open(run.unordered())

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many elements there are."""
        return count_of(value.sources[0])

    def next(self) -> Element | None:
        """Return the next element."""
        return self._source.next()

    def save(self) -> State:
        """Return where the source stands."""
        return self._source.save()

    def restore(self, state: State) -> None:
        """Bring the source to where it stood."""
        self._source.restore(state)

    def close(self) -> None:
        """Close the source."""
        self._source.close()
