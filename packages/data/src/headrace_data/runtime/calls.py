"""Calls that are counted, so that random numbers in them depend on nothing but their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from headrace.errors import InvalidArgumentError, OutOfRangeError
from headrace_data.runtime.functions import BoundFunction, Draws, Keys
from headrace_data.runtime.passes import Counter, Pass


@final
class CountedCalls:
    """Calls of one function at one place of a pipeline, over all passes of an iterator.

    A function that raises ``OutOfRangeError`` would seem to be at the end of the elements: that
    becomes an ``InvalidArgumentError``, unless it may end them.
    """

    __slots__ = ("_counter", "_function", "_keys", "_run", "ends")

    def __init__(
        self, function: BoundFunction, run: Pass, name: str = "", *, ends: bool = False
    ) -> None:
        """Begin without calls.

        Args:
            function: The function.
            run: Where it is called.
            name: Which function, where there are several.
            ends: Whether its ``OutOfRangeError`` comes to whoever calls.
        """
        self.ends = ends
        self._function = function
        self._run = run
        self._keys = Keys(run, name)
        # Passes that follow draw other numbers.
        self._counter = run.cell(Counter, f"calls{name}") if function.draws else None

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Call the function."""
        if self._counter is not None:
            return self.numbered(values, self._counter.advance())
        try:
            return self._function(values, self._run, None)
        except OutOfRangeError as error:
            if self.ends:
                raise
            raise _no_end(error) from error

    def number(self) -> int:
        """Return the number of the call that is due now, and count on."""
        return 0 if self._counter is None else self._counter.advance()

    def numbered(self, values: Sequence[Any], number: int) -> tuple[Any, ...]:
        """Make the call of a number, on any thread, and again if need be."""
        draws = None if self._counter is None else Draws(self._keys, number)
        try:
            return self._function(values, self._run, draws)
        except OutOfRangeError as error:
            if self.ends:
                raise
            raise _no_end(error) from error


def _no_end(error: Exception) -> InvalidArgumentError:
    return InvalidArgumentError(f"the function of elements raised OutOfRangeError: {error}")
