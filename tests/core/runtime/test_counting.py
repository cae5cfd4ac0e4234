"""Loops that count: rounds known before the first one are those that the condition allows."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.runtime.counting import count_of

pytestmark = pytest.mark.needs("backend-cpu")

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
    assert (count_of(op) is not None) == counted


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
    assert (count_of(op) is not None) == counted


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
