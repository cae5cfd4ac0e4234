"""Explanations of steps on a device that compiles nothing, and where operations are placed."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError, FeedError, FetchError, SessionClosedError

pytestmark = pytest.mark.usefixtures("mini")


def reasons(explanation):
    return {
        name: (placed.device.rpartition("device:")[2], placed.reason)
        for placed in explanation.placement
        for name in placed.operations
    }


def test_every_operation_that_runs_by_itself_is_a_part_after_those_it_waits_for():
    a = hr.placeholder(hr.float32, [3], name="a")
    b = hr.square(a, name="b")
    c = hr.add(b, a, name="c")
    with hr.Session() as session:
        parts = session.explain(c).parts
    assert [part.title for part in parts] == ["Square 'b'", "Add 'c'"]
    assert parts[1].after == (parts[0].number,)
    assert parts[0].works[0].bytes == 2 * 3 * 4
    assert "test_explain.py" in parts[0].line


def test_explaining_runs_nothing_and_needs_no_feeds():
    a = hr.placeholder(hr.float32, [], name="a")
    v = hr.Variable(1.0, name="v")
    step = hr.assign_add(v, a)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        text = str(session.explain(step))
        assert session.run(v) == 1.0
    assert "AssignAddVariable" in text
    assert "feeds a:0 []" in text


def test_placement_is_told_with_its_reason():
    a = hr.placeholder(hr.float32, [2], name="a")
    with hr.device("cpu:1"):
        b = hr.square(a, name="b")
        v = hr.Variable([1.0, 2.0], name="v")
    c = hr.negative(b, name="c")
    d = hr.assign_add(v, c, name="d")
    e = hr.identity(b, name="e")
    with hr.Session() as session:
        found = reasons(session.explain([d, e], {a: [1.0, 2.0]}))
    assert found["feed of a:0"] == ("cpu:0", "feeds come in there")
    assert found["b"] == ("cpu:1", "asked for: /device:cpu:1")
    assert found["d"][0] == "cpu:1"
    assert "shares a device with" in found["d"][1]
    assert found["e"] == ("cpu:1", "where its input is: moving it would take longer than the work")
    assert found["c"][1] == "the default: the fastest device that has kernels"


def test_state_of_an_earlier_step_is_where_it_was():
    v = hr.Variable(1.0, name="v")
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        found = reasons(session.explain(hr.assign_add(v, 2.0, name="d")))
    assert "lives there since an earlier step" in found["d"][1]


def test_a_feed_of_another_shape_is_refused():
    a = hr.placeholder(hr.float32, [3], name="a")
    with hr.Session() as session, pytest.raises(FeedError, match=r"shape \[2\] for 'a:0'"):
        session.explain(hr.square(a), {a: np.ones(2, np.float32)})


def test_what_cannot_be_fetched_cannot_be_explained():
    with hr.Session() as session, pytest.raises(FetchError, match="cannot fetch"):
        session.explain(3.5)


def test_a_closed_session_explains_nothing():
    session = hr.Session()
    session.close()
    with pytest.raises(SessionClosedError, match="closed"):
        session.explain(hr.constant(1.0))


def test_a_profile_must_be_asked_for():
    with hr.Session() as session, pytest.raises(ConfigError, match=r"Config\(profile=True\)"):
        session.profile()


@pytest.mark.parametrize("trace", [3, "", "no/such/folder/trace.json", "."])
def test_a_trace_that_is_no_file_is_refused(trace):
    with pytest.raises(ConfigError, match="trace must be the name of a file"):
        hr.Config(trace=trace)


def test_profile_must_be_a_switch():
    with pytest.raises(ConfigError, match="profile must be True or False"):
        hr.Config(profile=1)
