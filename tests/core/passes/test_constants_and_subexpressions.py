"""Limits of constant folding, and which nodes are equal."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import headrace as hr
from headrace.graph.schema import call_op
from headrace.passes.common_subexpressions import dedupe
from headrace.passes.constant_folding import MAX_ELEMENTS, MAX_REPEATED_ELEMENTS, fold
from headrace.passes.evaluate import evaluate
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import StepGraph, verify
from headrace.plugins.host import host

pytestmark = pytest.mark.needs("backend-cpu")


def types(step: StepGraph) -> Counter:
    verify(step)
    return Counter(op.type for op in step.graph.operations)


def folded(*fetches) -> StepGraph:
    step = extract([], list(fetches), [])
    return prune(fold(step, lambda op, inputs: evaluate(op, inputs, host().kernels)))


def test_large_results_are_left_to_the_step(steps):
    count = MAX_ELEMENTS
    fits, too_large = hr.range(count, dtype=hr.int64), hr.range(count + 1, dtype=hr.int64)
    step = folded(fits * 2, too_large * 2)
    assert types(step)["Range"] == 1
    assert types(step)["Mul"] == 1
    for got, size in zip(steps.run(step, []), (count, count + 1), strict=True):
        np.testing.assert_array_equal(got, 2 * np.arange(size))


def test_repeated_values_are_folded_where_they_are_few():
    count = MAX_REPEATED_ELEMENTS
    assert types(folded(hr.fill([count], 1.0))) == {"Const": 1}
    assert types(folded(hr.fill([count + 1], 1.0)))["Fill"] == 1
    assert types(folded(hr.tile([1.0, 2.0], [count])))["Tile"] == 1
    assert types(folded(hr.broadcast_to([1.0, 2.0], [count, 2])))["BroadcastTo"] == 1


def test_folding_a_shape_drops_no_effect():
    v = hr.Variable([1.0, 2.0])
    written = hr.assign_add(v, [1.0, 1.0])
    step = folded(hr.shape(hr.identity(written)))
    assert types(step)["AssignAddVariable"] == 1
    with hr.Session() as session:
        session.run(v.initializer)
        session.run(hr.shape(written))
        np.testing.assert_array_equal(session.run(v), [2, 3])


def test_a_dead_shape_stays_dead():
    taken, other = hr.switch(hr.constant([1.0]), hr.placeholder("bool", [], name="p"))
    merged, _ = hr.merge([hr.shape(taken), hr.shape(other) + 1])
    with hr.Session() as session:
        assert session.run(merged, {"p:0": False}) == [1]
        assert session.run(merged, {"p:0": True}) == [2]


@pytest.mark.parametrize("op", ["Add", "Mul", "Equal", "NotEqual"])
def test_the_order_of_commutative_inputs_does_not_count(op, steps):
    x, y = hr.placeholder("float32", [3]), hr.placeholder("float32", [3])
    step = extract([x, y], [call_op(op, x, y), call_op(op, y, x)], [])
    merged = dedupe(step)
    assert types(merged)[op] == 1
    feeds = [np.float32([np.inf, -0.0, np.nan]), np.float32([-np.inf, 0.0, 1.0])]
    for got, wanted in zip(steps.run(merged, feeds), steps.run(step, feeds), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_order_of_other_inputs_counts(steps):
    x, y = hr.placeholder("float32", [2]), hr.placeholder("float32", [2])
    fetches = [x - y, y - x, hr.maximum(x, y), hr.maximum(y, x)]
    counted = types(dedupe(extract([x, y], fetches, [])))
    assert (counted["Sub"], counted["Maximum"]) == (2, 2)
    a, b = hr.placeholder("string", [1]), hr.placeholder("string", [1])
    joined = dedupe(extract([a, b], [a + b, b + a], []))
    assert types(joined)["Add"] == 2
    words = [np.array([w], object) for w in (b"x", b"y")]
    assert [r.tolist() for r in steps.run(joined, words)] == [[b"xy"], [b"yx"]]


def test_a_variable_is_read_once_where_nothing_has_an_effect():
    v, w = hr.Variable([1.0, 2.0]), hr.Variable([5.0])
    reads = [v.read_value(), v.read_value(), w.read_value(), v.read_value()]
    with hr.control_dependencies([w.initializer]):
        waiting = v.read_value()
    step = extract([], [*reads, waiting], [])
    assert types(step)["ReadVariable"] == 5
    # One of each variable, and the one that waits for another operation.
    merged = dedupe(step)
    assert types(merged)["ReadVariable"] == 3
    with hr.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run([reads[1] * 2, reads[3] + 1]), [[2, 4], [2, 3]])


@pytest.mark.parametrize("executor", ["plain", "plan"])
def test_an_effect_between_two_reads_keeps_them_apart(executor):
    v = hr.Variable(0.0)
    last: list[hr.Operation] = []
    reads, writes = [], []
    for _ in range(3):
        with hr.control_dependencies(last):
            reads += [v.read_value(), v.read_value()]
        with hr.control_dependencies([each.op for each in reads]):
            writes.append(hr.assign_add(v, 1.0))
        last = [writes[-1].op]
    step = extract([], reads, [writes[-1].op])
    assert types(step)["ReadVariable"] == 6
    assert types(dedupe(step))["ReadVariable"] == 3
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(v.initializer)
        assert session.run([*reads, writes[-1]])[:6] == [0, 0, 1, 1, 2, 2]


def test_reads_on_both_sides_of_a_write_stay_apart_also_without_an_order():
    v = hr.Variable([1.0])
    one = v.read_value()
    written = hr.assign_add(v, [1.0])
    two = v.read_value()
    step = extract([], [one, written, two], [])
    assert types(dedupe(step))["ReadVariable"] == types(step)["ReadVariable"]
