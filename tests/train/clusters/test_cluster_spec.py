"""What a ``ClusterSpec`` says of a cluster, as TensorFlow 1.15.5's does."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError

DENSE = {"ps": ["a:1", "b:1"], "worker": ["c:1"]}
SPARSE = {"worker": {3: "y", 1: "x"}}


def test_a_spec_tells_what_it_was_told():
    spec = hr.train.ClusterSpec(DENSE)
    assert spec.as_dict() == DENSE
    assert sorted(spec.jobs) == ["ps", "worker"]
    assert (spec.num_tasks("ps"), spec.task_indices("ps")) == (2, [0, 1])
    assert spec.task_address("ps", 1) == "b:1"
    assert spec.job_tasks("worker") == ["c:1"]
    assert str(spec) == "ClusterSpec({'ps': ['a:1', 'b:1'], 'worker': ['c:1']})"
    assert spec == hr.train.ClusterSpec(spec)
    assert spec == {"ps": {0: "a:1", 1: "b:1"}, "worker": {0: "c:1"}}
    assert spec != hr.train.ClusterSpec(SPARSE)


def test_tasks_may_be_left_out():
    spec = hr.train.ClusterSpec(SPARSE)
    assert spec.as_dict() == {"worker": {1: "x", 3: "y"}}
    assert (spec.num_tasks("worker"), spec.task_indices("worker")) == (2, [1, 3])
    assert spec.job_tasks("worker") == [None, "x", None, "y"]
    with pytest.raises(AttributeValueError, match=r"job 'worker' has no task 0, it has \[1, 3\]"):
        spec.task_address("worker", 0)


def test_jobs_and_tasks_may_be_missing():
    assert not hr.train.ClusterSpec({})
    assert hr.train.ClusterSpec({"ps": []}).as_dict() == {"ps": {}}
    for ask in ("num_tasks", "task_indices", "job_tasks"):
        with pytest.raises(AttributeValueError, match="has no job 'chief', it has 'ps', 'worker'"):
            getattr(hr.train.ClusterSpec(DENSE), ask)("chief")


@pytest.mark.parametrize("cluster", [DENSE, SPARSE, {}, {"ps": []}, {"ps": (b"a",)}])
def test_messages_carry_it(cluster):
    spec = hr.train.ClusterSpec(cluster)
    again = hr.train.ClusterSpec(spec.as_cluster_def())
    assert again == spec


@pytest.mark.parametrize(
    ("cluster", "match"),
    [
        (["a"], "is described by a dictionary"),
        (None, "is described by a dictionary"),
        ({1: ["a"]}, "the name of a job must be a string, got 1"),
        ({"ps": [1]}, "the address of a task must be a string, got 1"),
        ({"ps": "abc"}, "the tasks of job 'ps' must be a list of addresses"),
        ({"ps": {"0": "a"}}, "tasks of job 'ps' are numbered from 0 up, got '0'"),
        ({"ps": {-1: "a"}}, "tasks of job 'ps' are numbered from 0 up, got -1"),
    ],
)
def test_what_is_no_cluster_is_refused(cluster, match):
    with pytest.raises(DTypeError, match=match):
        hr.train.ClusterSpec(cluster)
