"""Collectives between real ranks, with and without a cluster, by memory and by messages."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(1, 2, 4), pytest.mark.needs("backend-cpu")]
# Small, large enough for pieces, and large enough for messages of their own.
SIZES = (5, 20_003, 700_001)


def mine(rank: int, size: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng([rank, size]).standard_normal(size).astype(np.float32)


def check(session: hr.Session, x: hr.Tensor, total: hr.Tensor, rows: hr.Tensor) -> None:
    """Run the sum and the rows of all ranks, twice, against NumPy."""
    count, rank = hr.dist.size(), hr.dist.rank()
    for size in SIZES:
        everyone = [mine(r, size) for r in range(count)]
        expected = everyone[0]
        for other in everyone[1:]:
            expected = expected + other
        for _ in range(2):
            summed, gathered = session.run([total, rows], {x: everyone[rank]})
            np.testing.assert_array_equal(summed, expected)
            np.testing.assert_array_equal(gathered, np.concatenate(everyone))


def build() -> tuple[hr.Tensor, hr.Tensor, hr.Tensor]:
    x = hr.placeholder(hr.float32, [None])
    return x, hr.dist.all_reduce(x), hr.dist.all_gather(x)


def test_every_rank_has_a_session_of_its_own() -> None:
    world = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    with hr.Graph().as_default():
        assert hr.dist.size() == world
        assert hr.dist.rank() == int(os.environ["OMPI_COMM_WORLD_RANK"])
        assert hr.dist.local_rank() == int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"])
        x, total, rows = build()
        with hr.Session() as session:
            check(session, x, total, rows)
            session.run(hr.dist.barrier())


def test_values_travel_by_messages_where_memory_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from headrace_mpi.collectives import groups

    if hr.dist.size() == 1:
        return
    # The group of the job lives as long as the process, so it is told.
    probe = groups.current_group().probe
    known = dict(groups.current_group().readable)
    monkeypatch.setattr(probe, "_on", False)
    groups.current_group().readable.update(dict.fromkeys(known, 0))
    try:
        with hr.Graph().as_default(), hr.Session() as session:
            check(session, *build())
    finally:
        groups.current_group().readable.update(known)


def test_the_workers_of_a_cluster_are_a_group(cluster: Any) -> None:
    if cluster.job_name == "ps":
        if cluster.num_workers > 0 and int(os.environ["OMPI_COMM_WORLD_SIZE"]) > 1:
            with pytest.raises(hr.errors.ClusterError, match="takes no part in collectives"):
                hr.dist.rank()
        return
    assert hr.dist.size() == cluster.num_workers
    assert hr.dist.rank() == cluster.task_index
    with hr.device("/job:ps/task:0"):
        shared = hr.Variable(np.float32(1.0), name="shared")
    x, total, rows = build()
    # A variable of the ps and a collective of the workers, in one step.
    scaled = total * shared
    with hr.Session(cluster.target) as session:
        if cluster.is_chief:
            session.run(shared.initializer)
        session.run(hr.dist.barrier())
        check(session, x, scaled, rows)


def test_ranks_go_on_together_after_what_went_wrong() -> None:
    count, rank = hr.dist.size(), hr.dist.rank()
    if count == 1:
        return
    last = rank == count - 1
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float32, [None])
        total = hr.dist.all_reduce(x, name="total")
        other = hr.dist.all_gather(x, name="other")
        for size in SIZES:
            # One rank runs another step than the others do.
            with pytest.raises(hr.errors.InvalidArgumentError, match=f"rank {count - 1}: AllGa"):
                session.run(other if last else total, {x: mine(rank, size)})
            # One rank has another shape.
            with pytest.raises(hr.errors.InvalidArgumentError, match=rf"rank {count - 1}: .*\[1"):
                session.run(total, {x: mine(rank, 1 if last else size)})
            # All is well again.
            found = session.run(total, {x: np.ones(size, np.float32)})
            assert found.shape == (size,)
            assert (found == count).all()
        # One rank fails between two collectives.
        with hr.control_dependencies([total]):
            bad = hr.check_numerics(x, "the batch") if last else x + 0.0
        second = hr.dist.all_reduce(bad, name="second")
        batch = np.full(20_000, np.inf if last else 1.0, np.float32)
        kind = hr.errors.InvalidArgumentError if last else hr.errors.AbortedError
        with pytest.raises(kind, match="the batch" if last else f"on rank {count - 1}"):
            session.run(second, {x: batch})
        assert session.run(second, {x: np.ones(3, np.float32)}).tolist() == [count] * 3
