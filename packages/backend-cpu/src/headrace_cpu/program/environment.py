"""What the generated source of programs uses: addresses, checks, copies, variables in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ExecutionError
from headrace.runtime.containers import VariableCell
from headrace_cpu.native.memory import address

Array = np.ndarray[Any, np.dtype[Any]]


def solid(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return a value as an array of consecutive elements; itself where it is one.

    Raises:
        ExecutionError: if it has not the shape and dtype that were promised for it.
    """
    if type(value) is not np.ndarray:
        value = np.asarray(value)
    if value.shape != shape or value.dtype != dtype:
        raise ExecutionError(
            f"a kernel returned {value.dtype}{list(value.shape)}, and its op's declaration "
            f"promised {dtype}{list(shape)}: the rule or the kernel is wrong"
        )
    return value if value.flags.c_contiguous else np.array(value, order="C")


def copied(value: Any) -> Any:
    """Return a copy of an array, anything else as it is."""
    return np.array(value) if isinstance(value, np.ndarray) else value


def take(cells: Sequence[VariableCell]) -> list[Array]:
    """Take the values of variables out for changing them in place, all or none.

    Locks are taken in one order everywhere, so that two steps never wait for each other.
    """
    taken: dict[int, Array] = {}
    try:
        for index in sorted(range(len(cells)), key=lambda i: id(cells[i])):
            taken[index] = cells[index].take()
    except BaseException:
        for index, value in taken.items():
            cells[index].give(value)
        raise
    return [taken[index] for index in range(len(cells))]


def give(cells: Sequence[VariableCell], values: Sequence[Array]) -> None:
    """Put values that were taken back."""
    for cell, value in zip(cells, values, strict=True):
        cell.give(value)


# What generated source uses, by name; dtypes are added as they come.
ENVIRONMENT: dict[str, Any] = {
    "at": address,
    "solid": solid,
    "copied": copied,
    "empty": np.empty,
    "errstate": np.errstate,
    "many": frozenset((list, tuple)),
    "take": take,
    "give": give,
}
