"""What the generated source of programs uses: addresses, checks, copies, variables in place."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from headrace.errors import ExecutionError
from headrace.extend.devices import clock
from headrace.extend.state import VariableCell
from headrace_cpu.native.memory import address, allocate, view

Array = np.ndarray[Any, np.dtype[Any]]


def solid(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a value as an array of consecutive elements; itself where it is one.

    Raises:
        ExecutionError: if it has not the shape and dtype that were promised for it.
    """
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    promised(value, shape, dtype)
    return value if value.flags.c_contiguous else np.array(value, order="C")


def promised(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse an array that has not the shape and dtype that were promised for it.

    Raises:
        ExecutionError: if it has not.
    """
    if value.shape != shape or value.dtype != dtype:
        raise ExecutionError(
            f"a kernel returned {value.dtype}{list(value.shape)}, and its op's declaration "
            f"promised {dtype}{list(shape)}: the rule or the kernel is wrong"
        )


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array that is not initialised.

    Raises:
        MemoryError: if there is no room for it, nor for one of its size anywhere.
    """
    try:
        return np.empty(shape, dtype)
    except ValueError as error:
        raise MemoryError(str(error)) from None


def copied(value: Any) -> Any:
    """Return a copy of an array, anything else as it is.

    Raises:
        MemoryError: as for ``empty``; a value that is the same everywhere may be of any shape.
    """
    if not isinstance(value, np.ndarray):
        return value
    try:
        return np.array(value)
    except ValueError as error:
        raise MemoryError(str(error)) from None


# Stands for the old value of a variable that was not taken, and for the array of it.
_NOT_TAKEN: Any = object()
_NO_ARRAY: Array = np.empty(0)


class Taken:
    """The values of variables, taken out for changing them in place.

    Locks are taken in one order everywhere, so that two steps never wait for each other.
    """

    __slots__ = ("_cells", "_old", "arrays")

    def __init__(
        self,
        cells: Sequence[VariableCell],
        overwritten: Sequence[tuple[tuple[int, ...], np.dtype[Any]] | None],
        make: Callable[..., Any] = empty,
    ) -> None:
        """Take all or none.

        Args:
            cells: The variables.
            overwritten: For those that are overwritten wholly, the shape and dtype to write.
            make: Returns an array of a shape and dtype that is not initialised.
        """
        count = len(cells)
        self._cells = cells
        self._old: list[Any] = [_NOT_TAKEN] * count
        self.arrays: list[Array] = [_NO_ARRAY] * count
        arrays, old = self.arrays, self._old
        order = sorted(range(count), key=[id(cell) for cell in cells].__getitem__)
        try:
            for index in order:
                kind = overwritten[index]
                new = None if kind is None else functools.partial(make, *kind)
                arrays[index], old[index] = cells[index].take(new)
        except BaseException:
            self.undo()
            raise

    def give(self) -> None:
        """Put the changed values back."""
        for cell, value in zip(self._cells, self.arrays, strict=True):
            cell.give(value)

    def undo(self) -> None:
        """Put the old values back: nothing was changed."""
        for cell, value in zip(self._cells, self._old, strict=True):
            if value is not _NOT_TAKEN:
                cell.give(value)


Make = Callable[[], Any]


def take_two(
    one: VariableCell, other: VariableCell, make_one: Make | None, make_other: Make | None
) -> tuple[Any, Any, Any, Any]:
    """Take the values of two variables, or of none: most updates have one slot.

    Args:
        one: A variable.
        other: Another one.
        make_one: What ``VariableCell.take`` makes the array to write with, if anything.
        make_other: Likewise for the other one.

    Returns:
        The array to change and the old value of one, and those of the other.
    """
    if id(other) < id(one):
        new_other, old_other, new, old = take_two(other, one, make_other, make_one)
        return new, old, new_other, old_other
    new, old = one.take(make_one)
    try:
        new_other, old_other = other.take(make_other)
    except BaseException:
        one.give(old)
        raise
    return new, old, new_other, old_other


# What generated source uses, by name; dtypes are added as they come.
ENVIRONMENT: dict[str, Any] = {
    "at": address,
    "clock": clock,
    "solid": solid,
    "copied": copied,
    "empty": empty,
    "errstate": np.errstate,
    "many": frozenset((list, tuple)),
    "take": Taken,
    "take_two": take_two,
}


class Memory(Protocol):
    """The memory in which a program's values live.

    Attributes:
        environment: What generated source uses, by name.
    """

    environment: Mapping[str, Any]

    def allocate(self, size: int) -> Any:
        """Return memory for buffers, aligned for them: [size], uint8, not initialised."""

    def address(self, array: Any) -> int:
        """Return the address of an array's first element."""

    def view(self, place: int, shape: tuple[int, ...], dtype: Any, owner: Any) -> Any:
        """Return an array over memory, which keeps its owner."""


class _HostMemory:
    environment: Mapping[str, Any] = ENVIRONMENT
    allocate = staticmethod(allocate)
    address = staticmethod(address)
    view = staticmethod(view)


HOST_MEMORY: Memory = _HostMemory()
