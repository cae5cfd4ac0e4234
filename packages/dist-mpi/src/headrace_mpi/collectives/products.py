"""Sums of products: the ranks exchange the factors, where these are smaller than the products.

The gradient of a weight matrix is a product of two matrices, one row of each for every example of
the batch. Over all ranks the sum of such products is the product of all rows, so the ranks hand
around rows instead of products, and each computes its part of the result: as many operations as
for its own product, of which nothing is then copied or added up (Xie et al., Lighter-communication
distributed machine learning via sufficient factor broadcasting, 2016; there each machine computes
the whole sum by itself, here one rank computes each element, so that all have the same bits).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from headrace_mpi.collectives.algorithms import give, others_of, reduced, thanks
from headrace_mpi.collectives.checks import check_told, handle_in
from headrace_mpi.collectives.parts import Array
from headrace_mpi.collectives.reduction_buffers import ReductionBuffer
from headrace_mpi.collectives.values import Algorithm, Link, Values

# How many times as many bytes the product has at least, for the factors to travel.
WORTH = 2.0

_Phases = Generator[tuple[int, Sequence[int]], Values, Any]
# Of one rank's exchange, in order. ``reduced`` takes six, from the second on.
_OPENING, _LEFT, _RIGHT, _DONE, _PIECES, _THANKS = range(6)
_PRODUCT = 1


class _Opening(NamedTuple):
    """What a rank tells first.

    Attributes:
        rows: How many rows its factors have.
        handle: Where the first rank's buffer is; empty for none.
    """

    rows: int
    handle: str


def all_reduce_product(link: Link, left: Array, right: Array, reduction: str) -> Algorithm:
    """Return what the products of all ranks make together.

    Args:
        link: The group.
        left: [rows, n]; ranks may differ in the number of rows.
        right: [rows, m].
        reduction: ``"sum"`` or ``"mean"``.

    Returns:
        The sum or mean of ``transpose(left) @ right`` over the ranks, [n, m].
    """
    shape = left.shape[1], right.shape[1]
    nbytes = shape[0] * shape[1] * left.itemsize
    reduction_buffers = link.reduction_buffers
    buffer = reduction_buffers.offer(nbytes, rows=1) if link.rank == 0 else None
    try:
        told = yield from _told(link, left, shape, "" if buffer is None else buffer.handle)
        rows = [opening.rows for opening in told]
        if sum(rows) * sum(shape) * WORTH > shape[0] * shape[1]:
            if buffer is not None:
                buffer.take_back(link.size)
            found = yield from reduced(link, left.T @ right, reduction, _PRODUCT)
            return [found]
        handle = told[0].handle
        buffer = buffer or (reduction_buffers.find(handle) if handle else None)
        # Others read what was given until they have computed their parts.
        given = _given(link, left, right)
        piece, mine = yield from _computed(link, given, rows, shape, reduction, buffer)
        if handle:
            there = yield from _all_there(link, buffer)
            if there:
                assert buffer is not None
                return [buffer.result(nbytes, left.dtype).reshape(shape)]
            reduction_buffers.usable = False
        out = yield from _handed_around(link, piece, mine, shape)
        if buffer is not None:
            reduction_buffers.give_up(buffer)
        return [out]
    except BaseException:
        if buffer is not None:
            reduction_buffers.give_up(buffer)
        raise


def _told(
    link: Link, left: Array, shape: tuple[int, int], handle: str
) -> Generator[tuple[int, Sequence[int]], Values, list[_Opening]]:
    """Tell the others what this rank has; return what all ranks have, in their order."""
    text = f"{left.dtype}{list(shape)}"
    opening = np.array([text.encode(), handle.encode(), str(len(left)).encode()], object)
    others = others_of(link)
    for rank in others:
        link.give(rank, _OPENING, opening)
    given = yield _OPENING, others
    check_told(link, opening, given)
    found = []
    for rank in range(link.size):
        told = opening if rank == link.rank else given[rank].array(link.buffers)
        found.append(_Opening(int(told[2]), handle_in(told)))
    return found


def _pieces(link: Link, rows: int) -> list[slice]:
    bounds = [rows * rank // link.size for rank in range(link.size + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


class _Given(NamedTuple):
    """What this rank gives, contiguous.

    Attributes:
        columns: For each rank the columns of the left factor that it needs, [rows, its n].
        right: The right factor, [rows, m].
    """

    columns: list[Array]
    right: Array


def _given(link: Link, left: Array, right: Array) -> _Given:
    columns = [np.ascontiguousarray(left[:, piece]) for piece in _pieces(link, left.shape[1])]
    return _Given(columns, np.ascontiguousarray(right))


def _computed(
    link: Link,
    own: _Given,
    rows: Sequence[int],
    shape: tuple[int, int],
    reduction: str,
    buffer: ReductionBuffer | None,
) -> _Phases:
    """Exchange factors, and compute this rank's rows of the result: in the buffer if there is one.

    Returns:
        The rows, and which they are.
    """
    others = others_of(link)
    for rank in others:
        link.give(rank, _LEFT, own.columns[rank])
        link.give(rank, _RIGHT, own.right)
    given_left = yield _LEFT, others
    given_right = yield _RIGHT, others
    left = _stacked(link, own.columns[link.rank], given_left, rows)
    right = _stacked(link, own.right, given_right, rows)
    if reduction == "mean":
        right *= right.dtype.type(1 / link.size)
    mine = _pieces(link, shape[0])[link.rank]
    if buffer is None:
        piece = link.buffers.empty((mine.stop - mine.start, shape[1]), left.dtype)
    else:
        row = buffer.row(0, shape[0] * shape[1] * left.itemsize, left.dtype)
        piece = row.reshape(shape)[mine]
    np.matmul(left.T, right, out=piece)
    return piece, mine


def _stacked(link: Link, own: Array, given: Values, rows: Sequence[int]) -> Array:
    """Return the rows of all ranks, one rank after the other, in memory of their own."""
    out = link.buffers.empty((sum(rows), own.shape[1]), own.dtype)
    for rank, (start, stop) in enumerate(pairwise(accumulate(rows, initial=0))):
        room = out[start:stop]
        if rank == link.rank:
            room[...] = own
            continue
        flat = room.reshape(-1)
        got = given[rank].part.read(0, flat.size, flat)
        if got is not flat:
            flat[...] = got
    return out


def _all_there(link: Link, buffer: ReductionBuffer | None) -> _Phases:
    """Say that this rank's part is computed; return whether all parts are in the buffer."""
    answer = np.array([buffer is not None])
    others = others_of(link)
    for rank in others:
        link.give(rank, _DONE, answer)
    given = yield _DONE, others
    answers = [value.array(link.buffers) for value in given.values()]
    return buffer is not None and all(bool(a.all()) for a in answers)


def _handed_around(link: Link, piece: Array, mine: slice, shape: tuple[int, int]) -> _Phases:
    """Return the whole result, of which each rank hands its rows around."""
    others = others_of(link)
    out = link.buffers.empty(shape, piece.dtype)
    out[mine] = piece
    readers = give(link, others, _PIECES, out[mine])
    pieces = _pieces(link, shape[0])
    given = yield _PIECES, others
    for rank, value in given.items():
        room = out[pieces[rank]].reshape(-1)
        got = value.part.read(0, room.size, room)
        if got is not room:
            room[...] = got
    yield from thanks(link, _THANKS, given, readers)
    return out
