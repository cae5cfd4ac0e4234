"""The job that rank tests run in has the ranks it was asked for."""

from __future__ import annotations

import os

import pytest


@pytest.mark.ranks(1, 2, 4)
def test_the_job_has_each_rank_once() -> None:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    assert world.allgather(world.rank) == list(range(world.size))
    assert world.size == int(os.environ["OMPI_COMM_WORLD_SIZE"])
