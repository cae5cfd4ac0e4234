"""Memory of programs: blocks, arrays over them, and what the generated source uses to reach them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.dtypes import DType
from headrace.errors import ExecutionError
from headrace.runtime.containers import VariableCell
from headrace_cpu.program.instruction import ALIGNMENT

Array = np.ndarray[Any, np.dtype[Any]]


def block(size: int) -> tuple[Array, int]:
    """Return memory of ``size`` bytes, and the first address in it that is aligned."""
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = at(memory)
    return memory, start + -start % ALIGNMENT


def at(array: Array) -> int:
    """Return the address of an array's first element."""
    address: int = array.__array_interface__["data"][0]
    return address


def view(address: int, shape: tuple[int, ...], dtype: DType, owner: Any) -> Array:
    """Return an array over memory that ``owner`` keeps alive."""
    kind = dtype.numpy
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, kind)
    bytes_ = (ctypes.c_uint8 * (count * kind.itemsize)).from_address(address)
    bytes_.owner = owner
    return np.frombuffer(bytes_, np.uint8).view(kind).reshape(shape)


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
    "at": at,
    "solid": solid,
    "copied": copied,
    "empty": np.empty,
    "errstate": np.errstate,
    "many": frozenset((list, tuple)),
    "take": take,
    "give": give,
}
