"""Sessions on the mini backend: fetches, feeds, errors, and many threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    MAX_LINES,
    ConfigError,
    ExecutionError,
    FeedError,
    FetchError,
    GraphError,
    NoKernelError,
    NotFoundError,
    PluginError,
    ResourceExhaustedError,
    SessionClosedError,
    TargetError,
    UninitializedError,
)
from headrace.ops.queue import fifo_queue
from headrace.session.running import owned

pytestmark = pytest.mark.usefixtures("mini")


class Pair(NamedTuple):
    left: object
    right: object


def test_fetch_structures():
    x = hr.constant([1.0, 2.0], name="x")
    y = x + 1.0
    nothing = hr.no_op(name="nothing")
    with hr.Session() as sess:
        result = sess.run({"a": [x, (y, nothing)], "b": Pair(x, "x:0"), "c": {}, "d": []})
    assert result["a"][1][1] is None
    np.testing.assert_array_equal(result["a"][1][0], [2.0, 3.0])
    assert isinstance(result["b"], Pair)
    np.testing.assert_array_equal(result["b"].right, [1.0, 2.0])
    assert (result["c"], result["d"]) == ({}, [])


def test_ordered_dicts_stay_ordered_dicts():
    with hr.Session() as sess:
        result = sess.run(OrderedDict(b=hr.constant(1.0), a=hr.constant(2.0)))
    assert result == OrderedDict(b=1.0, a=2.0)
    assert type(result) is OrderedDict


class Odd:
    """No tensor, and always of the same name."""

    def __repr__(self):
        return "odd"


@pytest.mark.parametrize(
    "bad", [None, 3.0, Odd(), "missing:0", "missing", [None], np.zeros(2), {"a": 1}], ids=repr
)
def test_bad_fetches(bad):
    with hr.Session() as sess, pytest.raises(FetchError, match="cannot fetch"):
        sess.run(bad)


def test_handles_are_neither_fetched_nor_fed():
    handle = fifo_queue(1, (hr.float32,), (hr.TensorShape([]),), "", "queue")
    with hr.Session() as sess:
        with pytest.raises(FetchError, match="a handle has no value"):
            sess.run(handle)
        with pytest.raises(FeedError, match="a handle has no value"):
            sess.run(hr.constant(1.0), {handle: 1.0})


def test_a_variable_and_its_name_stand_for_its_value():
    v = hr.Variable(1.5, name="v")
    total = v * 2 + v.value()
    with hr.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(["v:0", v, v.handle, total]) == [1.5, 1.5, 1.5, 4.5]
        for key in (v, "v:0", v.handle):
            assert sess.run([total, v], {key: 2}) == [6.0, 2.0]
        assert sess.make_callable(total, [v])(1) == 3.0
        assert sess.run(total) == 4.5


def test_a_fed_variable_is_only_read():
    v = hr.Variable([1.0, 2.0], name="v")
    with hr.Session() as sess:
        sess.run(v.initializer)
        with pytest.raises(FeedError, match=r"(?s)'v:0'.*AssignAdd.*assign to the variable.*test_"):
            sess.run(v.assign_add([1.0, 1.0]), {v: [0.0, 0.0]})
        with pytest.raises(FeedError, match=r"shape \[3\] for 'v/read:0'"):
            sess.run(v, {v: [1.0, 2.0, 3.0]})
        with hr.Graph().as_default():
            other = hr.Variable(1.0)
        with pytest.raises(FeedError, match="no variable of the session's graph"):
            sess.run(v, {other: 1.0})
        np.testing.assert_array_equal(sess.run(v), [1.0, 2.0])


def test_scalars_come_as_numpy_scalars():
    with hr.Session() as sess:
        value = sess.run(hr.constant(2.0) * 3.0)
    assert isinstance(value, np.float32)
    assert value == 6.0


def test_any_tensor_can_be_fed():
    x = hr.placeholder(hr.float32, [2], name="x")
    y = x * 2.0
    z = y + 1.0
    with hr.Session() as sess:
        np.testing.assert_array_equal(sess.run(z, {y: [5, 6]}), [6, 7])
        np.testing.assert_array_equal(sess.run(z, {"mul:0": [5, 6]}), [6, 7])
        np.testing.assert_array_equal(sess.run([y, z], {y: [5, 6]})[0], [5, 6])


def test_feeding_cuts_off_what_is_upstream():
    v = hr.Variable(0.0)
    with hr.control_dependencies([hr.assign_add(v, 1.0)]):
        y = hr.identity(hr.constant(1.0))
    z = y * 2.0
    with hr.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(z, {y: 4.0}) == 8.0
        assert sess.run(v) == 0.0
        sess.run(z)
        assert sess.run(v) == 1.0


def test_a_fed_constant_changes_what_was_concluded_from_it():
    c = hr.constant([2, 3])
    part, same = c[0:1], hr.identity(c)
    shaped = hr.reshape(hr.constant(np.arange(6.0)), same)
    with hr.Session() as session:
        assert session.run([part, same], {c: [3, 2]})[0].tolist() == [3]
        assert session.run(same, {c: [3, 2]}).tolist() == [3, 2]
        assert session.run(shaped, {c: [3, 2]}).shape == (3, 2)
        assert session.run(shaped).shape == (2, 3)


def test_missing_feeds_are_all_named():
    a = hr.placeholder(hr.float32, [2], name="a")
    b = hr.placeholder(hr.float32, [None], name="b")
    with hr.Session() as sess, pytest.raises(FeedError, match="a value must be fed") as caught:
        sess.run(a + b)
    assert "a:0 float32[2] at" in str(caught.value)
    assert "b:0 float32[?]" in str(caught.value)
    assert "test_session.py" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.zeros((3,), "f"), r"shape \[3\] for 'x:0', which has shape \[\?, 2\]"),
        (np.zeros((1, 3), "f"), r"shape \[1, 3\]"),
        ("text", "is not of dtype float32"),
        ([[1, 2], [3]], "ragged"),
        (np.full((1, 2), 1j, "c8"), "is complex64, expected float32"),
        (None, "converts to no tensor"),
    ],
)
def test_bad_feed_values(value, match):
    x = hr.placeholder(hr.float32, [None, 2], name="x")
    with hr.Session() as sess, pytest.raises(FeedError, match=match) as caught:
        sess.run(x, {x: value})
    assert len(str(caught.value).splitlines()) <= MAX_LINES


def test_fractions_do_not_become_integers():
    x = hr.placeholder(hr.int32, [])
    with hr.Session() as sess:
        assert sess.run(x, {x: np.int64(5)}) == 5
        with pytest.raises(FeedError, match="expected int32"):
            sess.run(x, {x: 1.5})
        with pytest.raises(FeedError, match="does not fit int32"):
            sess.run(x, {x: 2**40})


def test_tensors_are_not_values():
    x = hr.placeholder(hr.float32, [])
    with hr.Session() as sess, pytest.raises(FeedError, match="feeds are values"):
        sess.run(x, {x: hr.constant(1.0)})


def test_foreign_feeds_and_fetches():
    with hr.Graph().as_default():
        foreign = hr.constant(1.0)
    x = hr.constant(1.0)
    with hr.Session() as sess:
        with pytest.raises(FetchError, match="belongs to another graph"):
            sess.run(foreign)
        with pytest.raises(FeedError, match="belongs to another graph"):
            sess.run(x, {foreign: 1.0})
        with pytest.raises(FeedError, match="only tensors have values"):
            sess.run(x, {hr.no_op(): 1.0})
        with pytest.raises(FeedError, match="is fed twice"):
            sess.run(x, {x: 1.0, x.name: 2.0})


def test_feeds_are_bound_without_a_copy_and_never_aliased():
    x = hr.placeholder(hr.float32, [3])
    fed = np.arange(3, dtype=np.float32)
    v = hr.Variable(np.zeros(3, "f"))
    with hr.Session() as sess:
        sess.run(v.initializer)
        sess.run(hr.assign(v, x), {x: fed})
        same = sess.run(x, {x: fed})
        fed[:] = 7
        np.testing.assert_array_equal(sess.run(v), [0, 1, 2])
        np.testing.assert_array_equal(same, [0, 1, 2])


def test_callers_own_what_they_fetch():
    v = hr.Variable([1.0, 2.0])
    c = hr.constant([1.0, 2.0])
    with hr.Session() as sess:
        sess.run(v.initializer)
        for fetch in (v, c, hr.identity(v), hr.reshape(c, [2, 1])):
            sess.run(fetch)[:] = 9
        np.testing.assert_array_equal(sess.run(v), [1, 2])
        np.testing.assert_array_equal(sess.run(c), [1, 2])


def test_uninitialized_variables_are_all_named():
    a = hr.Variable(1.0, name="a")
    b = hr.Variable(1.0, name="b")
    c = hr.Variable(1.0, name="c")
    total = a + b + c
    with hr.Session() as sess:
        sess.run(b.initializer)
        with pytest.raises(UninitializedError, match="2 variables are not initialized: a, c") as e:
            sess.run(total)
        assert "global_variables_initializer" in str(e.value)
        assert "test_session.py" in str(e.value)
        sess.run(hr.global_variables_initializer())
        assert sess.run(total) == 3.0


def test_reads_see_what_control_edges_order():
    v = hr.Variable(1.0)
    with hr.control_dependencies([hr.assign(v, 5.0)]):
        after = v + 0.0
    with hr.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(after) == 5.0


def test_concurrent_steps_count_exactly():
    v = hr.Variable(0)
    add = hr.assign_add(v, 1)
    with hr.Session() as sess:
        sess.run(v.initializer)
        threads = [
            threading.Thread(target=lambda: [sess.run(add) for _ in range(1000)]) for _ in range(8)
        ]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert sess.run(v) == 8000


def test_sessions_keep_their_own_variables():
    v = hr.Variable(1.0)
    first, second = hr.Session(), hr.Session()
    first.run(v.initializer)
    with pytest.raises(UninitializedError, match="not initialized"):
        second.run(v)
    first.close()
    second.close()


def test_named_containers_are_shared_and_reset():
    with hr.container("shared_box"):
        v = hr.Variable(1.0, name="boxed")
    with hr.Session() as first, hr.Session() as second:
        first.run(v.initializer)
        first.run(hr.assign_add(v, 1.0))
        assert second.run(v) == 2.0
    with hr.Session() as third:
        assert third.run(v) == 2.0
        hr.reset_containers("shared_box")
        with pytest.raises(UninitializedError, match="boxed"):
            third.run(v)


def test_make_callable():
    x = hr.placeholder(hr.float32, [])
    y = hr.placeholder(hr.float32, [])
    with hr.Session() as sess:
        f = sess.make_callable({"sum": x + y}, [x, y])
        assert f(1, 2)["sum"] == 3.0
        with pytest.raises(
            FeedError, match="expected 2 values, for Placeholder:0, Placeholder_1:0"
        ):
            f(1)
    with pytest.raises(SessionClosedError, match="was closed"):
        f(1, 2)


def test_a_repeated_step_is_prepared_once(monkeypatch):
    from headrace.session import planner as module

    calls = []
    original = module.step_graph
    monkeypatch.setattr(module, "step_graph", lambda *a: calls.append(1) or original(*a))
    x = hr.placeholder(hr.float32, [None])
    y = x + 1.0
    with hr.Session() as sess:
        for n in range(5):
            sess.run([y], {x: np.zeros(n, "f")})
        sess.run(y, {x: [1.0]})
        _ = y * 2.0
        sess.run([y], {x: [1.0]})
    assert len(calls) == 2


def test_graph_grows_after_the_first_run():
    x = hr.constant(1.0)
    with hr.Session() as sess:
        assert sess.run(x) == 1.0
        assert sess.run(x + 1.0) == 2.0


def test_closed_session():
    x = hr.constant(1.0)
    sess = hr.Session()
    sess.run(x)
    sess.close()
    sess.close()
    assert sess.closed
    with pytest.raises(SessionClosedError, match="open a new one"):
        sess.run(x)


def test_default_session():
    x = hr.constant(2.0)
    v = hr.Variable(3.0)
    with pytest.raises(GraphError, match="there is no default session"):
        x.eval()
    with hr.Session() as sess:
        assert hr.get_default_session() is sess
        v.initializer.run()
        assert x.eval() * v.eval() == 6.0
    assert hr.get_default_session() is None


def test_kernel_failure_names_node_inputs_and_line():
    x = hr.placeholder(hr.float32, [None], name="x")
    y = hr.reshape(x, [2, 2], name="square")
    with hr.Session() as sess:
        with pytest.raises(ExecutionError, match="Reshape failed: ValueError") as caught:
            sess.run(y, {x: [1.0, 2.0, 3.0]})
        text = str(caught.value)
        assert "in Reshape 'square'; inputs: float32[3]" in text
        assert "test_session.py" in text
        assert isinstance(caught.value.__cause__, ValueError)
        np.testing.assert_array_equal(sess.run(y, {x: [1, 2, 3, 4]}), [[1, 2], [3, 4]])


def test_op_without_kernel():
    x = hr.constant([1.0, 2.0])
    y = hr.exp(x, name="e")
    with (
        hr.Session() as sess,
        pytest.raises(NoKernelError, match=r"kernel for Exp\(float32\)") as e,
    ):
        sess.run(y)
    assert "tried: /job:localhost/task:0/device:cpu:0" in str(e.value)
    assert "kernels exist for: no device" in str(e.value)
    assert "test_session.py" in str(e.value)


def test_unknown_target():
    for target in ("nope", "nope://x", "grpc://x", "local"):
        with pytest.raises(
            TargetError, match=f"no plugin opens the session target '{target}'"
        ) as e:
            hr.Session(target)
        # As TensorFlow's, which has no session factory for it.
        assert isinstance(e.value, NotFoundError)
        assert isinstance(e.value, PluginError)
        assert e.value.error_code == hr.errors.NOT_FOUND


def test_config_refuses():
    with pytest.raises(ConfigError, match="executor must be 'plan' or 'plain', got 'fast'"):
        hr.Config(executor="fast")


def test_close_ends_a_waiting_step(gates):
    from headrace.ops.queue import fifo_queue, queue_dequeue

    queue = fifo_queue(1, (hr.float32,), (hr.Shape([]),), "", "stuck")
    taken = queue_dequeue(queue, (hr.float32,), (hr.Shape([]),))
    sess = hr.Session()
    caught = []

    def wait():
        try:
            sess.run(taken)
        except SessionClosedError as error:
            caught.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while "stuck" not in gates:
        pass
    sess.close()
    thread.join(10)
    gates["stuck"].set()
    assert not thread.is_alive()
    assert len(caught) == 1


def test_waiting_nodes_hold_up_nothing_else(gates):
    from headrace.ops.queue import fifo_queue, queue_dequeue

    queue = fifo_queue(1, (hr.float32,), (hr.Shape([]),), "", "slow")
    taken = queue_dequeue(queue, (hr.float32,), (hr.Shape([]),))[0]
    v = hr.Variable(0.0)
    independent = hr.assign_add(v, 1.0)
    with hr.Session() as sess:
        sess.run(v.initializer)
        results = []
        thread = threading.Thread(target=lambda: results.append(sess.run([taken, independent])))
        thread.start()
        while sess.run(v) != 1.0:
            pass
        assert not results
        gates["slow"].set()
        thread.join(10)
    assert results == [[7.0, 1.0]]


def test_a_value_too_large_to_copy_is_told_so():
    huge = np.broadcast_to(np.float32(1), (1 << 45,))
    with pytest.raises(ResourceExhaustedError, match="the memory has no room for a copy of"):
        owned(huge, [], hr.constant(1.0))


def test_tuples_of_tensors_are_fed_tuples():
    x, y, z = hr.zeros([2]), hr.zeros([2]), hr.zeros([])
    v = hr.Variable([1.0, 1.0])
    key = (((x,),), y, (z, v))
    with hr.Session() as session:
        values = ((([1.0, 2.0],),), np.ones(2), [3.0, [5.0, 6.0]])
        found = session.run([x * 2.0, y, z, v + 1.0], {key: values})
        assert [f.tolist() for f in found] == [[2.0, 4.0], [1.0, 1.0], 3.0, [6.0, 7.0]]
        for wrong in (1.0, [[[1.0, 2.0]], [1.0, 2.0]], ([[1.0, 2.0]], [1.0, 2.0], [3.0])):
            with pytest.raises(FeedError, match=r"the values of a tuple of \d tensors? come"):
                session.run(y, {key: wrong})
        with pytest.raises(FeedError, match="is fed twice"):
            session.run(y, {(x, x): ([1.0, 2.0], [1.0, 2.0])})
        with pytest.raises(FeedError, match="the step uses the variable itself"):
            session.run(v.assign_add([1.0, 1.0]), {(x, v): ([1.0, 2.0], [1.0, 2.0])})


def test_a_sparse_placeholder_of_known_shape_is_fed_without_it():
    known, open_ = hr.sparse_placeholder(hr.float32, [7, 9]), hr.sparse_placeholder(hr.float32)
    with hr.Session() as session:
        found = session.run(known, {known: ([[3, 2]], [1.0])})
        assert found.dense_shape.tolist() == [7, 9]
        assert session.run(known, {known: ([[3, 2]], [1.0], [7, 9])}).values.tolist() == [1.0]
        with pytest.raises(FeedError, match="feed a SparseTensorValue, or a tuple of indices"):
            session.run(open_, {open_: ([[3, 2]], [1.0])})


def test_the_block_of_a_session_is_entered_once_at_a_time():
    session = hr.Session()
    with session:
        with session.as_default(), pytest.raises(RuntimeError, match="the session's block is open"):
            session.__enter__()
        assert hr.get_default_session() is session
        session.run(hr.constant(1.0))
    with pytest.raises(SessionClosedError, match="was closed"):
        session.run(hr.constant(1.0))
