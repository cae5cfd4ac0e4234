"""The staleness of updates: counted right, over all workers, and summarized."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff", "train")


def program(limit: int = 5) -> tuple[hr.Variable, Any, Any, Any]:
    """A model whose update waits, between reading and applying, for what is fed."""
    with hr.device("/job:ps/task:0"):
        staleness = hr.train.StalenessRecorder(limit)
        w = hr.Variable(np.float32(4.0), name="w")
    held = hr.placeholder(hr.float32, [], name="held")
    loss = hr.square(w) * held
    step = staleness.record(hr.train.GradientDescentOptimizer(0.01).minimize(loss))
    return w, staleness, held, step


@pytest.mark.ranks(1, 2)
def test_updates_that_nobody_comes_between_are_fresh(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    w, staleness, held, step = program()
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        assert str(staleness.summary(session)).startswith("staleness of 0 updates: mean 0.00")
        for _ in range(4):
            session.run(step, {held: 1.0})
        assert session.run(staleness.version) == 4
        assert staleness.summary(session) == hr.train.StalenessSummary(4, 0.0, 0, 0, 0, False)
        assert session.run([staleness.staleness, step], {held: 1.0})[0] == 0
        assert session.run(w) < 4.0


@pytest.mark.ranks(1, 2)
def test_updates_of_others_in_between_are_counted(cluster: Any) -> None:
    if not cluster.is_chief:
        return
    _, staleness, held, step = program()
    begin = hr.get_default_graph().get_tensor_by_name("staleness/read:0")
    with hr.Session(cluster.target) as session:
        session.run(hr.global_variables_initializer())
        for behind in (0, 1, 3, 5, 9):
            # A step in two pieces: it reads the version, and others come before it goes on.
            handle = session.partial_run_setup([begin, staleness.staleness, step], [held])
            session.partial_run(handle, begin)
            for _ in range(behind):
                session.run(step, {held: 1.0})
            found = session.partial_run(handle, staleness.staleness, {held: 1.0})
            assert found == behind
        counts = session.run(staleness.counts)
        assert counts.tolist() == [1 + 18, 1, 0, 1, 0, 2]
        summary = staleness.summary(session)
        assert (summary.updates, summary.most, summary.open) == (23, 5, True)
        assert str(summary) == (
            "staleness of 23 updates: mean 0.61, median 0, 95 % at most 5, largest 5 or more"
        )


@pytest.mark.ranks(1, 2, 4)
def test_all_workers_count_into_the_same_variables(cluster: Any) -> None:
    if cluster.job_name == "ps":
        return
    w, staleness, held, step = program(limit=100)
    ready = hr.is_variable_initialized(w)
    with hr.Session(cluster.target) as session:
        if cluster.is_chief:
            session.run([staleness.version.initializer, staleness.counts.initializer])
            session.run(w.initializer)
        while not session.run(ready):
            time.sleep(0.01)
        for _ in range(25):
            session.run(step, {held: 1.0})
        if cluster.is_chief:
            total = 25 * cluster.num_workers
            while staleness.summary(session).updates < total:
                time.sleep(0.01)
            summary = staleness.summary(session)
            assert session.run(staleness.version) == summary.updates == total
            # Between reading and applying, others apply at most what they apply at all.
            assert summary.most <= total - 25
            assert (summary.mean > 0) == (summary.most > 0)


def test_what_cannot_be_recorded_is_refused() -> None:
    with pytest.raises(AttributeValueError, match="limit must be a whole number from 1 on, got 0"):
        hr.train.StalenessRecorder(0)
    recorder = hr.train.StalenessRecorder(2, name="once")
    recorder.record(hr.no_op())
    with pytest.raises(AttributeValueError, match="'once' records an update already"):
        recorder.record(hr.no_op())
    with pytest.raises(ShapeError, match=r"counts must be \[limit \+ 1\], got shape \[2, 2\]"):
        hr.train.StalenessSummary.of(np.zeros((2, 2)))
