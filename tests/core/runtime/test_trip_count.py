"""Loops that count: rounds known before the first one are those that the condition allows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.runtime.control_flow.trip_count import trip_count_of, without_counters

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

MOST = 2**31 - 1
Less, At, More, AtMore = hr.less, hr.less_equal, hr.greater, hr.greater_equal
# Name: condition of (i, n), where the counter starts, what it grows by, the bound, rounds, and
# whether they are counted.
LOOPS = {
    "below": (Less, 0, 1, 7, 7, True),
    "up to": (At, 0, 1, 7, 8, True),
    "above": (More, 7, -1, 0, 7, True),
    "down to": (AtMore, 7, -1, 0, 8, True),
    "in steps": (Less, 0, 3, 7, 3, True),
    "in steps that meet": (Less, 1, 3, 7, 2, True),
    "up to in steps": (At, 0, 3, 9, 4, True),
    "bound on the left": (lambda i, n: More(n, i), 2, 1, 7, 5, True),
    "bound on the left, down": (lambda i, n: At(n, i), 7, -2, 0, 4, True),
    "never": (Less, 7, 1, 7, 0, True),
    "two bounds": (lambda i, n: hr.logical_and(Less(i, n), Less(i, 4)), 0, 1, 7, 4, True),
    "and not once": (lambda i, n: hr.logical_and(Less(i, n), More(i, 4)), 0, 1, 7, 0, True),
    "either": (lambda i, n: hr.logical_or(Less(i, n), Less(i, 4)), 0, 1, 7, 7, False),
    "not equal": (lambda i, n: hr.not_equal(i, n), 0, 1, 7, 7, False),
    "of a sum": (lambda i, n: Less(i + 1, n), 0, 1, 7, 6, False),
    "of floats": (lambda i, n: Less(hr.cast(i, "float32"), 2.5), 0, 1, 7, 3, False),
    # The counter comes round behind the last number, where the condition is asked as ever.
    "to the last number": (At, MOST - 2, 1, MOST - 1, 2, True),
    "away, until it comes round": (Less, -(2**31) + 2, -1, 0, 3, True),
}


def loop(cond, start, step, bound):
    return hr.while_loop(
        lambda i, s: cond(i, bound), lambda i, s: (i + step, s + 1.0), [start, hr.constant(0.0)]
    )


@pytest.mark.parametrize("given", ["constant", "fed"])
@pytest.mark.parametrize("executor", ["plain", "plan"])
@pytest.mark.parametrize("name", LOOPS)
def test_rounds_are_those_that_the_condition_allows(name, executor, given):
    cond, start, step, bound, rounds, counted = LOOPS[name]
    with hr.Graph().as_default() as graph:
        fed = {}
        first, last = hr.constant(start), hr.constant(bound)
        if given == "fed":
            first, last = hr.placeholder("int32", []), hr.placeholder("int32", [])
            fed = {first: start, last: bound}
        i, s = loop(cond, first, step, last)
        with hr.Session(config=hr.Config(executor=executor)) as session:
            assert session.run(s, fed) == rounds
            reached = np.int64(start + rounds * step)
            assert session.run(i, fed) == np.int32(reached & 0xFFFFFFFF if reached < 0 else reached)
    (op,) = [op for op in graph.operations if op.type == "While"]
    assert (trip_count_of(op) is not None) == counted


BODIES = {
    "a counter": (lambda i, k: (i + 1, k), 6, True),
    "a counter on the right": (lambda i, k: (2 + i, k), 6, True),
    "grows by a variable": (lambda i, k: (i + k, k), 6, False),
    "is set anew": (lambda i, k: (hr.minimum(i + 4, 9), k), 8, False),
    "the bound changes": (lambda i, k: (i + 1, k - 1), 3, False),
    "the other one counts": (lambda i, k: (i, k - 2), 0, True),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_no_counter_reaches_is_asked_in_each_round(name):
    body, wanted, counted = BODIES[name]
    with hr.Graph().as_default() as graph:
        i, _ = hr.while_loop(lambda i, k: i < k, body, [hr.constant(0), hr.constant(6)])
        with hr.Session() as session:
            assert session.run(i) == wanted
    (op,) = [op for op in graph.operations if op.type == "While"]
    assert (trip_count_of(op) is not None) == counted


def test_loops_within_loops_count_anew():
    def outer(i, s):
        _, more = hr.while_loop(lambda j, t: j < i, lambda j, t: (j + 1, t + 1.0), [0, s])
        return i + 1, more

    _, s = hr.while_loop(lambda i, s: i < 5, outer, [hr.constant(0), hr.constant(0.0)])
    with hr.Session() as session:
        assert session.run(s) == 10.0


def test_a_limit_of_iterations_counts_too():
    i = hr.while_loop(lambda i: i < 9, lambda i: i + 1, [hr.constant(0)], maximum_iterations=4)
    with hr.Session() as session:
        assert session.run(i) == 4


def the_loop(graph):
    (op,) = [op for op in graph.operations if op.type == "While"]
    return op


# Bodies of (i, k, s), of which i counts to 6: the variables that are left to the body, and the
# counters that it reads.
APART = {
    "nobody reads it": (lambda i, k, s: (i + 1, k, s * 2.0), (1, 2), ()),
    "it is read": (lambda i, k, s: (i + 1, k, s + hr.cast(i, "float32")), (1, 2), (0,)),
    "two of them": (lambda i, k, s: (i + 1, k - 3, s + hr.cast(k, "float32")), (2,), (1,)),
    "the sum is read": (lambda i, k, s: _summed(i, k, s), (0, 1, 2), None),
    "somebody waits": (lambda i, k, s: _waiting(i, k, s), (0, 1, 2), None),
    "all of them": (lambda i, k, s: (i + 1, k + 2, s), (2,), ()),
}


def _summed(i, k, s):
    more = i + 1
    return more, k, s + hr.cast(more, "float32")


def _waiting(i, k, s):
    more = i + 1
    with hr.control_dependencies([more]):
        return more, k, hr.identity(s)


@pytest.mark.parametrize("config", [{}, {"executor": "plain"}, {"optimize": False}], ids=str)
@pytest.mark.parametrize("rounds", [0, 1, 6])
@pytest.mark.parametrize("name", APART)
def test_what_only_counts_is_left_to_the_loop(name, rounds, config):
    body, others, read = APART[name]
    with hr.Graph().as_default() as graph:
        start = [hr.constant(0), hr.constant(40), hr.constant(0.5)]
        found = hr.while_loop(lambda i, k, s: i < rounds, body, start)
        with hr.Session(config=hr.Config(**config)) as session:
            values = session.run(found)
            kinds = [value.dtype for value in values]
            expected = start
            for _ in range(rounds):
                expected = body(*expected)
            assert list(values) == list(session.run(list(expected)))
    assert kinds == [np.int32, np.int32, np.float32]
    apart = without_counters(the_loop(graph))
    if read is None:
        assert apart is None
    else:
        assert (apart.others, apart.read) == (others, read)
        sums = [op for op in apart.body.operations if op.type in ("Add", "Sub")]
        assert not [op for op in sums if op.inputs[0].dtype.is_integer]


@pytest.mark.parametrize("executor", ["plain", "plan"])
def test_counters_that_the_loop_keeps_come_round_where_their_dtype_ends(executor):
    def body(i, k, seen):
        return i + 1, k + 3, hr.concat([seen[1:], [k]], 0)

    start = [hr.constant(0), hr.constant(MOST - 4), hr.zeros([4], "int32")]
    _, k, seen = hr.while_loop(lambda i, *_: i < 4, body, start)
    with hr.Session(config=hr.Config(executor=executor)) as session:
        last, values = session.run([k, seen])
    assert last == -(2**31) + 7
    assert values.tolist() == [MOST - 4, MOST - 1, -(2**31) + 1, -(2**31) + 4]


@pytest.mark.parametrize("executor", ["plain", "plan"])
def test_counters_go_on_where_the_condition_is_asked(executor):
    # It moves away from the bound, and comes round: nobody knows the rounds before the first.
    start = [hr.constant(-(2**31) + 2), hr.constant(7)]
    found = hr.while_loop(lambda i, k: i < 0, lambda i, k: (i - 1, k + 1), start)
    with hr.Session(config=hr.Config(executor=executor)) as session:
        assert session.run(found) == (MOST, 10)


def test_gradients_of_loops_with_counters_apart():
    x = hr.constant([1.0, 2.0])

    def body(i, y):
        return i + 1, y * hr.cast(i + 1, "float32") * x

    _, y = hr.while_loop(lambda i, y: i < 3, body, [hr.constant(0), hr.ones([2])])
    with hr.Session() as session:
        value, grad = session.run([y, hr.gradients(y, x)[0]])
    np.testing.assert_allclose(value, [6.0, 48.0])
    np.testing.assert_allclose(grad, [18.0, 72.0])


def test_what_rounds_leave_behind_is_listed_in_their_order():
    x = hr.constant([1.0, 2.0])
    start = [hr.constant(0), hr.ones([2])]
    _, y = hr.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, hr.square(y) + x), start)
    grads = hr.gradients(y, x)
    found = []
    for config in ({}, {"executor": "plain"}, {"optimize": False}):
        with hr.Session(config=hr.Config(**config)) as session:
            found.append(session.run(grads)[0])
    for other in found[1:]:
        np.testing.assert_allclose(found[0], other, rtol=1e-6)
    # y = (((1 + x)^2 + x)^2 + x
    one = 1 + np.array([1.0, 2.0])
    two = one**2 + one - 1
    np.testing.assert_allclose(found[0], 2 * two * (2 * one + 1) + 1, rtol=1e-6)


def test_arguments_come_in_the_order_of_the_loop_whatever_reads_them_first():
    def body(i, a, b):
        # Reads the last first, and returns them the other way round.
        later = hr.tanh(b) * 2.0
        return i + 1, later + a, hr.sin(a)

    start = [hr.constant(0), hr.constant([0.5]), hr.constant([0.25])]
    found = hr.while_loop(lambda i, a, b: i < 3, body, start)
    a, b = np.float32(0.5), np.float32(0.25)
    for _ in range(3):
        a, b = np.tanh(b) * 2 + a, np.sin(a)
    with hr.Session() as session:
        values = session.run(found)
    np.testing.assert_allclose([values[1][0], values[2][0]], [a, b], rtol=1e-5)
