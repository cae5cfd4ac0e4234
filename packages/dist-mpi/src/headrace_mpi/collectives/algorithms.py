"""The algorithms of collectives: what the ranks send each other.

An algorithm is a generator. It gives values to other ranks by ``link``, yields the number of a
phase with the ranks whose values of that phase it needs, and is sent these values when all are
there; what it returns is the result. So it never waits itself, and no thread does for it.

Tensors to be added up go from every rank to every other one where that is not much: one latency.
Large ones are cut into a piece for each rank, which adds up the pieces of all and hands the result
around: each rank sends and receives twice the data, whatever the number of ranks (the bounds of
Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms, 2009). Ranks of one host do so in a
buffer that all have mapped (``reduction_buffers.py``), so that nothing has to be handed around. The
order in which a piece is added up is that of the ranks.

What others read in this rank's memory must stay as it is until they have it, so a rank that lets
some do so ends with their thanks. Values that are sent to them need none.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from itertools import pairwise

import numpy as np

from headrace_mpi.collectives.checks import (
    check_alike,
    check_told,
    handle_in,
    in_order,
    opening_of,
)
from headrace_mpi.collectives.parts import Array, LocalPart, RemotePart
from headrace_mpi.collectives.reduction import reduce_parts
from headrace_mpi.collectives.reduction_buffers import ReductionBuffer
from headrace_mpi.collectives.values import Algorithm, Link, Values

# Up to so many bytes from all others, a rank rather takes them whole than in pieces.
DIRECT_BYTES = 1 << 20


def others_of(link: Link) -> list[int]:
    """Return the numbers of the other ranks."""
    return [rank for rank in range(link.size) if rank != link.rank]


_NOTHING = np.empty(0, np.uint8)


def give(link: Link, ranks: Iterable[int], phase: int, array: Array) -> list[int]:
    """Give an array to ranks, and return those that read it here, until they thank for it."""
    return [rank for rank in ranks if link.give(rank, phase, array)]


def thanks(link: Link, phase: int, given: Values, readers: Sequence[int]) -> Algorithm:
    """Thank those in whose memory values were read, and wait for the thanks of readers."""
    for rank, value in given.items():
        if isinstance(value.part, RemotePart):
            link.give(rank, phase, _NOTHING)
    if readers:
        yield phase, readers
    return []


# -- sums and their like


def all_reduce(link: Link, tensors: Sequence[Array], reduction: str) -> Algorithm:
    """Return for each tensor what those of all ranks make together."""
    if len(tensors) == 1:
        x = np.ascontiguousarray(tensors[0]).reshape(tensors[0].shape)
        found = yield from reduced(link, x, reduction)
        return [found]
    flat = _packed(link, tensors)
    whole = yield from reduced(link, flat, reduction)
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


def reduced(
    link: Link, x: Array, reduction: str, phase: int = 0
) -> Generator[tuple[int, Sequence[int]], Values, Array]:
    """Return what the tensors of all ranks make together.

    Args:
        link: The group.
        x: This rank's tensor, contiguous.
        reduction: ``"sum"``, ``"mean"``, ``"min"`` or ``"max"``.
        phase: The first of the six phases that it takes.
    """
    others = others_of(link)
    if x.nbytes * len(others) <= DIRECT_BYTES:
        readers = give(link, others, phase, x)
        given = yield phase, others
        check_alike(link, x, given)
        out = link.buffers.empty(x.shape, x.dtype)
        reduce_parts(in_order(link, given, x.reshape(-1)), reduction, out.reshape(-1))
        yield from thanks(link, phase + 1, given, readers)
        return out
    # All tell their shapes first, since pieces have none, and the first one where its buffer is.
    reduction_buffers = link.reduction_buffers
    buffer = reduction_buffers.offer(x.nbytes) if link.rank == 0 else None
    try:
        opening = opening_of(x, handle="" if buffer is None else buffer.handle)
        for rank in others:
            link.give(rank, phase, opening)
        given = yield phase, others
        check_told(link, opening, given)
        handle = handle_in(opening if link.rank == 0 else given[0].part)
        if handle:
            buffer = buffer or reduction_buffers.find(handle)
            there = yield from _written(link, buffer, x, phase + 1)
            if there:
                assert buffer is not None
                whole = yield from _reduced_in_buffer(link, buffer, x, reduction, phase + 2)
                return whole
            reduction_buffers.usable = False
            if buffer is not None:
                reduction_buffers.give_up(buffer)
                buffer = None
        out = yield from _reduced_in_pieces(link, x, reduction, phase + 3)
        return out
    except BaseException:
        if buffer is not None:
            reduction_buffers.give_up(buffer)
        raise


def _pieces(link: Link, x: Array) -> list[slice]:
    bounds = [x.size * rank // link.size for rank in range(link.size + 1)]
    return [slice(a, b) for a, b in pairwise(bounds)]


def _row(giver: int, taker: int) -> int:
    """Return which row of a buffer has what one rank gives of the piece of another."""
    return giver - (giver > taker)


def _written(
    link: Link, buffer: ReductionBuffer | None, x: Array, phase: int
) -> Generator[tuple[int, Sequence[int]], Values, bool]:
    """Write what others need of a tensor in a buffer; return whether all ranks could do so."""
    others = others_of(link)
    if buffer is not None:
        flat = x.reshape(-1)
        pieces = _pieces(link, x)
        for rank in others:
            row = buffer.row(_row(link.rank, rank), x.nbytes, x.dtype)
            row[pieces[rank]] = flat[pieces[rank]]
    answer = np.array([buffer is not None])
    for rank in others:
        link.give(rank, phase, answer)
    given = yield phase, others
    answers = [value.array(link.buffers) for value in given.values()]
    return bool(answer.all()) and all(bool(a.all()) for a in answers)


def _reduced_in_buffer(
    link: Link, buffer: ReductionBuffer, x: Array, reduction: str, phase: int
) -> Generator[tuple[int, Sequence[int]], Values, Array]:
    """Return what all ranks have written in a buffer, each having reduced its piece there."""
    others = others_of(link)
    mine = _pieces(link, x)[link.rank]
    parts = [
        LocalPart(x.reshape(-1)[mine])
        if rank == link.rank
        else LocalPart(buffer.row(_row(rank, link.rank), x.nbytes, x.dtype)[mine])
        for rank in range(link.size)
    ]
    # The first row is read before it is written, element by element.
    reduce_parts(parts, reduction, buffer.row(0, x.nbytes, x.dtype)[mine])
    for rank in others:
        link.give(rank, phase, _NOTHING)
    yield phase, others
    return buffer.result(x.nbytes, x.dtype).reshape(x.shape)


def _reduced_in_pieces(
    link: Link, x: Array, reduction: str, phase: int
) -> Generator[tuple[int, Sequence[int]], Values, Array]:
    """Return what all ranks make together, of which each hands its piece around."""
    others = others_of(link)
    out = link.buffers.empty(x.shape, x.dtype)
    flat, result = x.reshape(-1), out.reshape(-1)
    pieces = _pieces(link, x)
    for rank in others:
        link.give(rank, phase, flat[pieces[rank]])
    mine = pieces[link.rank]
    given = yield phase, others
    reduce_parts(in_order(link, given, flat[mine]), reduction, result[mine])
    # Who has got a piece of the result has read what was given before.
    readers = give(link, others, phase + 1, result[mine])
    given = yield phase + 1, others
    for rank, value in given.items():
        room = result[pieces[rank]]
        got = value.part.read(0, room.size, room)
        if got is not room and got.base is not room:
            room[...] = got
    yield from thanks(link, phase + 2, given, readers)
    return out


def reduce_scatter(link: Link, x: Array, sizes: Sequence[int], reduction: str) -> Algorithm:
    """Return this rank's rows of what the tensors of all ranks make together."""
    x = np.ascontiguousarray(x)
    others = others_of(link)
    opening = opening_of(x, f" in rows {list(sizes)}")
    for rank in others:
        link.give(rank, 0, opening)
    given = yield 0, others
    check_told(link, opening, given)
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = [x[a:b] for a, b in pairwise(starts)]
    readers = [rank for rank in others if link.give(rank, 1, blocks[rank].reshape(-1))]
    own = blocks[link.rank]
    given = yield 1, others
    out = link.buffers.empty(own.shape, x.dtype)
    reduce_parts(in_order(link, given, own.reshape(-1)), reduction, out.reshape(-1))
    yield from thanks(link, 2, given, readers)
    return [out]


def reduce_to_rank(link: Link, x: Array, root: int) -> Algorithm:
    """Return the sum of all ranks' tensors on the root, zeros on the others."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    if link.rank != root:
        yield from thanks(link, 1, {}, give(link, [root], 0, x))
        return [np.zeros_like(x)]
    others = others_of(link)
    given = yield 0, others
    check_alike(link, x, given)
    out = link.buffers.empty(x.shape, x.dtype)
    reduce_parts(in_order(link, given, x.reshape(-1)), "sum", out.reshape(-1))
    yield from thanks(link, 1, given, ())
    return [out]


# -- moving values


def all_gather(link: Link, x: Array) -> Algorithm:
    """Return the rows of all ranks, and how many rows each has."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    others = others_of(link)
    readers = give(link, others, 0, x)
    given = yield 0, others
    check_alike(link, x, given, rows=True)
    result = yield from _joined(link, x, given, readers)
    return result


def all_to_all(link: Link, x: Array, sizes: Sequence[int]) -> Algorithm:
    """Return the rows that all ranks have for this one, and how many rows each has."""
    x = np.ascontiguousarray(x)
    others = others_of(link)
    starts = np.cumsum([0, *sizes]).tolist()
    blocks = [x[a:b] for a, b in pairwise(starts)]
    readers = [rank for rank in others if link.give(rank, 0, blocks[rank])]
    given = yield 0, others
    own = blocks[link.rank]
    check_alike(link, own, given, rows=True)
    result = yield from _joined(link, own, given, readers)
    return result


def _joined(link: Link, own: Array, given: Values, readers: Sequence[int]) -> Algorithm:
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
        if isinstance(given[rank].part, LocalPart):
            flat[...] = got
    yield from thanks(link, 1, given, readers)
    return [out, np.array(rows, np.int64)]


def broadcast(link: Link, x: Array, root: int) -> Algorithm:
    """Return the tensor of the root."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    if link.rank == root:
        yield from thanks(link, 1, {}, give(link, others_of(link), 0, x))
        return [x]
    given = yield 0, [root]
    check_alike(link, x, given)
    out = given[root].array(link.buffers)
    yield from thanks(link, 1, given, ())
    return [out]


def barrier(link: Link) -> Algorithm:
    """Return nothing, when all ranks have come."""
    others = others_of(link)
    for rank in others:
        link.give(rank, 0, _NOTHING)
    yield 0, others
    return []
