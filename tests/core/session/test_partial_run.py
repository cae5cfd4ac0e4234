"""Partial runs, and what sessions tell and take besides."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    FailedPreconditionError,
    FeedError,
    InvalidArgumentError,
    SessionClosedError,
    UnimplementedError,
)

pytestmark = pytest.mark.needs("backend-cpu")


class Program:
    """A step of two pieces: ``first`` of a and b, ``second`` of that and c."""

    def __init__(self):
        with hr.Graph().as_default() as graph:
            self.a, self.b, self.c = (hr.placeholder(hr.float32, [], name=n) for n in "abc")
            self.first = hr.add(self.a, self.b, name="first")
            self.second = hr.multiply(self.first, self.c, name="second")
            drawn = hr.random_uniform([])
            self.drawn = (drawn + self.a, drawn + self.c)
            self.count = hr.Variable(0.0, name="count")
            self.counted = hr.assign_add(self.count, 1.0)
            with hr.control_dependencies([self.counted]):
                self.late = hr.identity(self.c, name="late")
        self.session = hr.Session(graph=graph)
        self.session.run(self.count.initializer)

    def set_up(self, fetches=None, feeds=None):
        fetches = [self.first, self.second] if fetches is None else fetches
        return self.session.partial_run_setup(fetches, feeds or [self.a, self.b, self.c])


@pytest.fixture(scope="module")
def program():
    return Program()


# Results and families of errors are those of TensorFlow 1.15.5, run by hand with the same program.
def test_a_step_in_two_pieces(program):
    p, run = program, program.session.partial_run
    handle = p.set_up()
    assert run(handle, p.first, {p.a: 1, p.b: 2}) == 3
    assert run(handle, "second:0", {"c:0": 5}) == 15
    with pytest.raises(InvalidArgumentError, match=r"is the handle of no partial run"):
        run(handle, p.second)


def test_structures_and_other_orders(program):
    p, run = program, program.session.partial_run
    assert run(p.set_up(), {"x": p.first, "y": [p.second]}, {p.a: 1, p.b: 2, p.c: 3}) == {
        "x": 3,
        "y": [9],
    }
    handle = p.set_up()
    assert run(handle, p.second, {p.a: 1, p.b: 2, p.c: 3}) == 9
    assert run(handle, p.first) == 3
    handle = p.set_up()
    assert run(handle, [], {p.a: 1, p.b: 2}) == []
    assert run(handle, [p.first, p.second], {p.c: 2}) == [3, 6]
    assert run(p.set_up([p.second], [p.first, p.c]), p.second, {p.first: 3, p.c: 4}) == 12


def test_nothing_runs_twice(program):
    p, run = program, program.session.partial_run
    handle = p.set_up(list(p.drawn), [p.a, p.c])
    assert run(handle, p.drawn[0], {p.a: 1}) == run(handle, p.drawn[1], {p.c: 1})
    before = p.session.run(p.count)
    handle = p.set_up([p.counted, p.late], [p.c])
    assert run(handle, p.counted) == before + 1
    assert run(handle, p.late, {p.c: 3}) == 3
    assert p.session.run(p.count) == before + 1


def test_operations_run_with_the_last_tensor(program):
    p, run = program, program.session.partial_run
    before = p.session.run(p.count)
    handle = p.set_up([p.first, p.second, p.counted.op])
    run(handle, p.first, {p.a: 1, p.b: 2})
    assert p.session.run(p.count) == before
    run(handle, p.second, {p.c: 1})
    assert p.session.run(p.count) == before + 1


def test_arrays_are_the_callers_own():
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [2])
        doubled = x * 2.0
        session = hr.Session()
        handle = session.partial_run_setup([doubled, doubled + 1.0, x], [x])
        after = hr.get_default_graph().get_operations()[-1].outputs[0]
        fed = np.array([1, 2], np.float32)
        first = session.partial_run(handle, doubled, {x: fed})
        first[:] = 9
        fed[:] = 9
        assert session.partial_run(handle, after).tolist() == [3, 5]
        assert session.partial_run(handle, x).tolist() == [1, 2]


@pytest.mark.parametrize(
    ("calls", "error", "message"),
    [
        ([("first", "ab"), ("first", "")], InvalidArgumentError, "'first:0' was fetched already"),
        ([("first", "ab"), ("second", "ac")], FeedError, "'a:0' was fed already"),
        ([("first", "a")], FeedError, "needs 'b:0', which was not fed so far"),
        ([("late", "abc")], InvalidArgumentError, "'late:0' was not named in partial_run_setup"),
    ],
)
def test_pieces_that_are_refused(program, calls, error, message):
    p = program
    handle = p.set_up()
    *before, (fetch, feeds) = [
        (getattr(p, name), {getattr(p, f): 1.0 for f in fed}) for name, fed in calls
    ]
    for earlier in before:
        p.session.partial_run(handle, *earlier)
    with pytest.raises(error, match=message):
        p.session.partial_run(handle, fetch, feeds)


def test_a_refused_piece_changes_nothing(program):
    p, run = program, program.session.partial_run
    handle = p.set_up()
    with pytest.raises(FeedError, match=r"needs 'b:0'"):
        run(handle, p.first, {p.a: 1})
    with pytest.raises(FeedError, match=r"shape \[2\] for 'a:0'"):
        run(handle, p.first, {p.a: [1, 2], p.b: 1})
    assert run(handle, p.first, {p.a: 1, p.b: 2}) == 3


def test_other_refusals(program):
    p, session = program, program.session
    with pytest.raises(FailedPreconditionError, match=r"fetches tensors only"):
        session.partial_run(p.set_up(), p.second.op, {p.a: 1, p.b: 2, p.c: 3})
    with pytest.raises(InvalidArgumentError, match=r"'abc' is the handle of no partial run"):
        session.partial_run("abc", p.first)
    with pytest.raises(FeedError, match=r"cannot feed 'zzz:0'"):
        p.set_up(feeds=["zzz:0"])
    with pytest.raises(TypeError, match=r"cannot fetch 3"):
        p.set_up([3])
    with pytest.raises(InvalidArgumentError, match=r"partial_run_setup before partial_run"):
        hr.Session(graph=session.graph).partial_run("abc", p.first)


def test_devices_and_targets(program):
    devices = program.session.list_devices()
    assert ("CPU", True) in [(d.device_type, d.name.endswith("cpu:0")) for d in devices]
    assert devices[0].memory_limit_bytes >= 0
    assert program.session.sess_str == b""
    with pytest.raises(UnimplementedError, match=r"not that of 'mpi:x'"):
        hr.Session.reset("mpi:x")


def test_reset_drops_named_containers():
    with hr.Graph().as_default(), hr.container("kept for test_reset"):
        v = hr.Variable(1.0)
        with hr.Session() as session:
            session.run(v.initializer)
        with hr.Session() as session:
            assert session.run(v) == 1
            hr.Session.reset("", ["kept for test_reset"])
            with pytest.raises(FailedPreconditionError, match=r"not initialized"):
                session.run(v)


def test_callables_take_options(program):
    p = program
    plain = p.session.make_callable(p.first, [p.a, p.b])
    asked = p.session.make_callable(p.first, [p.a, p.b], accept_options=True)
    metadata = hr.RunMetadata()
    options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
    assert plain(1, 2) == asked(1, 2) == asked(1, 2, options=options, run_metadata=metadata) == 3
    assert metadata.step_stats
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'options'"):
        plain(1, 2, options=options)
    with pytest.raises(ArgumentTypeError, match=r"feed_list must be a list"):
        p.session.make_callable(p.first, p.a)


def test_closed_sessions_refuse():
    with hr.Graph().as_default():
        x = hr.constant(1.0)
        session = hr.Session()
        handle = session.partial_run_setup([x])
        session.close()
        for call in (
            session.list_devices,
            lambda: session.partial_run_setup([x]),
            lambda: session.partial_run(handle, x),
        ):
            with pytest.raises(SessionClosedError, match=r"was closed"):
                call()
