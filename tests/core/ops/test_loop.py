"""Loops: values, shapes, state, gradients, and mistakes."""

from __future__ import annotations

import threading
from collections import namedtuple

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    DTypeError,
    ExecutionError,
    GraphError,
    SessionClosedError,
    ShapeError,
)
from tests.steps import run_ready

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

Pair = namedtuple("Pair", ["i", "s"])  # noqa: PYI024 - as users write them


@pytest.mark.parametrize(
    ("cond", "body", "start", "expected"),
    [
        (lambda i: i < 10, lambda i: i + 3, 0, 12),
        (lambda i: i < 10, lambda i: [i + 3], [0], 12),
        (lambda i, s: i < 4, lambda i, s: (i + 1, s * 2.0), (0, 1.0), (4, 16.0)),
        (lambda i, s: i < 4, lambda i, s: [i + 1, s + i], [0, 0], [4, 6]),
        (lambda p: p.i < 3, lambda p: [Pair(p.i + 1, p.s - 1)], [Pair(0, 5)], [Pair(3, 2)]),
        (lambda i, s: i < 3, lambda i, s: Pair(i + 1, s - 1), Pair(0, 5), Pair(3, 2)),
        (lambda i, s: i < 4, lambda i, s: (i + 1, s + i), [0, 0], (4, 6)),
        (lambda d: d["a"] < 3, lambda d: [{"a": d["a"] + 1}], [{"a": 0}], {"a": 3}),
        (lambda i: i < 0, lambda i: i + 1, 5, 5),
    ],
    ids=[
        "scalar",
        "list of one",
        "tuple",
        "list",
        "named tuple in a list",
        "named tuple",
        "tuple of a list",
        "dict",
        "no iteration",
    ],
)
def test_values_and_structures(cond, body, start, expected):
    assert (
        run_ready(hr.while_loop(cond, body, start if isinstance(start, list | tuple) else [start]))
        == expected
    )


def test_return_same_structure():
    made = hr.while_loop(lambda i: i < 2, lambda i: [i + 1], [0], return_same_structure=True)
    assert isinstance(made, list)
    assert run_ready(made) == [2]


def test_trip_counts_that_depend_on_data_nested():
    x = hr.placeholder(hr.int32, [])

    def collatz(n):
        return hr.while_loop(
            lambda n, k: n > 1,
            lambda n, k: (
                hr.cond(hr.equal(n % 2, 0), lambda: n // 2, lambda: 3 * n + 1),
                k + 1,
            ),
            (n, 0),
        )[1]

    total = hr.while_loop(lambda i, t: i <= x, lambda i, t: (i + 1, t + collatz(i)), (1, 0))[1]

    def expected(limit):
        steps = 0
        for n in range(1, limit + 1):
            while n > 1:
                n, steps = (n // 2 if n % 2 == 0 else 3 * n + 1), steps + 1
        return steps

    with hr.Session() as session:
        for limit in (0, 1, 7, 27):
            assert session.run(total, {x: limit}) == expected(limit)


@pytest.mark.parametrize("limit", [0, 3, 100])
def test_maximum_iterations(limit):
    made = hr.while_loop(lambda i: i < 10, lambda i: i + 1, [0], maximum_iterations=limit)
    assert run_ready(made) == min(limit, 10)


@pytest.mark.parametrize("parallel", [1, 2, 64])
def test_results_do_not_depend_on_parallel_iterations(parallel):
    made = hr.while_loop(
        lambda i, s: i < 20,
        lambda i, s: (i + 1, s * 0.5 + 1),
        (0, 0.0),
        parallel_iterations=parallel,
    )
    assert run_ready(made[1]) == pytest.approx(2 - 2**-19)


def test_shapes_may_change_where_the_invariant_says_so():
    made = hr.while_loop(
        lambda v: hr.shape(v)[0] < 8,
        lambda v: hr.concat([v, v], 0),
        [hr.ones([1, 3])],
        shape_invariants=[[None, 3]],
    )
    assert made.shape.as_list() == [None, 3]
    assert run_ready(made).shape == (8, 3)


def test_reads_of_variables_see_assignments_of_the_loop():
    v = hr.Variable(1.0)

    def body(i):
        with hr.control_dependencies([v.assign(v * 2.0)]):
            return i + 1

    made = hr.while_loop(lambda i: i < 5, body, [0])
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        assert session.run(made) == 5
        assert session.run(v) == 32.0


def test_a_variable_that_the_loop_only_reads_is_read_before_it(graph):
    v = hr.Variable(2.0)
    made = hr.while_loop(lambda s: s < 20.0, lambda s: s * v, [1.0])
    assert made.op.inputs[-1].op.type == "ReadVariable"
    assert run_ready(made) == 32.0


def test_variables_made_in_a_body_belong_to_the_program(graph):
    made = hr.while_loop(
        lambda s: s < 4.0, lambda s: s + hr.Variable(lambda: hr.ones([]), name="one"), [0.0]
    )
    assert len(graph.variables) == 1
    assert run_ready(made) == 4.0


@pytest.mark.needs("train")
def test_a_loop_that_waits_for_a_queue_holds_up_nothing():
    queue = hr.train.FIFOQueue(10, [hr.float32], [[]])
    x = hr.placeholder(hr.float32, [])
    put = queue.enqueue(x)
    total = hr.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + queue.dequeue()), (0, 0.0))
    beside = x * 2.0
    with hr.Session() as session:
        found = []
        thread = threading.Thread(
            target=lambda: found.append(session.run([total[1], beside], {x: 1.0}))
        )
        thread.start()
        for value in (1.0, 2.0, 4.0):
            session.run(put, {x: value})
        thread.join(20)
        assert found == [[7.0, 2.0]]


def test_closing_the_session_ends_an_endless_loop():
    made = hr.while_loop(lambda i: i >= 0, lambda i: i * 1, [1])
    session = hr.Session()
    timer = threading.Timer(0.3, session.close)
    timer.start()
    with pytest.raises((SessionClosedError, CancelledError), match="closed"):
        session.run(made)


def test_ten_thousand_iterations():
    made = hr.while_loop(lambda i: i < 10_000, lambda i: i + 1, [0])
    (slope,) = hr.gradients(
        hr.while_loop(
            lambda i, s: i < 1000, lambda i, s: (i + 1, s * 1.001), (0, x := hr.constant(1.0))
        )[1],
        [x],
    )
    count, found = run_ready([made, slope])
    assert count == 10_000
    assert found == pytest.approx(1.001**1000, rel=1e-3)


@pytest.mark.parametrize("optimize", [True, False])
def test_gradients_nested_to_second_order(optimize):
    x = hr.placeholder(hr.float64, [])

    def inner(a):
        return hr.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b * b * x), (0, a))[1]

    y = hr.while_loop(lambda i, a: i < 2, lambda i, a: (i + 1, hr.sin(inner(a))), (0, x))[1]
    (first,) = hr.gradients(y, [x])
    (second,) = hr.gradients(first, [x])

    def plain(v):
        a = v
        for _ in range(2):
            b = a
            for _ in range(2):
                b = b * b * v
            a = np.sin(b)
        return a

    value = 0.9
    slope = plain(value + 1e-30j).imag / 1e-30
    bend = (plain(value + 1e-6 + 1e-30j).imag - plain(value - 1e-6 + 1e-30j).imag) / 1e-30 / 2e-6
    found = run_ready([y, first, second], {x: value}, optimize=optimize)
    np.testing.assert_allclose(found, [plain(value), slope, bend], rtol=1e-7)


def test_gradients_of_variables_and_swapping_to_the_host():
    w = hr.Variable(hr.constant([[0.5, -0.2], [0.1, 0.3]]))
    x = hr.constant([[1.0, 2.0]])

    def grown(swap):
        made = hr.while_loop(
            lambda i, h: i < 3,
            lambda i, h: (i + 1, hr.tanh(hr.matmul(h, w) + x)),
            (0, x),
            swap_memory=swap,
        )
        return hr.gradients(made[1], [w, x])

    h = x
    for _ in range(3):
        h = hr.tanh(hr.matmul(h, w) + x)
    unrolled, looped, swapped = run_ready([hr.gradients(h, [w, x]), grown(False), grown(True)])
    for a, b, c in zip(unrolled, looped, swapped, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-6)
        np.testing.assert_array_equal(c, b)


def test_the_gradient_of_a_gather_in_a_loop_stays_sparse():
    table = hr.Variable(hr.ones([6, 2]))
    ids = hr.constant([4, 0, 4])
    total = hr.while_loop(
        lambda i, s: i < 3, lambda i, s: (i + 1, s + hr.gather(table, ids[i])), (0, hr.zeros([2]))
    )[1]
    (found,) = hr.gradients(total, [table])
    dense = np.zeros((6, 2))
    np.add.at(dense, [4, 0, 4], 1)
    np.testing.assert_array_equal(run_ready(hr.convert_to_tensor(found)), dense)


def test_back_prop_can_be_switched_off():
    x = hr.constant(1.0)
    made = hr.while_loop(lambda s: s < 9.0, lambda s: s * 2.0, [x], back_prop=False)
    assert hr.gradients(made, [x]) == [None]


def test_gradients_asked_for_inside_a_body():
    x = hr.placeholder(hr.float64, [])

    def newton(y):
        (slope,) = hr.gradients(y * y * y - x, [y])
        return y - (y * y * y - x) / slope

    root = hr.while_loop(
        lambda y: hr.abs(y * y * y - x) > 1e-12, newton, [hr.constant(1.0, hr.float64)]
    )
    assert run_ready(root, {x: 27.0}) == pytest.approx(3.0)


def test_random_numbers_of_iterations_are_the_same_for_the_gradient():
    x = hr.constant(1.0)
    made = hr.while_loop(
        lambda i, s: i < 4, lambda i, s: (i + 1, s * hr.random_uniform([], 0.5, 1.5)), (0, x)
    )[1]
    value, slope = run_ready([made, hr.gradients(made, [x])[0]])
    assert slope == pytest.approx(value)


MISTAKES = {
    "no functions": (lambda: hr.while_loop(1, 2, [0]), GraphError, "takes two functions"),
    "no variables": (
        lambda: hr.while_loop(lambda: True, list, []),
        GraphError,
        "at least one loop variable",
    ),
    "cond no bool": (
        lambda: hr.while_loop(lambda i: i, lambda i: i, [0]),
        DTypeError,
        "cond must return a bool",
    ),
    "cond vector": (
        lambda: hr.while_loop(lambda i: hr.constant([True]), lambda i: i, [0]),
        ShapeError,
        "cond must return a scalar",
    ),
    "dtype changes": (
        lambda: hr.while_loop(lambda i: i < 3, lambda i: hr.cast(i, hr.float32), [0]),
        DTypeError,
        "enters an iteration as int32 and leaves it as float32",
    ),
    "shape changes": (
        lambda: hr.while_loop(lambda v: True, lambda v: hr.concat([v, v], 0), [hr.ones([2])]),
        (ShapeError, DTypeError),
        "shape_invariants|cond must return",
    ),
    "count changes": (
        lambda: hr.while_loop(lambda i, j: i < j, lambda i, j: i, [0, 1]),
        GraphError,
        "body must return the structure of the loop variables, of which there are 2",
    ),
    "invariant excludes": (
        lambda: hr.while_loop(
            lambda v: v[0] < 1, lambda v: v, [hr.ones([2])], shape_invariants=[[3]]
        ),
        ShapeError,
        r"starts with shape \[2\], which its invariant \[3\] excludes",
    ),
    "invariants count": (
        lambda: hr.while_loop(
            lambda v: v[0] < 1, lambda v: v, [hr.ones([2])], shape_invariants=[[2], [2]]
        ),
        GraphError,
        "2 shape_invariants for 1 loop variables",
    ),
    "parallel": (
        lambda: hr.while_loop(lambda i: i < 1, lambda i: i, [0], parallel_iterations=0),
        AttributeValueError,
        "parallel_iterations must be a positive integer",
    ),
    "maximum": (
        lambda: hr.while_loop(lambda i: i < 1, lambda i: i, [0], maximum_iterations=1.5),
        DTypeError,
        "maximum_iterations must be an integer",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    build, error, match = MISTAKES[name]
    with pytest.raises(error, match=match):
        build()


def test_an_error_in_an_iteration_names_the_inner_line():
    made = hr.while_loop(
        lambda i: i > -5,
        lambda i: hr.gather(hr.constant([1, 2, 3]), i) - 4,
        [hr.placeholder_with_default(hr.constant(2), [])],
    )
    with hr.Session() as session, pytest.raises(ExecutionError, match=r"Gather") as caught:
        session.run(made)
    assert "test_loop.py" in str(caught.value)


def test_a_loop_sees_what_is_fed_for_a_variable():
    v = hr.Variable(1.5)
    counted = hr.while_loop(lambda i: i < 3.0, lambda i: i + v, [0.0])
    with hr.Session() as sess:
        sess.run(v.initializer)
        assert sess.run(counted) == 3.0
        assert sess.run(counted, {v: 2.0}) == 4.0
