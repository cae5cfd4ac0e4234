"""The ranks of a job without a cluster: how the frames of their collectives travel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headrace_mpi.shared_memory import doorbell

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = pytest.mark.needs("mpi", "backend-cpu")

OPENING = """
import sys
import numpy as np
import headrace as hr
from headrace_mpi.collectives.groups import current_group

def say(text):
    sys.stdout.write(f"{text}\\n")
    sys.stdout.flush()
"""

SUMS = """
count, rank = hr.dist.size(), hr.dist.rank()
transport = current_group()._transport
with hr.Graph().as_default(), hr.Session() as session:
    x = hr.placeholder(hr.float32, [None])
    total, rows = hr.dist.all_reduce(x), hr.dist.all_gather(x)
    for size in (1, 5000, 20_003, 400_001):
        everyone = [np.arange(size, dtype=np.float32) + r for r in range(count)]
        for _ in range(20):
            found = session.run([total, rows], {x: everyone[rank]})
        np.testing.assert_array_equal(found[0], sum(everyone))
        np.testing.assert_array_equal(found[1], np.concatenate(everyone))
say(f"rank {rank}: {len(transport._to)} links")
"""


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("read", ["0", "1"])
@pytest.mark.parametrize("share", ["0", "1"])
def test_ranks_of_a_host_share_memory_where_they_may(
    run_program: RunProgram, size: int, share: str, read: str
) -> None:
    environ = {"HEADRACE_SHARE_MEMORY": share, "HEADRACE_READ_MEMORY": read}
    done = run_program(size, SUMS, opening=OPENING, env=environ)
    assert done.code == 0, done.err
    linked = size - 1 if share == "1" and doorbell.is_supported() else 0
    for rank in range(size):
        assert f"rank {rank}: {linked} links" in done.out


def test_ranks_of_several_hosts_are_linked_with_their_own(run_program: RunProgram) -> None:
    done = run_program(
        3,
        SUMS,
        opening="""
import os
import socket
name = "second" if os.environ["OMPI_COMM_WORLD_RANK"] == "1" else "first"
socket.gethostname = lambda: name
"""
        + OPENING,
    )
    assert done.code == 0, done.err
    near = 1 if doorbell.is_supported() else 0
    for rank, linked in enumerate((near, 0, near)):
        assert f"rank {rank}: {linked} links" in done.out


def test_a_rank_may_ask_for_its_number_alone_after_a_cluster(run_program: RunProgram) -> None:
    done = run_program(
        2,
        """
        with hr.dist.Cluster(ps=0) as cluster:
            chief = cluster.is_chief
        if chief:
            say(f"alone {hr.dist.rank()} of {hr.dist.size()}")
        """,
        opening=OPENING,
        env={"HEADRACE_START_TIMEOUT": "10"},
    )
    assert done.code == 0, done.err
    assert "alone 0 of 2" in done.out
    assert done.seconds < 15
