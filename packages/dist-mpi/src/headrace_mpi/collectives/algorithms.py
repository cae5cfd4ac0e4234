"""What the ranks send each other in each collective.

An algorithm is a generator. It gives values to other ranks by ``link``, yields the number of a
phase with the ranks whose values of that phase it needs, and is sent these values when all are
there; what it returns is the result. So it never waits itself, and no thread does for it.

Tensors to be added up go from every rank to every other one where that is not much: one latency.
Large ones are cut into a piece for each rank, which adds up the pieces of all and hands the result
around: each rank sends and receives twice the data, whatever the number of ranks (the bounds of
Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). The order in which a piece is
added up is that of the ranks.

What was given to others must stay as it is until they have it, so a rank that gives large values
ends with the thanks of those who got them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace_mpi.collectives.parts import Array, Here, Part
from headrace_mpi.collectives.reduction import reduce_parts
from headrace_mpi.transport.buffers import Buffers

# Up to here a value travels in one message with its header, and may be changed at once.
SMALL_BYTES = 32 * 1024
# Up to so many bytes from all others, a rank rather takes them whole than in pieces.
DIRECT_BYTES = 1 << 20


class Value(NamedTuple):
    """A value that another rank gave.

    Attributes:
        part: Its elements.
        dtype: Their dtype.
        shape: Its dimensions.
    """

    part: Part
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    def array(self, buffers: Buffers) -> Array:
        """Return it as an array in this process."""
        if isinstance(self.part, Here):
            return self.part.array.reshape(self.shape)
        room = buffers.empty(self.shape, self.dtype)
        self.part.read(0, room.size, room.reshape(-1))
        return room


# Who gave it -> the value.
Values: TypeAlias = dict[int, Value]
Algorithm: TypeAlias = Generator[tuple[int, Sequence[int]], Values, list[Any]]


class Link(Protocol):
    """What an algorithm sees of the group.

    Attributes:
        rank: This rank.
        size: The number of ranks.
        buffers: Memory for results.
        what: The collective, for messages.
    """

    rank: int
    size: int
    buffers: Buffers
    what: str

    def give(self, rank: int, phase: int, array: Array) -> None:
        """Send an array to a rank, which must stay as it is until that rank has thanked for it."""


def _others(link: Link) -> list[int]:
    return [rank for rank in range(link.size) if rank != link.rank]


_NOTHING = np.empty(0, np.uint8)


def _thanks(link: Link, phase: int, givers: Iterable[int], takers: Sequence[int]) -> Algorithm:
    """Thank those who gave large values, and wait for the thanks of those who took some."""
    for rank in givers:
        link.give(rank, phase, _NOTHING)
    if takers:
        yield phase, takers
    return []


def _large(nbytes: int) -> bool:
    return nbytes > SMALL_BYTES


# -- sums and their like


def all_reduce(link: Link, tensors: Sequence[Array], reduction: str) -> Algorithm:
    """Return for each tensor what those of all ranks make together."""
    if len(tensors) == 1:
        x = np.ascontiguousarray(tensors[0]).reshape(tensors[0].shape)
        found = yield from _reduced(link, x, reduction)
        return [found]
    flat = _packed(link, tensors)
    whole = yield from _reduced(link, flat, reduction)
    return _unpacked(whole, tensors)


# Tensors in a bucket start at multiples of as many bytes as kernels like.
_ALIGNED_BYTES = 64


def _starts(tensors: Sequence[Array]) -> list[int]:
    """Return where each tensor starts in a bucket, in elements, and where the last one ends."""
    step = max(_ALIGNED_BYTES // tensors[0].itemsize, 1)
    starts, at = [], 0
    for tensor in tensors:
        starts.append(at)
        at += -(-tensor.size // step) * step
    return [*starts, at]


def _packed(link: Link, tensors: Sequence[Array]) -> Array:
    *starts, end = _starts(tensors)
    flat = link.buffers.empty((end,), tensors[0].dtype)
    for start, after, tensor in zip(starts, [*starts[1:], end], tensors, strict=True):
        flat[start : start + tensor.size] = tensor.reshape(-1)
        # What lies between is added up, too: it must be numbers.
        flat[start + tensor.size : after] = 0
    return flat


def _unpacked(flat: Array, tensors: Sequence[Array]) -> list[Array]:
    *starts, _ = _starts(tensors)
    return [
        flat[start : start + t.size].reshape(t.shape)
        for start, t in zip(starts, tensors, strict=True)
    ]


def _reduced(
    link: Link, x: Array, reduction: str
) -> Generator[tuple[int, Sequence[int]], Values, Array]:
    others = _others(link)
    out = link.buffers.empty(x.shape, x.dtype)
    if x.nbytes * len(others) <= DIRECT_BYTES:
        for rank in others:
            link.give(rank, 0, x)
        given = yield 0, others
        _check_alike(link, x, given)
        reduce_parts(_in_order(link, given, x.reshape(-1)), reduction, out.reshape(-1))
        if _large(x.nbytes):
            yield from _thanks(link, 1, others, others)
        return out
    # All tell their shapes first, since pieces have none.
    opening = _opening(x)
    for rank in others:
        link.give(rank, 0, opening)
    given = yield 0, others
    _check_told(link, opening, given)
    flat, result = x.reshape(-1), out.reshape(-1)
    bounds = [x.size * rank // link.size for rank in range(link.size + 1)]
    pieces = [slice(a, b) for a, b in pairwise(bounds)]
    for rank in others:
        link.give(rank, 1, flat[pieces[rank]])
    mine = pieces[link.rank]
    given = yield 1, others
    reduce_parts(_in_order(link, given, flat[mine]), reduction, result[mine])
    for rank in others:
        link.give(rank, 2, result[mine])
    given = yield 2, others
    for rank, value in given.items():
        room = result[pieces[rank]]
        got = value.part.read(0, room.size, room)
        if got is not room and got.base is not room:
            room[...] = got
    yield from _thanks(link, 3, others, others)
    return out


def reduce_scatter(link: Link, x: Array, sizes: Sequence[int], reduction: str) -> Algorithm:
    """Return this rank's rows of what the tensors of all ranks make together."""
    x = np.ascontiguousarray(x)
    others = _others(link)
    opening = _opening(x, f" in rows {list(sizes)}")
    for rank in others:
        link.give(rank, 0, opening)
    given = yield 0, others
    _check_told(link, opening, given)
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = [x[a:b] for a, b in pairwise(starts)]
    for rank in others:
        link.give(rank, 1, blocks[rank].reshape(-1))
    own = blocks[link.rank]
    given = yield 1, others
    out = link.buffers.empty(own.shape, x.dtype)
    reduce_parts(_in_order(link, given, own.reshape(-1)), reduction, out.reshape(-1))
    large = [rank for rank in others if _large(blocks[rank].nbytes)]
    yield from _thanks(link, 2, others if _large(own.nbytes) else (), large)
    return [out]


def reduce_to_rank(link: Link, x: Array, root: int) -> Algorithm:
    """Return the sum of all ranks' tensors on the root, zeros on the others."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    if link.rank != root:
        link.give(root, 0, x)
        if _large(x.nbytes):
            yield 1, [root]
        return [np.zeros_like(x)]
    others = _others(link)
    given = yield 0, others
    _check_alike(link, x, given)
    out = link.buffers.empty(x.shape, x.dtype)
    reduce_parts(_in_order(link, given, x.reshape(-1)), "sum", out.reshape(-1))
    yield from _thanks(link, 1, others if _large(x.nbytes) else (), ())
    return [out]


# -- moving values


def all_gather(link: Link, x: Array) -> Algorithm:
    """Return the rows of all ranks, and how many rows each has."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    others = _others(link)
    for rank in others:
        link.give(rank, 0, x)
    given = yield 0, others
    _check_alike(link, x, given, rows=True)
    result = yield from _joined(link, x, given, others if _large(x.nbytes) else ())
    return result


def all_to_all(link: Link, x: Array, sizes: Sequence[int]) -> Algorithm:
    """Return the rows that all ranks have for this one, and how many rows each has."""
    x = np.ascontiguousarray(x)
    others = _others(link)
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = [x[a:b] for a, b in pairwise(starts)]
    for rank in others:
        link.give(rank, 0, blocks[rank])
    given = yield 0, others
    own = blocks[link.rank]
    _check_alike(link, own, given, rows=True)
    takers = [rank for rank in others if _large(blocks[rank].nbytes)]
    result = yield from _joined(link, own, given, takers)
    return result


def _joined(link: Link, own: Array, given: Values, takers: Sequence[int]) -> Algorithm:
    """Return the rows of all ranks, one rank after the other, and how many each has."""
    shapes = [own.shape if r == link.rank else given[r].shape for r in range(link.size)]
    rows = [shape[0] for shape in shapes]
    out = link.buffers.empty((sum(rows), *own.shape[1:]), own.dtype)
    at = 0
    for rank, count in enumerate(rows):
        room = out[at : at + count]
        at += count
        if rank == link.rank:
            room[...] = own
            continue
        flat = room.reshape(-1)
        got = given[rank].part.read(0, flat.size, flat)
        if isinstance(given[rank].part, Here):
            flat[...] = got
    givers = [rank for rank, value in given.items() if _large(prod(value.shape) * out.itemsize)]
    yield from _thanks(link, 1, givers, takers)
    return [out, np.array(rows, np.int64)]


def broadcast(link: Link, x: Array, root: int) -> Algorithm:
    """Return the tensor of the root."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    large = _large(x.nbytes) or x.dtype.hasobject
    if link.rank == root:
        others = _others(link)
        for rank in others:
            link.give(rank, 0, x)
        yield from _thanks(link, 1, (), others if large else ())
        return [x]
    given = yield 0, [root]
    _check_alike(link, x, given)
    out = given[root].array(link.buffers)
    yield from _thanks(link, 1, [root] if large else (), ())
    return [out]


def barrier(link: Link) -> Algorithm:
    """Return nothing, when all ranks have come."""
    others = _others(link)
    for rank in others:
        link.give(rank, 0, _NOTHING)
    yield 0, others
    return []


# -- checks


def _in_order(link: Link, given: Values, own: Array) -> list[Part]:
    parts: list[Part] = [
        Here(own) if rank == link.rank else given[rank].part for rank in range(link.size)
    ]
    for rank, part in enumerate(parts):
        if part.size != own.size:
            raise InvalidArgumentError(
                f"{link.what}: rank {rank} gave {part.size} elements, expected {own.size}"
            )
    return parts


def _check_alike(link: Link, own: Array, given: Values, *, rows: bool = False) -> None:
    """Refuse values of another dtype or shape; ``rows`` may differ in number."""

    def key(dtype: Any, shape: tuple[int, ...]) -> tuple[Any, ...]:
        return (dtype, len(shape), *(shape[1:] if rows else shape))

    expected = key(own.dtype, own.shape)
    if all(key(v.dtype, v.shape) == expected for v in given.values()):
        return
    _refuse(link, {**{rank: _told(v) for rank, v in given.items()}, link.rank: _text(own)})


def _text(x: Array) -> str:
    return f"{x.dtype}{list(x.shape)}"


def _opening(x: Array, more: str = "") -> Array:
    """Return what a rank tells of a tensor before it gives parts of it."""
    return np.array([f"{_text(x)}{more}".encode()], object)


def _told(value: Value) -> str:
    """Return what a rank gave: a tensor, or what it tells of one."""
    if value.dtype.hasobject and isinstance(value.part, Here):
        return str(value.part.array[0].decode())
    return f"{value.dtype}{list(value.shape)}"


def _check_told(link: Link, opening: Array, given: Values) -> None:
    """Refuse tensors of another dtype or shape, of which ranks tell."""
    own = str(opening[0].decode())
    told = {rank: _told(value) for rank, value in given.items()}
    if any(text != own for text in told.values()):
        _refuse(link, {**told, link.rank: own})


def _refuse(link: Link, told: dict[int, str]) -> None:
    lines = [f"{link.what}: the ranks give tensors that do not fit together"]
    lines += [f"  rank {rank}: {told[rank]}" for rank in sorted(told)]
    raise InvalidArgumentError("\n".join(lines))
