"""Tensors that a session keeps between steps, as TensorFlow 1.15.5 keeps them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, InvalidArgumentError, ShapeError
from headrace.graph.schema import call_op

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.fixture
def session():
    with hr.Graph().as_default() as graph, hr.Session(graph=graph) as opened:
        yield opened


def test_what_a_step_made_is_used_by_later_ones(session):
    made = hr.multiply(hr.constant(10), hr.constant(5), name="made")
    handle = session.run(hr.get_session_handle(made))
    name, number, device = handle.handle.split(";")
    assert (name, number, device[-6:]) == ("GetSessionHandle", "0", ":cpu:0")
    assert str(handle) == handle.handle
    assert repr(handle) == f"<TensorHandle {handle.handle!r}, int32>"
    holder, kept = hr.get_session_tensor(handle.handle, hr.int32)
    times_ten = kept * 10
    assert session.run(times_ten, {holder: handle.handle}) == 500
    assert session.run(times_ten, {holder: handle}) == 500
    assert handle.eval() == 50


def test_state_goes_from_step_to_step(session):
    handle = session.run(hr.get_session_handle(hr.constant([0.0, 1.0])))
    holder, kept = hr.get_session_tensor(handle.handle, hr.float32)
    step = hr.get_session_handle(kept + 1.0)
    for _ in range(5):
        handle = session.run(step, {holder: handle.handle})
    assert handle.eval().tolist() == [5, 6]


def test_handles_stand_for_values_of_feeds(session):
    x = hr.placeholder(hr.float32, [2])
    handle = session.run(hr.get_session_handle(hr.constant([1.0, 2.0])))
    assert session.run(x * 2, {x: handle}).tolist() == [2, 4]
    assert session.run(x, {x: handle}).tolist() == [1, 2]


def test_structures_hold_handles(session):
    c = hr.constant(2.0)
    found = session.run({"a": hr.get_session_handle(c), "b": [c, hr.get_session_handle(c * 2)]})
    assert (found["a"].eval(), found["b"][0], found["b"][1].eval()) == (2, 2, 4)


def test_strings_are_kept(session):
    handle = session.run(hr.get_session_handle(hr.constant(["a", "b"])))
    scalar = session.run(hr.get_session_handle(hr.constant("c")))
    assert handle.eval().tolist() == [b"a", b"b"]
    assert scalar.eval() == b"c"


def test_what_is_kept_belongs_to_nobody_else(session):
    x = hr.placeholder(hr.float32, [2])
    fed = np.array([1, 2], np.float32)
    handle = session.run(hr.get_session_handle(x), {x: fed})
    fed[:] = 0
    first = handle.eval()
    first[:] = 7
    assert handle.eval().tolist() == [1, 2]


def test_deleted_tensors_are_gone(session):
    handle = session.run(hr.get_session_handle(hr.constant(1.0)))
    handle.delete()
    for use in (handle.eval, handle.delete):
        with pytest.raises(DTypeError, match="may have been deleted"):
            use()


def test_raw_handles_are_kept_until_they_are_deleted(session):
    raw = session.run(hr.get_session_handle(hr.constant(1.0))).get_raw_handle()
    gc.collect()
    holder, kept = hr.get_session_tensor(raw, hr.float32)
    assert session.run(kept, {holder: raw}) == 1
    deleted, delete = hr.delete_session_tensor(raw)
    session.run(delete, {deleted: raw})
    with pytest.raises(InvalidArgumentError, match=r"keeps no tensor 'GetSessionHandle;0;"):
        session.run(kept, {holder: raw})


def test_tensors_whose_handles_nobody_has_are_let_go(session):
    keep = hr.get_session_handle(hr.constant(1.0))
    dropped = str(session.run(keep))
    gc.collect()
    session.run(keep)
    holder, kept = hr.get_session_tensor(dropped, hr.float32)
    with pytest.raises(InvalidArgumentError, match="keeps no tensor"):
        session.run(kept, {holder: dropped})


def test_sessions_keep_their_own(session):
    handle = session.run(hr.get_session_handle(hr.constant(1.0)))
    holder, kept = hr.get_session_tensor(handle.handle, hr.float32)
    with (
        hr.Session(graph=session.graph) as other,
        pytest.raises(InvalidArgumentError, match="belongs to another session or device"),
    ):
        other.run(kept, {holder: handle.handle})


def test_what_is_no_handle_is_refused(session):
    for value in (3.0, hr.Variable(1.0)):
        with pytest.raises(DTypeError, match="get_session_handle keeps a tensor of the graph"):
            hr.get_session_handle(value)
    for function in (lambda h: hr.get_session_tensor(h, hr.float32), hr.delete_session_tensor):
        with pytest.raises(AttributeValueError, match="a handle is the string of what a session"):
            function("nothing")
    handle = session.run(hr.get_session_handle(hr.constant(1.0)))
    holder, kept = hr.get_session_tensor(handle.handle, hr.int32)
    with pytest.raises(DTypeError, match="is float32, expected int32"):
        session.run(kept, {holder: handle.handle})
    for given in (hr.constant(["a"]), hr.placeholder_with_default(["a"], None)):
        with pytest.raises(ShapeError, match=r"a handle is one string, got shape \[1\]"):
            session.run(call_op("GetSessionTensor", given, dtype=hr.int32))


def test_a_session_that_nobody_has_is_collected_at_once():
    opened = hr.Session(graph=hr.Graph())
    alive = weakref.ref(opened)
    enabled = gc.isenabled()
    gc.disable()
    try:
        del opened
        assert alive() is None
    finally:
        if enabled:
            gc.enable()
