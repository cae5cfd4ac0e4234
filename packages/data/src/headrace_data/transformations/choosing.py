"""``choose_from_datasets``: elements of several data sets, in the order that another one says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, State, Stream, stream
from headrace_data.structure import Described


def choose(choices: Described, datasets: Sequence[Described]) -> Described:
    """Return a data set of elements of several; which, the elements of ``choices`` say."""
    element = datasets[0].spec
    for other in datasets[1:]:
        element = structure.common(element, other.spec, "the data sets to choose from")
    return make("choose", element, sources=[choices, *datasets])


@stream("choose")
class ChooseStream(Stream):
    """Elements of several data sets; one that has ended is passed over."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._choices, *self._parts = (s.open(run.part(i)) for i, s in enumerate(value.sources))
        self._ended = [False] * len(self._parts)

    def next(self) -> Element | None:
        """Return the next element of the next data set that is chosen and has one."""
        while not all(self._ended):
            choice = self._choices.next()
            if choice is None:
                return None
            number = int(np.asarray(choice[0]))
            if not 0 <= number < len(self._parts):
                raise InvalidArgumentError(
                    f"choose: there are {len(self._parts)} data sets, got the number {number}"
                )
            if self._ended[number]:
                continue
            found = self._parts[number].next()
            if found is not None:
                return found
            self._ended[number] = True
        return None

    def save(self) -> State:
        """Return where the choices stand, and each of the data sets."""
        return [self._ended, self._choices.save(), [part.save() for part in self._parts]]

    def restore(self, state: State) -> None:
        """Bring each to where it stood."""
        ended, choices, parts = state
        self._ended = list(ended)
        self._choices.restore(choices)
        for part, saved in zip(self._parts, parts, strict=True):
            part.restore(saved)

    def close(self) -> None:
        """Close all."""
        for part in (self._choices, *self._parts):
            part.close()
