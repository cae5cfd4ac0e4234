"""The jobs of a cluster, and which rank plays which task."""

from __future__ import annotations

from typing import Any

import pytest

import headrace as hr
from headrace.device_name import DeviceName
from headrace.errors import ClusterError
from headrace_mpi.jobs import Jobs, Layout, ps_and_workers


def in_order(jobs: Jobs) -> Layout:
    return Layout(jobs, jobs.tasks)


def alone(jobs: Jobs) -> Layout:
    return Layout(jobs, (jobs.chief,))


def test_the_first_ranks_are_ps_and_the_others_workers() -> None:
    layout = in_order(ps_and_workers(2, 5))
    assert [str(layout.task(rank)) for rank in range(5)] == [
        "/job:ps/task:0",
        "/job:ps/task:1",
        "/job:worker/task:0",
        "/job:worker/task:1",
        "/job:worker/task:2",
    ]
    assert str(layout.jobs) == "ps: 2, worker: 3"
    assert layout.jobs.count("evaluator") == 0
    for rank in range(5):
        assert layout.rank(layout.task(rank)) == rank
        assert layout.tasks(rank) == (layout.task(rank),)


def test_a_single_process_plays_all_tasks() -> None:
    layout = alone(ps_and_workers(2, 1))
    assert str(layout.task(0)) == "/job:worker/task:0"
    assert list(map(str, layout.tasks(0))) == [
        "/job:ps/task:0",
        "/job:ps/task:1",
        "/job:worker/task:0",
    ]
    assert layout.rank(DeviceName("ps", 1, "cpu", 0)) == 0
    assert layout.jobs.count("worker") == 1


@pytest.mark.parametrize(("size", "ps"), [(2, 2), (3, 7)])
def test_too_few_ranks_are_refused(size: int, ps: int) -> None:
    with pytest.raises(ClusterError, match=rf"ps={ps} needs at least {ps + 1} ranks.*has {size}"):
        ps_and_workers(ps, size)


@pytest.mark.parametrize("ps", [-1, 1.0, True, "1"])
def test_an_odd_number_of_ps_is_refused(ps: Any) -> None:
    with pytest.raises(ClusterError, match="ps must be a whole number >= 0, got"):
        ps_and_workers(ps, 4)


@pytest.mark.parametrize("name", ["/job:ps/task:1", "/job:chief/task:0", "/job:ps", "/cpu:0"])
def test_a_task_that_is_not_there_is_named(name: str) -> None:
    with pytest.raises(ClusterError, match="the cluster has no task"):
        in_order(ps_and_workers(1, 3)).rank(DeviceName.parse(name))


@pytest.mark.parametrize(
    ("jobs", "size", "expected"),
    [
        ({"chief": 1, "worker": 2, "ps": 1}, 4, "chief: 1, worker: 2, ps: 1"),
        ({"ps": 1, "worker": None}, 4, "ps: 1, worker: 3"),
        ({"ps": ["a:1", "b:1"], "worker": ("c:1",)}, 3, "ps: 2, worker: 1"),
        ({"ps": {0: "a:1"}, "evaluator": {1: "b", 0: "c"}}, 3, "ps: 1, evaluator: 2"),
        ({"ps": 2, "worker": None}, 1, "ps: 2, worker: 1"),
        ({"ps": 2, "worker": 3}, 1, "ps: 2, worker: 3"),
        ({"worker": None, "ps": 0}, 2, "worker: 2, ps: 0"),
    ],
)
def test_programs_name_any_jobs(jobs: Any, size: int, expected: str) -> None:
    assert str(Jobs.of(jobs, size)) == expected


@pytest.mark.parametrize(
    ("jobs", "size", "match"),
    [
        (3, 2, r"must be a dictionary from names of jobs.*got 3"),
        ({}, 2, "must be a dictionary from names of jobs"),
        ({"a b": 1}, 1, "the name of a job must be letters, digits and _, got 'a b'"),
        ({1: 1}, 1, "the name of a job must be letters, digits and _, got 1"),
        ({"ps": -1}, 1, "whole number >= 0 of tasks, or a list of addresses, got -1"),
        ({"ps": True}, 1, "whole number >= 0 of tasks, or a list of addresses, got True"),
        ({"ps": {1: "a"}}, 1, r"leaves out tasks, it has \[1\]"),
        ({"ps": 0}, 1, "needs at least one task, got ps: 0"),
        ({"ps": None, "worker": None}, 3, r"cannot go to 2 jobs: \['ps', 'worker'\]"),
        ({"ps": 1, "worker": 3}, 3, r"has 4 tasks, but the job has 3 ranks\n.*mpirun -n 4"),
        ({"ps": 3, "worker": None}, 3, "has 4 tasks, but the job has 3 ranks"),
    ],
)
def test_jobs_that_do_not_fit_are_refused(jobs: Any, size: int, match: str) -> None:
    with pytest.raises(ClusterError, match=match):
        Jobs.of(jobs, size)


@pytest.mark.parametrize(
    ("jobs", "chief"),
    [
        ({"ps": 1, "worker": 2, "chief": 1}, "/job:chief/task:0"),
        ({"worker": 2, "master": 1}, "/job:master/task:0"),
        ({"ps": 1, "worker": 2}, "/job:worker/task:0"),
        ({"ps": 0, "evaluator": 1}, "/job:evaluator/task:0"),
    ],
)
def test_one_task_is_the_chief(jobs: Any, chief: str) -> None:
    assert str(Jobs.of(jobs, 1).chief) == chief


@pytest.mark.needs("backend-cpu")
def test_a_process_that_is_alone_may_be_any_task() -> None:
    jobs = {"ps": 1, "worker": 2, "evaluator": 1}
    with hr.dist.Cluster(jobs=jobs) as cluster:
        assert (cluster.job_name, cluster.task_index, cluster.is_chief) == ("worker", 0, True)
        assert (cluster.num_workers, cluster.num_tasks("evaluator")) == (2, 1)
        assert repr(cluster).startswith(
            "<Cluster of ps: 1, worker: 2, evaluator: 1; this is /job:w"
        )
    with hr.dist.Cluster(jobs=jobs, job_name="evaluator") as cluster:
        assert (cluster.job_name, cluster.task_index, cluster.is_chief) == ("evaluator", 0, False)
    with hr.dist.Cluster(jobs=jobs, job_name="worker", task_index=1) as cluster:
        with hr.Graph().as_default(), hr.device("/job:evaluator/task:0"):
            total = hr.constant(2.0) + 1.0
        with hr.Session(cluster.target, graph=total.graph) as session:
            assert session.run(total) == 3


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"ps": 1, "jobs": {"ps": 1}}, "Cluster takes ps or jobs"),
        ({"jobs": {"ps": 1}, "task_index": 0}, "task_index=0 needs a job_name"),
        ({"jobs": {"ps": 2}, "job_name": "ps"}, "job 'ps' has 2 tasks: task_index must say which"),
        ({"jobs": {"ps": 2}, "job_name": "w"}, "the cluster ps: 2 has no task '/job:w/task:0'"),
        ({"ps": 1, "job_name": "ps", "task_index": 4}, "has no task '/job:ps/task:4'"),
    ],
)
def test_a_task_that_nobody_has_is_refused(arguments: Any, match: str) -> None:
    with pytest.raises(ClusterError, match=match):
        hr.dist.Cluster(**arguments)
