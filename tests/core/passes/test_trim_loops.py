"""Trimmed loops: what is left of them, and that they compute what they did."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError
from headrace.passes.inline_calls import inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import StepGraph, verify
from headrace.passes.trim_loops import trim_loops

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def trimmed(fetches, targets=()) -> StepGraph:
    step = inline_calls(extract([], fetches, list(targets)))
    found = trim_loops(step)
    verify(found)
    return prune(found)


def loops(step):
    """Return for each loop the numbers of its variables, of its lists, and of all its inputs."""
    found = [op for op in step.graph.operations if op.type == "While"]
    return [(op.arity[0], len(op.attrs["saves"]), len(op.inputs)) for op in found]


def agree(fetches, feed=None):
    """Run on the optimised and the plain path; the results must agree."""
    results = []
    for config in ({"optimize": False}, {"verify": True}, {"executor": "plain"}):
        with hr.Session(config=hr.Config(**config)) as session:
            session.run(hr.global_variables_initializer())
            results.append([session.run(fetches, feed) for _ in range(4)])
    for other in results[1:]:
        for left, right in zip(hr.nest.flatten(results[0]), hr.nest.flatten(other), strict=True):
            np.testing.assert_allclose(left, right, rtol=1e-5)
    return results[0][0]


def three():
    """A loop of a counter, a sum of what is read, and a product of nothing else."""
    read, factor = hr.identity([1.0, 2.0]), hr.identity(3.0)
    start = [hr.constant(0), hr.zeros([2]), hr.constant(1.0)]
    return hr.while_loop(lambda i, *_: i < 4, lambda i, s, p: (i + 1, s + read, p * factor), start)


@pytest.mark.parametrize(
    ("wanted", "expected", "values"),
    [
        ([0], (1, 0, 1), [4]),
        ([1], (2, 0, 3), [[4.0, 8.0]]),
        ([2], (2, 0, 3), [81.0]),
        ([1, 2], (3, 0, 5), [[4.0, 8.0], 81.0]),
    ],
)
def test_variables_that_nothing_reads_go(wanted, expected, values):
    outputs = three()
    fetches = [outputs[i] for i in wanted]
    assert loops(trimmed(fetches)) == [expected]
    for got, value in zip(agree(fetches), values, strict=True):
        np.testing.assert_allclose(got, value)


def test_what_a_variable_or_the_condition_depends_on_stays():
    start = [hr.constant(0), hr.constant(1.0), hr.constant(1.0), hr.constant(9.0), hr.constant(0.0)]
    # Each depends on the next; the condition on the fourth, and nothing on the last.
    outputs = hr.while_loop(
        lambda i, a, b, c, d: (i < 5) & (c > 0.0),
        lambda i, a, b, c, d: (i + 1, a + b, b * 2.0, c - 2.0, d + a),
        start,
    )
    assert loops(trimmed([outputs[1]])) == [(4, 0, 4)]
    assert loops(trimmed([outputs[0]])) == [(2, 0, 2)]
    assert agree(outputs[1]) == 32.0
    assert agree(outputs[0]) == 5


def test_a_loop_that_is_needed_whole_is_left_alone():
    step = extract([], list(three()), [])
    assert trim_loops(step) is step
    step = extract([], [hr.constant(1.0) + 2.0], [])
    assert trim_loops(step) is step


def test_effects_and_what_they_depend_on_stay():
    v, read = hr.Variable(0.0), hr.identity(1.0)

    def body(i, s, t):
        return i + 1, hr.assign_add(v, s), t + read

    start = [hr.constant(0), hr.constant(1.0), hr.constant(0.0)]
    outputs = hr.while_loop(lambda i, *_: i < 3, body, start)
    assert [counts[0] for counts in loops(trimmed([outputs[0]]))] == [2]
    for config in ({}, {"optimize": False}):
        with hr.Session(config=hr.Config(**config)) as session:
            session.run(v.initializer)
            assert list(session.run(outputs[:2])) == [3, 4.0]
            assert session.run(v) == 4.0


def test_gradients_of_weights_do_not_add_up_those_of_data():
    x, w = hr.placeholder("float32", [5, 3]), hr.Variable(hr.eye(3) * 0.5)
    _, h = hr.while_loop(
        lambda i, h: i < 5,
        lambda i, h: (i + 1, hr.tanh(hr.matmul(h + x[i], w))),
        [hr.constant(0), hr.ones([2, 3])],
    )
    of_w, of_x = hr.gradients(hr.reduce_sum(h), [w, x])
    whole = loops(inline_calls(extract([x], [of_w, of_x], [])))
    for fetches in ([of_w, of_x], [of_w], [of_x]):
        step = inline_calls(extract([x], fetches, []))
        found = loops(prune(trim_loops(step)))
        if len(fetches) == 2:
            assert found == whole
        else:
            # One sum less; and the forward loop keeps no more than the other loop reads.
            assert found[1][0] < whole[1][0]
            assert found[0][1] <= whole[0][1]
        agree(fetches, {x: np.linspace(-1, 1, 15).reshape(5, 3)})


def test_lists_that_no_gradient_reads_are_not_kept():
    w, u = hr.Variable([[0.5, 0.25]]), hr.Variable([[2.0, 1.0]])
    _, h = hr.while_loop(
        lambda i, h: i < 3,
        lambda i, h: (i + 1, h * w + hr.tanh(u) * 0.1),
        [hr.constant(0), hr.ones([1, 2])],
    )
    of_w, of_u = hr.gradients(hr.reduce_sum(h), [w, u])
    both, one = loops(trimmed([of_w, of_u])), loops(trimmed([of_u]))
    assert one[0][1] < both[0][1]
    agree([of_w])
    agree([of_u])
    agree([of_w, of_u])


def test_loops_in_loops_and_second_gradients():
    w, other = hr.Variable(0.5), hr.Variable(0.25)

    def once(i, h, total):
        _, h, more = hr.while_loop(
            lambda j, *_: j < 3,
            lambda j, h, t: (j + 1, hr.sin(h * w) + other, t + h),
            [hr.constant(0), h, total],
        )
        return i + 1, h, more

    start = [hr.constant(0), hr.constant(1.0), hr.constant(0.0)]
    _, h, total = hr.while_loop(lambda i, *_: i < 2, once, start)
    # The sum goes from both loops.
    (outer,) = [op for op in trimmed([h]).graph.operations if op.type == "While"]
    (inner,) = [op for op in outer.attrs["body"].operations if op.type == "While"]
    assert (outer.arity[0], inner.arity[0]) == (2, 2)
    (first,) = hr.gradients(h, [w])
    (second,) = hr.gradients(first, [w])
    (mixed,) = hr.gradients(first, [other])
    for fetches in (h, total, first, second, mixed, [first, second]):
        agree(fetches)


def test_scans_and_recurrent_networks_whose_outputs_nobody_reads():
    x, w = hr.placeholder("float32", [6, 2, 3]), hr.Variable(hr.eye(3))
    outputs, sums = hr.scan(
        lambda held, now: (hr.tanh(hr.matmul(held[0], w) + now), held[1] + now),
        x,
        (hr.zeros([2, 3]), hr.zeros([2, 3])),
    )
    feed = {x: np.linspace(-1, 1, 36).reshape(6, 2, 3)}
    (of_w,) = hr.gradients(hr.reduce_sum(outputs[-1]), [w])
    step = inline_calls(extract([x], [outputs], []))
    assert loops(prune(trim_loops(step)))[0][0] < loops(step)[0][0]
    for fetches in (outputs, sums, of_w):
        agree(fetches, feed)


def test_an_error_that_stays_names_its_line_and_one_that_goes_is_not_raised():
    table = hr.constant([1.0, 2.0])
    start = [hr.constant(0), hr.constant(0.0), hr.constant(0.0)]
    outputs = hr.while_loop(
        lambda i, *_: i < 4,
        lambda i, s, t: (i + 1, s + hr.gather(table, i), t + 1.0),
        start,
    )
    with hr.Session() as session:
        assert session.run(outputs[2]) == 4.0
        with pytest.raises(ExecutionError, match=r"(?s)index 2.*test_trim_loops\.py"):
            session.run(outputs[1])


def test_draws_that_stay_give_the_values_that_they_gave():
    def draws(i, s, t):
        return i + 1, s + hr.random_normal([2], seed=1), t + hr.random_normal([2], seed=2)

    start = [hr.constant(0), hr.zeros([2]), hr.zeros([2])]
    _, s, t = hr.while_loop(lambda i, *_: i < 3, draws, start)
    with hr.Session() as both, hr.Session() as one:
        np.testing.assert_array_equal(both.run([s, t])[1], one.run(t))
