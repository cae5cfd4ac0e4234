"""Variables: their names and lists, and all the ways to change them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ExecutionError,
    FeedError,
    GraphError,
    OutOfRangeError,
    ShapeError,
    UninitializedError,
)

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.fixture
def session(graph: hr.Graph) -> Any:
    with hr.Session() as opened:
        yield opened


def initialized(session: hr.Session) -> None:
    session.run([hr.global_variables_initializer(), hr.local_variables_initializer()])


# -- names and lists


def test_names_are_those_of_tensorflow() -> None:
    v = hr.Variable([1.0], name="v")
    made = hr.Variable(lambda: hr.zeros([2]), name="made")
    with hr.name_scope("scope"):
        inner = hr.Variable(1, name="v")
    again = hr.Variable(2.0, name="v")
    assert (v.op.name, v.name, v.initializer.name) == ("v", "v:0", "v/Assign")
    assert v.initial_value.name == "v/initial_value:0"
    assert made.initial_value.name.startswith("made/Initializer/")
    assert (inner.op.name, again.op.name) == ("scope/v", "v_1")
    assert hr.Variable(1.0).op.name == "Variable"


def test_variables_are_listed_in_collections() -> None:
    weight = hr.Variable(1.0, name="weight")
    step = hr.Variable(0, name="step", trainable=False)
    count = hr.Variable(
        0, name="count", trainable=False, collections=[hr.GraphKeys.LOCAL_VARIABLES]
    )
    own = hr.Variable(0.0, name="own", collections=["mine"])
    assert hr.global_variables() == [weight, step]
    assert hr.global_variables("st") == [step]
    assert hr.trainable_variables() == [weight, own]
    assert hr.local_variables() == [count]
    assert hr.get_collection("mine") == [own]
    assert hr.get_collection("mine", "other") == []
    assert hr.model_variables() == hr.moving_average_variables() == []


def test_collections_hold_anything(graph: hr.Graph) -> None:
    hr.add_to_collection("x", 1)
    hr.add_to_collection("x", 1)
    hr.add_to_collections(["x", "y"], 2)
    hr.get_collection_ref("y").append(3)
    assert hr.get_collection("x") == [1, 1, 2]
    assert hr.get_collection("y") == [2, 3]
    assert hr.get_collection("z") == []
    assert graph.get_all_collection_keys() == ["x", "y"]
    graph.clear_collection("x")
    assert hr.get_collection("x") == []


def test_a_document_keeps_names_and_collections(graph: hr.Graph) -> None:
    hr.Variable(1.0, name="weight")
    hr.Variable(0, name="count", trainable=False, collections=["local_variables"])
    with hr.Graph.from_document(graph.to_document()).as_default():
        assert [v.op.name for v in hr.global_variables()] == ["weight"]
        assert [v.op.name for v in hr.trainable_variables()] == ["weight"]
        assert [v.op.name for v in hr.local_variables()] == ["count"]


# -- initial values


def test_which_variables_have_no_value_is_reported(session: hr.Session) -> None:
    a, b = hr.Variable(1.0, name="a"), hr.Variable(2.0, name="b")
    hr.Variable(0, name="c", collections=[hr.GraphKeys.LOCAL_VARIABLES], trainable=False)
    everything, some = hr.report_uninitialized_variables(), hr.report_uninitialized_variables([b])
    has_value = hr.is_variable_initialized(a)
    assert session.run(everything).tolist() == [b"a", b"b", b"c"]
    assert not session.run(has_value)
    session.run(a.initializer)
    assert session.run(everything).tolist() == [b"b", b"c"]
    assert session.run(some).tolist() == [b"b"]
    assert session.run(has_value)
    check = hr.assert_variables_initialized()
    with pytest.raises(UninitializedError, match="b"):
        session.run(check)
    initialized(session)
    assert session.run(check).tolist() == [0, 0, 0]
    assert hr.assert_variables_initialized([b]).op.name == "Rank_3"
    assert session.run(everything).tolist() == []
    assert session.run(hr.report_uninitialized_variables([])).tolist() == []
    assert hr.assert_variables_initialized([]) is None


def test_initialized_values_are_right_in_any_order(session: hr.Session) -> None:
    a = hr.Variable(hr.random_normal([]), name="a")
    b = hr.Variable(a.initialized_value() * 3.0, name="b")
    initialized(session)
    first, second = session.run([a, b])
    assert second == pytest.approx(3 * first)
    session.run(a.assign(5.0))
    session.run(b.initializer)
    assert session.run(b) == 15.0


def test_initial_values_are_right_in_any_order(session: hr.Session) -> None:
    a = hr.Variable(hr.random_normal([2]), name="a")
    b = hr.Variable(a * 3.0, name="b")
    c = hr.Variable(lambda: hr.reduce_sum(b + a), name="c")
    local = hr.get_local_variable("local", initializer=c)
    session.run(local.initializer)
    assert not session.run(hr.is_variable_initialized(a))
    initialized(session)
    first, second, third, last = session.run([a, b, c, local])
    assert second == pytest.approx(3 * first)
    assert third == pytest.approx(4 * first.sum())
    assert last == third
    session.run(a.assign([1.0, 2.0]))
    session.run(b.initializer)
    assert session.run(b).tolist() == [3.0, 6.0]
    assert b.initial_value.name == "mul:0"


def test_an_initial_value_of_its_own_is_not_copied(graph: hr.Graph) -> None:
    v = hr.Variable(hr.random_normal([]) + 1.0, name="v")
    assert v.initializer.inputs[1] is v.initial_value
    before = len(graph)
    w = hr.Variable(v.initialized_value() * 2.0, name="w")
    assert w.initializer.inputs[1] is w.initial_value
    assert [op.type for op in graph.operations[before:]].count("If") == 1


def test_the_tensor_of_a_variables_name_is_the_variable(session: hr.Session) -> None:
    v = hr.Variable([1.0, 2.0], name="v")
    found = session.graph.get_tensor_by_name(v.name)
    assert found.shape == found.get_shape() == v.shape == [2]
    initialized(session)
    assert session.run(found + hr.convert_to_tensor(found)).tolist() == [2.0, 4.0]
    assert session.run(hr.assign(found, [3.0, 4.0])).tolist() == [3.0, 4.0]
    for same in (hr.identity(found), hr.stop_gradient(found), hr.identity_n([found])[0]):
        assert session.run(same).tolist() == [3.0, 4.0]
    assert session.run(hr.convert_to_tensor([found, found])).tolist() == [[3.0, 4.0]] * 2
    assert hr.convert_to_tensor(found, hr.resource) is found
    with pytest.raises(DTypeError, match=r"dtype float32, expected int32"):
        hr.convert_to_tensor(found, hr.int32)
    queue = hr.FIFOQueue(1, [hr.float32])
    with pytest.raises(DTypeError, match="got resource"):
        hr.add(queue.queue_ref, 1.0)
    with pytest.raises(GraphError, match="expected a Variable to assign to"):
        hr.assign(queue.queue_ref, 1.0)


def test_loading_sets_the_value(session: hr.Session) -> None:
    v = hr.Variable([1.0, 2.0])
    v.load([3.0, 4.0], session)
    assert v.eval(session).tolist() == [3.0, 4.0]
    with pytest.raises(FeedError, match="shape"):
        v.load([1.0], session)
    with session.as_default():
        v.load([5.0, 6.0])
    assert v.eval(session).tolist() == [5.0, 6.0]


def test_shapes_may_be_known_in_part(session: hr.Session) -> None:
    source = hr.placeholder(hr.float32, [None, 2])
    v = hr.Variable(source, use_resource=True)
    assert v.shape.as_list() == [None, 2]
    session.run(v.initializer, {source: np.ones((3, 2))})
    assert session.run(v.assign(np.zeros((1, 2), "f"))).shape == (1, 2)
    with pytest.raises(ShapeError, match="shape"):
        v.assign(np.zeros((1, 3), "f"))


def test_initial_values_have_known_shapes_unless_all_are_allowed() -> None:
    def start() -> hr.Tensor:
        return hr.placeholder(hr.float32, [None, 2])

    with pytest.raises(ShapeError, match=r"must have a known shape, got \[\?, 2\]; give validate"):
        hr.Variable(start())
    with pytest.raises(ShapeError, match="must have a known shape"):
        hr.get_variable("v", initializer=hr.placeholder(hr.float32))
    loose = hr.Variable(start(), validate_shape=False)
    assert loose.shape.rank is None
    with hr.variable_scope("s", use_resource=True):
        kept = hr.get_variable("v", initializer=start())
    stated = hr.Variable(start(), shape=[None, None])
    assert [kept.shape.as_list(), stated.shape.as_list()] == [[None, 2], [None, None]]
    assert hr.assign(loose, start(), validate_shape=False).shape.as_list() == [None, 2]


def test_shapes_of_variables_are_stated() -> None:
    v = hr.Variable([[1.0], [2.0]], validate_shape=False)
    v.set_shape([None, 1])
    v.set_shape([2, None])
    assert v.shape == v.snapshot.shape == v.value().shape == v.read_value().shape == [2, 1]
    with pytest.raises(ShapeError, match=r"shapes \[2, 1\] and \[3, 1\] are incompatible"):
        v.set_shape([3, 1])


def test_reads_are_named_by_the_scope_at_hand() -> None:
    with hr.name_scope("a"):
        v = hr.Variable(1.0, name="v")
    with hr.name_scope("b"):
        assert [v.read_value().name, v.read_value().name] == ["b/read:0", "b/read_1:0"]


def test_shapes_that_are_not_validated_change(session: hr.Session) -> None:
    v = hr.Variable([1.0], validate_shape=False)
    wide = hr.Variable([1.0], shape=hr.Shape(None))
    assert v.shape.rank is None
    assert wide.shape.rank is None
    initialized(session)
    assert session.run(hr.assign(v, [1.0, 2.0], validate_shape=False)).tolist() == [1.0, 2.0]
    assert session.run(v).tolist() == [1.0, 2.0]
    assert session.run(wide.assign([[3.0]])).tolist() == [[3.0]]


def test_variables_made_in_a_branch_belong_to_the_program(session: hr.Session) -> None:
    made: list[hr.Variable] = []

    def branch() -> Any:
        made.append(hr.Variable(lambda: hr.constant(4.0), name="inside"))
        return made[0] * 2.0

    pred = hr.placeholder(hr.bool, [])
    result = hr.cond(pred, branch, lambda: hr.constant(0.0))
    assert hr.global_variables() == made
    initialized(session)
    assert session.run(result, {pred: True}) == 8.0


REFUSED: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "nothing": (lambda: hr.Variable(), DTypeError, "needs an initial_value"),
    "expected": (lambda: hr.Variable([1.0], expected_shape=[2]), ShapeError, "expected"),
    "shape": (lambda: hr.Variable([1.0], shape=[2]), ShapeError, "expected"),
    "both": (lambda: hr.Variable(1.0, variable_def=object()), AttributeValueError, "not both"),
    "proto": (lambda: hr.Variable(variable_def=object()), DTypeError, "variable_def"),
    "collection": (lambda: hr.Variable(1.0, collections="x"), AttributeValueError, "list of names"),
    "constraint": (lambda: hr.Variable(1.0, constraint=1), AttributeValueError, "a function"),
    "no_variable": (lambda: hr.assign(hr.constant(1.0), 2.0), GraphError, "expected a Variable"),
    "no_slices": (lambda: hr.Variable([1.0]).scatter_add([0]), DTypeError, "hr.IndexedSlices"),
    "scalar": (lambda: hr.scatter_add(hr.Variable(1.0), [0], [1.0]), ShapeError, "no rows"),
    "text": (lambda: hr.scatter_add(hr.Variable(["a"]), [0], ["b"]), DTypeError, "not numeric"),
    "complex": (
        lambda: hr.scatter_max(hr.Variable([1j]), [0], [2j]),
        DTypeError,
        "no order",
    ),
    "deep": (
        lambda: hr.scatter_nd_add(hr.Variable([1.0]), [[0, 0]], [1.0]),
        ShapeError,
        "indices of 2 numbers",
    ),
    "flat": (
        lambda: hr.scatter_nd_add(hr.Variable([1.0]), 0, 1.0),
        ShapeError,
        "one dimension at least",
    ),
    "updates": (
        lambda: hr.scatter_nd_update(hr.Variable([1.0]), [[0]], [1.0, 2.0]),
        ShapeError,
        "updates must have shape",
    ),
    "counter": (lambda: hr.count_up_to(hr.Variable(1.0), 3), DTypeError, "int32 or int64"),
    "counters": (lambda: hr.count_up_to(hr.Variable([1]), 3), ShapeError, "scalar"),
    "limit": (lambda: hr.count_up_to(hr.Variable(1), 2**40), AttributeValueError, "no int32"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_when_built(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


# -- changes of rows and slices


def one_by_one(change: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return an oracle that applies updates in turn."""

    def oracle(old: Any, indices: Any, updates: Any) -> Any:
        new = old.copy()
        rows = np.asarray(indices)
        values = np.broadcast_to(updates, (*rows.shape, *old.shape[1:]))
        for place in np.ndindex(*rows.shape):
            new[rows[place]] = change(new[rows[place]], values[place])
        return new

    return oracle


def quotient(x: Any, y: Any) -> Any:
    return x / y if x.dtype.kind == "f" else np.trunc(x / y).astype(x.dtype)


ROWS = {
    "update": (hr.scatter_update, one_by_one(lambda x, y: y)),
    "add": (hr.scatter_add, one_by_one(lambda x, y: x + y)),
    "sub": (hr.scatter_sub, one_by_one(lambda x, y: x - y)),
    "mul": (hr.scatter_mul, one_by_one(lambda x, y: x * y)),
    "div": (hr.scatter_div, one_by_one(quotient)),
    "min": (hr.scatter_min, one_by_one(np.minimum)),
    "max": (hr.scatter_max, one_by_one(np.maximum)),
}
START = np.array([[8, -9], [10, 7], [-12, 40]])
UPDATES: dict[str, tuple[Any, Any]] = {
    "rows": ([2, 0], [[5, 7], [2, 3]]),
    "repeated": ([1, 1, 1, 0], [[5, 3], [2, 2], [1, 4], [3, 3]]),
    "one": (1, [4, 5]),
    "matrix": ([[0], [2]], [[[3, 2]], [[7, 9]]]),
    "number": ([0, 2], 3),
    "none": (np.zeros((0,), np.int32), np.zeros((0, 2))),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "float16"])
@pytest.mark.parametrize("case", UPDATES)
@pytest.mark.parametrize("name", ROWS)
def test_scattered_rows(name: str, case: str, dtype: str, session: hr.Session) -> None:
    function, oracle = ROWS[name]
    indices, updates = UPDATES[case]
    if name == "update" and case == "repeated":
        updates = [[5, 3]] * 3 + [[3, 3]]
    old, new = START.astype(dtype), np.asarray(updates, dtype)
    v = hr.Variable(old)
    changed = function(v, indices, new)
    initialized(session)
    expected = oracle(old, indices, new)
    tolerance = 1e-2 if dtype == "float16" else 1e-6
    np.testing.assert_allclose(session.run(changed), expected, rtol=tolerance)
    np.testing.assert_allclose(session.run(v), expected, rtol=tolerance)


@pytest.mark.parametrize("name", ROWS)
def test_methods_take_slices(name: str, session: hr.Session) -> None:
    _, oracle = ROWS[name]
    v = hr.Variable(START.astype("f"))
    slices = hr.IndexedSlices([[4.0, 2.0]], [1])
    changed = getattr(v, f"scatter_{name}")(slices)
    initialized(session)
    np.testing.assert_allclose(session.run(changed), oracle(START.astype("f"), [1], [[4.0, 2.0]]))


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("name", ROWS)
def test_rows_change_in_place_unless_the_value_is_held(name: str, executor: str) -> None:
    v = hr.Variable(np.ones((5, 2), np.float32))
    change = getattr(hr, f"scatter_{name}")(v, [1, 3, 1], np.full((3, 2), 2.0, np.float32)).op
    with hr.Session(config=hr.Config(executor=executor, compile_wait=True)) as session:
        initialized(session)
        session.run(change)
        held = session.run(v)
        before = held.copy()
        where = held.ctypes.data
        session.run(change)
        np.testing.assert_array_equal(held, before)
        moved = session.run(v).ctypes.data
        assert moved != where
        session.run(change)
        assert session.run(v).ctypes.data == moved


@pytest.mark.parametrize("index", [3, -1, 2**31 - 1])
@pytest.mark.parametrize("name", ROWS)
def test_rows_that_are_not_there(name: str, index: int, session: hr.Session) -> None:
    v = hr.Variable(START.astype("f"))
    changed = ROWS[name][0](v, [0, index], np.ones((2, 2), "f"))
    initialized(session)
    with pytest.raises(ExecutionError, match=f"index {index} is out of range"):
        session.run(changed)
    np.testing.assert_array_equal(session.run(v), START)


def test_integers_are_not_divided_by_zero(session: hr.Session) -> None:
    v = hr.Variable(START)
    changed = hr.scatter_div(v, [0], [[0, 1]])
    initialized(session)
    with pytest.raises(ExecutionError, match="division by zero"):
        session.run(changed)


def test_extremes_of_special_numbers(session: hr.Session) -> None:
    v = hr.Variable([np.inf, -np.inf, 1.0])
    low, high = hr.scatter_min(v, [0], [np.inf]), hr.scatter_max(v, [1, 2], [-np.inf, np.nan])
    initialized(session)
    np.testing.assert_array_equal(session.run(low), [np.inf, -np.inf, 1.0])
    np.testing.assert_array_equal(session.run(high), [np.inf, -np.inf, np.nan])


SLICES: dict[str, tuple[Any, Any]] = {
    "elements": ([[0, 1], [2, 0]], [5.0, 6.0]),
    "rows": ([[1], [2]], [[1.0, 2.0], [3.0, 4.0]]),
    "repeated": ([[0, 1], [0, 1]], [5.0, 5.0]),
    "deep": ([[[0, 1]], [[1, 1]]], [[5.0], [6.0]]),
    "whole": (np.zeros((1, 0), np.int32), np.ones((1, 3, 2))),
    "none": (np.zeros((0, 2), np.int32), np.zeros((0,))),
}


@pytest.mark.parametrize("case", SLICES)
@pytest.mark.parametrize("name", ["update", "add", "sub"])
def test_scattered_slices(name: str, case: str, session: hr.Session) -> None:
    indices, updates = SLICES[case]
    old = np.arange(6.0).reshape(3, 2)
    expected = old.copy()
    for place in np.ndindex(*np.shape(indices)[:-1]):
        at = tuple(np.asarray(indices)[place])
        value = np.asarray(updates)[place]
        sign = -1.0 if name == "sub" else 1.0
        expected[at] = value if name == "update" else expected[at] + sign * value
    v = hr.Variable(old)
    changed = getattr(hr, f"scatter_nd_{name}")(v, indices, np.asarray(updates, np.float64))
    by_method = getattr(v, f"scatter_nd_{name}")(indices, np.asarray(updates, np.float64))
    initialized(session)
    np.testing.assert_allclose(session.run(changed), expected)
    initialized(session)
    np.testing.assert_allclose(session.run(by_method), expected)


def test_rows_of_each_part_of_a_batch(session: hr.Session) -> None:
    v = hr.Variable(np.zeros((2, 3, 2)))
    changed = hr.batch_scatter_update(v, [[0, 2], [1, 0]], np.arange(8.0).reshape(2, 2, 2))
    initialized(session)
    expected = np.zeros((2, 3, 2))
    expected[0, [0, 2]] = [[0, 1], [2, 3]]
    expected[1, [1, 0]] = [[4, 5], [6, 7]]
    np.testing.assert_array_equal(session.run(changed), expected)
    assert session.run(v.gather_nd([[1, 1]])).tolist() == [[4.0, 5.0]]
    with pytest.raises(ShapeError, match="known number of dimensions"):
        hr.batch_scatter_update(v, 0, 1.0)


def test_slices_that_are_not_there(session: hr.Session) -> None:
    v = hr.Variable(np.zeros((3, 2)))
    indices = hr.placeholder(hr.int64, [None, None])
    updates = hr.placeholder(hr.float64)
    changed = hr.scatter_nd_add(v, indices, updates)
    initialized(session)
    with pytest.raises(ExecutionError, match="index 2 is out of range"):
        session.run(changed, {indices: [[0, 2]], updates: [1.0]})
    with pytest.raises(ExecutionError, match="do not index"):
        session.run(changed, {indices: [[0, 0, 0]], updates: [1.0]})


def test_counting_ends_at_the_limit(session: hr.Session) -> None:
    v = hr.Variable(0)
    count = v.count_up_to(2)
    initialized(session)
    assert [session.run(count), session.run(count)] == [0, 1]
    with pytest.raises(OutOfRangeError, match="reached its limit 2"):
        session.run(count)
    assert session.run(v) == 2


def test_writes_yield_values_or_operations(session: hr.Session) -> None:
    v = hr.Variable([1.0])
    assert isinstance(v.assign_add([1.0], read_value=False), hr.Operation)
    assert v.assign([2.0], True, "here").op.name == "here"
    total = v.assign_add([1.0], use_locking=True)
    initialized(session)
    assert session.run([total, hr.assign_sub(v, [0.0])])[0].tolist() == [2.0]
    assert session.run(v.sparse_read([0, 0])).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("executor", ["plan", "plain"])
def test_what_changes_return_stands_for_the_variable_after_them(executor: str) -> None:
    v = hr.Variable([1.0, 2.0, 3.0])
    changed = v[1:].assign([5.0, 6.0]).assign_add([1.0, 1.0, 1.0])
    last = hr.scatter_sub(changed, [0], [0.5]).assign_sub([1.0, 0.0, 0.0])
    twice = v.assign([1.0, 1.0, 1.0]).assign([2.0, 2.0, 2.0]).read_value()
    with hr.Session(config=hr.Config(executor=executor, compile_after=0)) as session:
        session.run(v.initializer)
        assert session.run(last).tolist() == [0.5, 6.0, 7.0]
        assert session.run(v).tolist() == [0.5, 6.0, 7.0]
        assert session.run(twice).tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.read_value(),
        lambda x: x.assign_add(1.0),
        lambda x: x.assign_sub(1.0),
        lambda x: x.assign(1.0),
        lambda x: hr.assign_add(x, 1.0),
    ],
    ids=["read", "add", "subtract", "assign", "function"],
)
def test_other_tensors_stand_for_no_variable(change: Callable[[hr.Tensor], hr.Tensor]) -> None:
    v = hr.Variable(1.0)
    for x in (hr.constant(1.0), v + 1.0, v.value(), hr.Variable(1).count_up_to(3)):
        with pytest.raises(GraphError, match="expected a Variable to assign to"):
            change(x)
