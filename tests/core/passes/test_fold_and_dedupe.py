"""Limits of constant folding, and which nodes are equal."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import headrace as hr
from headrace.graph.schema import call_op
from headrace.passes.dedupe import dedupe
from headrace.passes.fold import MAX_BYTES, MAX_REPEATED_BYTES, fold
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import StepGraph, verify
from headrace.plugins.host import host
from headrace.runtime.nested import evaluate

pytestmark = pytest.mark.needs("backend-cpu")


def types(step: StepGraph) -> Counter:
    verify(step)
    return Counter(op.type for op in step.graph.operations)


def folded(*fetches) -> StepGraph:
    step = extract([], list(fetches), [])
    return prune(fold(step, lambda op, inputs: evaluate(op, inputs, host().kernels)))


def test_large_results_are_left_to_the_step(steps):
    count = MAX_BYTES // 8
    fits, too_large = hr.range(count, dtype=hr.int64), hr.range(count + 1, dtype=hr.int64)
    step = folded(fits * 2, too_large * 2)
    assert types(step)["Range"] == 1
    assert types(step)["Mul"] == 1
    for got, size in zip(steps.run(step, []), (count, count + 1), strict=True):
        np.testing.assert_array_equal(got, 2 * np.arange(size))


def test_repeated_values_are_folded_where_they_are_few():
    count = MAX_REPEATED_BYTES // 4
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
