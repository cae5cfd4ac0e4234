"""Conditions: what is taken runs, and nothing else does."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    DTypeError,
    ExecutionError,
    FeedError,
    FetchError,
    GraphError,
    ShapeError,
    UninitializedError,
)
from tests.steps import run_ready

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

Pair = namedtuple("Pair", ["a", "b"])  # noqa: PYI024 - as users write them


@pytest.fixture
def x():
    return hr.placeholder(hr.float32, [], name="x")


def both(made, x):
    """Return what comes out where x > 0, and where it is not."""
    return run_ready(made, {x: 2.0}), run_ready(made, {x: -2.0})


@pytest.mark.parametrize(
    ("true_fn", "false_fn", "expected"),
    [
        (lambda x: x * 2, lambda x: x - 1, (4.0, -3.0)),
        (lambda x: [x], lambda x: [x + 1], (2.0, -1.0)),
        (lambda x: [x], lambda x: x + 1, (2.0, -1.0)),
        (lambda x: [[x]], lambda x: ([x + 1],), (2.0, -1.0)),
        (lambda x: (x, 1), lambda x: (x, 2), ((2.0, 1), (-2.0, 2))),
        (lambda x: {"k": x}, lambda x: {"k": -x}, ({"k": 2.0}, {"k": 2.0})),
        (lambda x: Pair(x, [x]), lambda x: Pair(-x, [x]), (Pair(2.0, [2.0]), Pair(2.0, [-2.0]))),
        (lambda x: 1.0, lambda x: 2.0, (1.0, 2.0)),
        (lambda x: hr.constant("y"), lambda x: "n", (b"y", b"n")),
    ],
    ids=[
        "tensor",
        "single list",
        "single list and tensor",
        "single lists in lists",
        "tuple",
        "dict",
        "named tuple",
        "constants",
        "strings",
    ],
)
def test_values_and_structures(x, true_fn, false_fn, expected):
    made = hr.cond(x > 0, lambda: true_fn(x), lambda: false_fn(x))
    assert both(made, x) == expected


def test_strict_keeps_lists_of_one(x):
    assert isinstance(hr.cond(x > 0, lambda: [x], lambda: [x], strict=True), list)


def test_only_the_branch_taken_runs(x):
    count = hr.Variable(0)

    def counting():
        with hr.control_dependencies([count.assign_add(1)]):
            return hr.constant(1.0)

    made = hr.cond(x > 0, counting, lambda: hr.constant(0.0))
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(made, {x: -1.0})
        assert session.run(count) == 0
        session.run(made, {x: 1.0})
        assert session.run(count) == 1


def test_operations_as_results_run(x):
    v = hr.Variable(1)
    made = hr.cond(x > 0, lambda: v.assign(5).op, lambda: hr.no_op())
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(made, {x: -1.0})
        assert session.run(v) == 1
        session.run(made, {x: 1.0})
        assert session.run(v) == 5


def test_a_read_in_the_branch_that_is_not_taken_needs_no_value():
    v = hr.Variable(7.0)
    made = hr.cond(v.is_initialized(), lambda: v.value(), lambda: hr.constant(0.0))
    with hr.Session() as session:
        assert session.run(made) == 0.0
        session.run(v.initializer)
        assert session.run(made) == 7.0


def test_what_is_built_outside_runs_in_any_case(x):
    v = hr.Variable(3.0)
    outside = v.value()
    made = hr.cond(x > 0, lambda: outside, lambda: x)
    with hr.Session() as session, pytest.raises(UninitializedError, match="not initialized"):
        session.run(made, {x: -1.0})


def test_control_dependencies_on_operations_outside(x):
    v = hr.Variable(1.0)
    write = v.assign(2.0)

    def branch():
        with hr.control_dependencies([write]):
            return v.value()

    made = hr.cond(x > 0, branch, lambda: hr.constant(0.0))
    assert run_ready(made, {x: 1.0}) == 2.0


def test_nested(x):
    made = hr.cond(
        x > 0, lambda: hr.cond(x > 1, lambda: x * 10, lambda: x), lambda: hr.constant(-1.0)
    )
    assert [run_ready(made, {x: v}) for v in (2.0, 0.5, -3.0)] == [20.0, 0.5, -1.0]


def test_shapes_are_what_both_branches_know(x):
    made = hr.cond(x > 0, lambda: hr.zeros([2, 3]), lambda: hr.zeros([2, 4]))
    assert made.shape.as_list() == [2, None]
    assert hr.cond(x > 0, lambda: hr.zeros([]), lambda: hr.zeros([1])).shape.rank is None


def test_old_argument_names(x):
    assert both(hr.cond(x > 0, fn1=lambda: x, fn2=lambda: -x), x) == (2.0, 2.0)


def test_gradients_of_both_branches_and_of_variables(x):
    w = hr.Variable(3.0)
    table = hr.Variable(np.arange(6, dtype=np.float32).reshape(3, 2))
    made = hr.cond(x > 0, lambda: x * x * w, lambda: hr.reduce_sum(hr.gather(table, [2, 0])) + x)
    found = hr.gradients(made, [x, w, table])
    (twice,) = hr.gradients(found[0], [x])
    dense = [hr.convert_to_tensor(g) for g in found]
    taken = run_ready([*dense, twice], {x: 2.0})
    assert [taken[0], taken[1], taken[3]] == [12.0, 4.0, 6.0]
    np.testing.assert_array_equal(taken[2], np.zeros((3, 2)))
    other = run_ready([*dense, twice], {x: -2.0})
    assert [other[0], other[1], other[3]] == [1.0, 0.0, 0.0]
    np.testing.assert_array_equal(other[2], [[1, 1], [0, 0], [1, 1]])


def test_the_gradient_of_a_gather_in_a_branch_stays_sparse(x):
    table = hr.Variable(hr.ones([5, 2]))
    made = hr.cond(x > 0, lambda: hr.gather(table, [1, 1]), lambda: hr.zeros([2, 2]))
    (found,) = hr.gradients(made, [table])
    assert isinstance(found, hr.IndexedSlices)
    np.testing.assert_array_equal(run_ready(found.indices, {x: 1.0}), [1, 1])
    assert run_ready(found.indices, {x: -1.0}).size == 0


def test_random_numbers_in_a_branch_are_the_same_for_the_gradient(x):
    def noisy():
        return x * hr.random_normal([])

    made = hr.cond(x > 0, noisy, lambda: x)
    (slope,) = hr.gradients(made, [x])
    for _ in range(3):
        value, factor = run_ready([made, slope], {x: 2.0})
        assert value == pytest.approx(2 * factor)


def test_variables_made_in_a_branch_belong_to_the_program(x, graph):
    def branch():
        return hr.Variable(4.0, name="inside").value()

    made = hr.cond(x > 0, branch, lambda: hr.constant(0.0))
    assert [v.op_name for v in graph.variables] == ["cond/inside"]
    assert both(made, x) == (4.0, 0.0)


def test_case_takes_the_first_true_condition(x):
    made = hr.case(
        [(x > 2, lambda: x * 100), (x > 1, lambda: x * 10)], default=lambda: hr.constant(-1.0)
    )
    assert [run_ready(made, {x: v}) for v in (3.0, 1.5, 0.0)] == [300.0, 15.0, -1.0]


def test_case_without_default_fails_where_no_condition_is_true(x):
    made = hr.case([(x > 2, lambda: x), (x > 1, lambda: x * 10)])
    assert run_ready(made, {x: 1.5}) == 15.0
    with pytest.raises(hr.errors.InvalidArgumentError, match="none of the conditions is true"):
        run_ready(made, {x: 0.0})


def test_a_case_of_one_pair_returns_what_its_function_does(x):
    assert run_ready(hr.case([(x > 0, lambda: [x])]), {x: 1.0}) == [1.0]
    assert run_ready(hr.case([(x > 0, lambda: [x])], default=lambda: [-x]), {x: 1.0}) == 1.0
    assert run_ready(hr.case([(x > 0, lambda: [x])], lambda: [-x], strict=True), {x: -3.0}) == [3.0]


def test_a_condition_that_is_no_scalar_fails_when_it_runs():
    pred = hr.placeholder(hr.bool)
    made = hr.cond(pred, lambda: 1, lambda: 2)
    loop = hr.while_loop(lambda i: pred, lambda i: i + 1, [0])
    for fetch in (made, loop):
        for value in ([False], [True, False], []):
            with pytest.raises(ExecutionError, match="a condition must be a scalar, got shape"):
                run_ready(fetch, {pred: value})


def test_case_exclusive(x):
    made = hr.case({x > 1: lambda: x, x > 0: lambda: -x}, default=lambda: x, exclusive=True)
    assert run_ready(made, {x: 0.5}) == -0.5
    with pytest.raises(hr.errors.InvalidArgumentError, match="more than one condition is true"):
        run_ready(made, {x: 2.0})


@pytest.mark.parametrize(("number", "expected"), [(0, 10), (1, 20), (5, 30), (-1, 30)])
def test_switch_case(number, expected):
    index = hr.placeholder(hr.int32, [])
    branches = [lambda: hr.constant(10), lambda: hr.constant(20), lambda: hr.constant(30)]
    assert run_ready(hr.switch_case(index, branches), {index: number}) == expected


MISTAKES = {
    "python bool": (lambda x: hr.cond(True, lambda: x, lambda: x), DTypeError, "Python bool"),
    "no bool": (lambda x: hr.cond(x, lambda: x, lambda: x), DTypeError, "pred must be bool"),
    "vector": (
        lambda x: hr.cond(hr.constant([True]), lambda: x, lambda: x),
        ShapeError,
        "pred must be a scalar",
    ),
    "no function": (
        lambda x: hr.cond(x > 0, 5, lambda: x),
        ArgumentTypeError,
        "takes two functions",
    ),
    "structures": (
        lambda x: hr.cond(x > 0, lambda: (x, x), lambda: [x, x]),
        GraphError,
        "same structure, got a tuple of 2 and a list of 2",
    ),
    "dtypes": (
        lambda x: hr.cond(x > 0, lambda: x, lambda: hr.constant(1)),
        DTypeError,
        "result 0 is float32 in one branch and int32",
    ),
    "none": (lambda x: hr.cond(x > 0, lambda: None, lambda: x), GraphError, "returned None"),
    "nothing": (lambda x: hr.cond(x > 0, list, list), GraphError, "must return one tensor at"),
    "placeholder": (
        lambda x: hr.cond(x > 0, lambda: hr.placeholder(hr.float32), lambda: x),
        GraphError,
        "placeholder cannot be made in the inside of",
    ),
    "case empty": (lambda x: hr.case([]), GraphError, "at least one pair"),
    "case pair": (lambda x: hr.case([x > 0]), GraphError, "takes pairs"),
    "case bool": (lambda x: hr.case([(True, lambda: x)]), DTypeError, "scalar bool tensor"),
    "switch twice": (
        lambda x: hr.switch_case(hr.constant(0), [(0, lambda: x), (0, lambda: x)]),
        GraphError,
        "must be 0 to 1, each once",
    ),
    "switch gap": (
        lambda x: hr.switch_case(hr.constant(0), {0: lambda: x, 3: lambda: x}),
        GraphError,
        r"must be 0 to 1, each once, got \[0, 3\]",
    ),
    "switch int": (
        lambda x: hr.switch_case(0, [lambda: x, lambda: x]),
        DTypeError,
        "must be an int32 tensor, got 0",
    ),
    "switch int64": (
        lambda x: hr.switch_case(hr.constant(0, hr.int64), [lambda: x, lambda: x]),
        DTypeError,
        "must be an int32 tensor",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name, x):
    build, error, match = MISTAKES[name]
    with pytest.raises(error, match=match):
        build(x)


def test_tensors_of_a_branch_stay_inside(x):
    kept = []

    def branch():
        kept.append(x * 3)
        return kept[0]

    made = hr.cond(x > 0, branch, lambda: x)
    with pytest.raises(GraphError, match="belongs to the inside of 'cond/then': return it"):
        _ = made + kept[0]
    with hr.Session() as session, pytest.raises(FetchError, match="the inside of 'cond/then'"):
        session.run(kept[0], {x: 1.0})


def test_a_constant_that_a_branch_copied_cannot_be_fed(x):
    c = hr.constant(3)
    made = hr.cond(x > 0, lambda: hr.cast(c, hr.float32) * x, lambda: x)
    with hr.Session() as session, pytest.raises(FeedError, match="holds a copy of it"):
        session.run(made, {x: 1.0, c: 2})


def test_an_error_inside_names_the_inner_line(x):
    sizes = hr.placeholder(hr.int32, [2])
    made = hr.cond(x > 0, lambda: hr.reshape(hr.stack([x, x, x]), sizes), lambda: hr.zeros([2, 2]))
    with hr.Session() as session, pytest.raises(ExecutionError, match="Reshape") as caught:
        session.run(made, {x: 1.0, sizes: [2, 2]})
    assert "test_cond.py" in str(caught.value)
