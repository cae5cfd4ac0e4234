"""Validating what ranks give to a collective; an error says what each of them gave."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace_mpi.collectives.parts import Array, LocalPart, Part
from headrace_mpi.collectives.values import Link, Value, Values


def in_order(link: Link, given: Values, own: Array) -> list[Part]:
    """Return what all ranks give, in the order of the ranks.

    Raises:
        InvalidArgumentError: if a rank gave another number of elements.
    """
    parts: list[Part] = [
        LocalPart(own) if rank == link.rank else given[rank].part for rank in range(link.size)
    ]
    for rank, part in enumerate(parts):
        if part.size != own.size:
            raise InvalidArgumentError(
                f"{link.what}: rank {rank} gave {part.size} elements, expected {own.size}"
            )
    return parts


def check_alike(link: Link, own: Array, given: Values, *, rows: bool = False) -> None:
    """Refuse values of another dtype or shape; ``rows`` may differ in number.

    Raises:
        InvalidArgumentError: if there are any; it says what each rank gave.
    """

    def key(dtype: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return (dtype, len(shape), *(shape[1:] if rows else shape))

    expected = key(own.dtype, own.shape)
    if all(key(v.dtype, v.shape) == expected for v in given.values()):
        return
    _refuse(link, {**{rank: _told(v) for rank, v in given.items()}, link.rank: _text(own)})


def _text(x: Array) -> str:
    return f"{x.dtype}{list(x.shape)}"


def opening_of(x: Array, more: str = "", handle: str = "") -> Array:
    """Return what a rank tells of a tensor before it gives parts of it, and of a buffer."""
    return np.array([f"{_text(x)}{more}".encode(), handle.encode()], object)


def handle_in(opening: Array | Part) -> str:
    """Return what an opening tells of a buffer."""
    told = opening if isinstance(opening, np.ndarray) else opening.read(0, 2, np.empty(0))
    return str(told[1].decode())


def _told(value: Value) -> str:
    """Return what a rank gave: a tensor, or what it tells of one."""
    if value.dtype.hasobject and isinstance(value.part, LocalPart):
        return str(value.part.array[0].decode())
    return f"{value.dtype}{list(value.shape)}"


def check_told(link: Link, opening: Array, given: Values) -> None:
    """Refuse tensors of another dtype or shape, of which ranks tell.

    Raises:
        InvalidArgumentError: if there are any; it says what each rank has.
    """
    own = str(opening[0].decode())
    told = {rank: _told(value) for rank, value in given.items()}
    if any(text != own for text in told.values()):
        _refuse(link, {**told, link.rank: own})


def _refuse(link: Link, told: dict[int, str]) -> None:
    lines = [f"{link.what}: the ranks give tensors that do not fit together"]
    lines += [f"  rank {rank}: {told[rank]}" for rank in sorted(told)]
    raise InvalidArgumentError("\n".join(lines))
