"""ReductionBuffers: sums that the ranks of one host make in memory that all of them have mapped."""

from __future__ import annotations

import gc
import os
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import InvalidArgumentError
from headrace_mpi.collectives import reduction_buffers
from headrace_mpi.collectives.algorithms import DIRECT_BYTES
from headrace_mpi.shared_memory import mapped_memory
from tests.dist_mpi.linked import maps
from tests.dist_mpi.threaded_ranks import Rank, good, run_ranks

pytestmark = [
    pytest.mark.needs("backend-cpu"),
    pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no memory files"),
]
LARGE = DIRECT_BYTES // 4 + 3


def value(rank: int, size: int, dtype: str) -> np.ndarray[Any, Any]:
    drawn = np.random.default_rng([rank, size]).standard_normal(size) * 100
    return drawn.astype(dtype)


# Integers have no mean.
KINDS = [
    (dtype, reduction)
    for dtype in ("float32", "float16", "float64", "int32")
    for reduction in ("sum", "mean", "min", "max")
    if (dtype, reduction) != ("int32", "mean")
]


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("dtype", "reduction"), KINDS)
def test_sums_in_a_buffer_have_the_bits_of_those_in_pieces(
    ranks: int, reduction: str, dtype: str
) -> None:
    def program(rank: Rank) -> list[Any]:
        found = []
        with hr.Session() as session:
            x = hr.placeholder(hr.as_dtype(dtype), [None])
            total = hr.dist.all_reduce(x, reduction)
            for size in (LARGE * 4 // x.dtype.itemsize, LARGE * 2 + 1):
                mine = value(rank.rank, size, dtype)
                found += [session.run(total, {x: mine}) for _ in range(2)]
        found.append(rank.group.reduction_buffers.count)
        return found

    far = good(run_ranks(ranks, program))
    near = good(run_ranks(ranks, program, near=True))
    for *expected, none in far:
        assert none == 0
        for *found, _ in near:
            for a, b in zip(found, expected, strict=True):
                assert a.dtype == b.dtype
                assert a.tobytes() == b.tobytes()
    # The first rank makes them, and uses them again.
    assert [made for *_, made in near][1:] == [0] * (ranks - 1)
    assert 1 <= near[0][-1] <= 4


def test_buffers_are_used_again_when_no_rank_holds_what_is_on_them() -> None:
    def program(rank: Rank) -> int:
        x = hr.placeholder(hr.float32, [LARGE])
        step = hr.reduce_max(hr.dist.all_reduce(x))
        with hr.Session() as session:
            for number in range(12):
                assert session.run(step, {x: np.full(LARGE, number, np.float32)}) == 3.0 * number
        return rank.group.reduction_buffers.count

    # A rank may still be at the end of the step before.
    assert good(run_ranks(3, program, near=True))[0] <= 2


def test_what_a_rank_keeps_is_its_own() -> None:
    def program(rank: Rank) -> list[Any]:
        x = hr.placeholder(hr.float32, [LARGE])
        total = hr.dist.all_reduce(x)
        kept = hr.Variable(hr.zeros([LARGE]))
        keep = kept.assign(total)
        add = kept.assign_add(hr.fill([LARGE], 10.0 * (rank.rank + 1)))
        seen = []
        with hr.Session() as session:
            session.run(kept.initializer)
            session.run(keep.op, {x: np.full(LARGE, 1.0, np.float32)})
            for number in range(3):
                fetched = session.run(total, {x: np.full(LARGE, 5.0 + number, np.float32)})
                assert (fetched == 2 * (5.0 + number)).all()
                fetched[:] = -1
            seen.append(session.run(kept))
            session.run(add.op)
            seen.append(session.run(kept))
            session.run(hr.dist.barrier())
            seen.append(session.run(kept))
        return seen

    for rank, seen in enumerate(good(run_ranks(2, program, near=True))):
        for found, expected in zip(seen, (2.0, 12.0 + 10 * rank, 12.0 + 10 * rank), strict=True):
            assert (found == expected).all()


def test_what_is_on_a_board_cannot_be_written() -> None:
    made = reduction_buffers.ReductionBuffers(0, 2, True)
    buffer = made.offer(4096)
    assert buffer is not None
    buffer.row(0, 4096, np.dtype(np.float32))[:] = 2
    result = buffer.result(4096, np.dtype(np.float32))
    assert (result == 2).all()
    with pytest.raises(ValueError, match="read-only"):
        result[0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        result.flags.writeable = True
    assert not buffer.is_free(1)
    del result
    assert buffer.is_free(1)
    # The second rank still holds it.
    assert not buffer.is_free(2)
    made.close()


def test_ranks_that_cannot_map_a_board_make_sums_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def program(rank: Rank) -> tuple[bool, int]:
        if rank.rank == 2:
            monkeypatch.setattr(rank.group.reduction_buffers, "find", lambda handle: None)
        with hr.Session() as session:
            total = hr.dist.all_reduce(hr.fill([LARGE], rank.rank + 1.0))
            for _ in range(3):
                assert (session.run(total) == 6.0).all()
        return rank.group.reduction_buffers.usable, rank.group.reduction_buffers.count

    assert good(run_ranks(3, program, near=True)) == [(False, 0)] * 3


@pytest.mark.parametrize("why", ["no memory", "too large"])
def test_without_memory_for_buffers_sums_are_made_in_pieces(
    monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    def refuse(nbytes: int) -> Any:
        raise OSError(28, os.strerror(28))

    if why == "no memory":
        monkeypatch.setattr(mapped_memory, "make", refuse)
    else:
        monkeypatch.setattr(reduction_buffers, "MOST_BYTES", LARGE)

    def program(rank: Rank) -> int:
        with hr.Session() as session:
            total = hr.dist.all_reduce(hr.fill([LARGE], rank.rank + 1.0))
            for _ in range(3):
                assert (session.run(total) == 3.0).all()
        return rank.group.reduction_buffers.count

    assert good(run_ranks(2, program, near=True)) == [0, 0]


def test_buffers_of_other_sizes_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduction_buffers, "MOST_BYTES", 5 * DIRECT_BYTES)

    def program(rank: Rank) -> list[int]:
        counts = []
        with hr.Session() as session:
            x = hr.placeholder(hr.float32, [None])
            step = hr.reduce_min(hr.dist.all_reduce(x))
            for size in (LARGE, 2 * LARGE, 4 * LARGE, LARGE, 3 * LARGE):
                assert session.run(step, {x: np.ones(size, np.float32)}) == 2.0
                # Both have let go of it.
                session.run(hr.dist.barrier())
                counts.append(rank.group.reduction_buffers.count)
        return counts

    first, second = good(run_ranks(2, program, near=True))
    assert second == [0] * 5
    assert max(first) <= 2


def test_a_board_of_a_step_that_fails_is_given_up_and_nothing_stays_mapped() -> None:
    gc.collect()
    before = maps()

    def program(rank: Rank) -> int:
        x = hr.placeholder(hr.float32, [None])
        total = hr.dist.all_reduce(x, name="total")
        with hr.Session() as session:
            for _ in range(3):
                with pytest.raises(InvalidArgumentError, match=r"rank 1: float32\[2097160\]"):
                    session.run(total, {x: np.ones(8 * (1 << 18) + 8 * rank.rank, np.float32)})
                assert (session.run(total, {x: np.ones(LARGE, np.float32)}) == 2.0).all()
        return rank.group.reduction_buffers.count

    first, second = good(run_ranks(2, program, near=True))
    assert (first <= 2, second) == (True, 0)
    gc.collect()
    assert maps() == before
