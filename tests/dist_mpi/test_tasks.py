"""The layout of tasks on ranks, and what ranks tell each other."""

from __future__ import annotations

import pytest

from headrace.device_name import DeviceName
from headrace.errors import ClusterError
from headrace_mpi.tasks import Layout, Member


def test_the_first_ranks_are_ps_and_the_others_workers() -> None:
    layout = Layout(size=5, ps=2)
    assert [str(layout.task(rank)) for rank in range(5)] == [
        "/job:ps/task:0",
        "/job:ps/task:1",
        "/job:worker/task:0",
        "/job:worker/task:1",
        "/job:worker/task:2",
    ]
    assert (layout.count("ps"), layout.workers, layout.count("evaluator")) == (2, 3, 0)
    for rank in range(5):
        assert layout.rank(layout.task(rank)) == rank
        assert layout.tasks(rank) == (layout.task(rank),)


def test_a_single_process_plays_all_tasks() -> None:
    layout = Layout(size=1, ps=2)
    assert str(layout.task(0)) == "/job:worker/task:0"
    assert list(map(str, layout.tasks(0))) == [
        "/job:ps/task:0",
        "/job:ps/task:1",
        "/job:worker/task:0",
    ]
    assert layout.rank(DeviceName("ps", 1, "cpu", 0)) == 0
    assert layout.workers == 1


def test_a_cluster_may_have_no_ps() -> None:
    layout = Layout(size=2, ps=0)
    assert [str(layout.task(rank)) for rank in range(2)] == [
        "/job:worker/task:0",
        "/job:worker/task:1",
    ]


@pytest.mark.parametrize(("size", "ps"), [(2, 2), (3, 7)])
def test_too_few_ranks_are_refused(size: int, ps: int) -> None:
    with pytest.raises(ClusterError, match=rf"ps={ps} needs at least {ps + 1} ranks.*has {size}"):
        Layout(size, ps)


@pytest.mark.parametrize("ps", [-1, 1.0, True, "1"])
def test_an_odd_number_of_ps_is_refused(ps: int) -> None:
    with pytest.raises(ClusterError, match="ps must be a whole number >= 0, got"):
        Layout(4, ps)


@pytest.mark.parametrize("name", ["/job:ps/task:1", "/job:chief/task:0", "/job:ps", "/cpu:0"])
def test_a_task_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ClusterError, match="the cluster has no task"):
        Layout(size=3, ps=1).rank(DeviceName.parse(name))


def test_a_member_survives_its_journey() -> None:
    member = Member(3, "höst", 77, 1, "0.1.0", ("/job:ps/task:0/device:cpu:0",), {"cpu": 0})
    assert Member.unpack(member.pack()) == member
