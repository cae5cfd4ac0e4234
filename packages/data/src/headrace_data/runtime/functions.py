"""The functions of pipelines, with what they use of the graph around them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from headrace.extend.state import CalledFunction, drawing_from

if TYPE_CHECKING:
    from headrace_data.runtime.passes import Pass

# Draws of one op within one call before the numbers of the next call begin.
_DRAWS_BITS = 20


@final
class BoundFunction:
    """A function of elements.

    Random ops in it draw numbers that depend on their seeds and on the number of the call, not on
    the order in which calls run: so calls may run at once, and again after a restart.
    """

    __slots__ = ("_call", "_captures", "draws")

    def __init__(self, call: CalledFunction, captures: Sequence[Any], draws: bool) -> None:
        """Bind a function.

        Args:
            call: Runs it.
            captures: The values that it uses of the graph around it.
            draws: Whether random ops are in it.
        """
        self._call = call
        self._captures = tuple(captures)
        self.draws = draws

    def __call__(self, values: Sequence[Any], run: Pass, draws: Draws | None) -> tuple[Any, ...]:
        """Return what the function returns, flat.

        Args:
            values: The flat elements.
            run: The pass that asks.
            draws: What random ops in it draw.
        """
        given = (*values, *self._captures) if self._captures else values
        if draws is None:
            return tuple(self._call(given, run.lifetime))
        with drawing_from(draws):
            return tuple(self._call(given, run.lifetime))


@final
class Draws:
    """What random ops draw in one call."""

    __slots__ = ("_counts", "_keys", "_number")

    def __init__(self, keys: Keys, number: int) -> None:
        """Begin a call.

        Args:
            keys: The keys of the function's random ops.
            number: Which call it is.
        """
        self._keys = keys
        self._number = number
        self._counts: dict[str, int] = {}

    def __call__(self, op_name: str, seeds: tuple[int, int] | None) -> tuple[tuple[int, int], int]:
        """Return the key of an op's numbers, and the number of this draw."""
        count = self._counts.get(op_name, 0)
        self._counts[op_name] = count + 1
        return self._keys.of(op_name, seeds), (self._number << _DRAWS_BITS) + count


@final
class Keys:
    """The keys of the random ops of one function, at one place of a pipeline."""

    __slots__ = ("_known", "_run", "_what")

    def __init__(self, run: Pass, what: str) -> None:
        """Begin without any: they follow from the pass when they are first needed.

        Args:
            run: Where the function is called.
            what: Which function, where there are several.
        """
        self._run = run
        self._what = what
        self._known: dict[str, tuple[int, int]] = {}

    def of(self, op_name: str, seeds: tuple[int, int] | None) -> tuple[int, int]:
        """Return the key of an op."""
        known = self._known.get(op_name)
        if known is None:
            known = self._known[op_name] = self._run.key(f"{self._what}:{op_name}", seeds)
        return known
