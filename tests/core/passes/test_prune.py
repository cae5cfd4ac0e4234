"""Passes: each test has two halves, the structure of the result and its numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, GraphError
from headrace.passes.common_subexpressions import dedupe
from headrace.passes.constant_folding import MAX_ELEMENTS, fold
from headrace.passes.evaluate import evaluate
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import StepGraph, verify

PLAIN = hr.Config(optimize=False, verify=True)
OPTIMIZED = hr.Config(verify=True)


def types(step: StepGraph) -> Counter:
    verify(step)
    return Counter(op.type for op in step.graph.operations)


def both(fetch, feed=None):
    """Run on the optimised and the plain path; the results must agree."""
    results = []
    for config in (PLAIN, OPTIMIZED):
        with hr.Session(config=config) as sess:
            variables = hr.get_default_graph().variables
            sess.run([v.initializer for v in variables])
            results.append(sess.run(fetch, feed))
    for left, right in zip(*results, strict=True):
        np.testing.assert_array_equal(left, right)
    return results[0]


def test_extract_keeps_only_what_is_needed(graph):
    x = hr.placeholder(hr.float32, [], name="x")
    v = hr.Variable(1.0)
    y = x * 2.0
    hr.assign_add(v, 1.0)
    z = y + 1.0
    size = len(graph)
    step = extract([y], [z], [])
    assert types(step) == {"Feed": 1, "Const": 1, "Add": 1}
    assert step.graph.operations[0].origin == "feed of mul:0"
    assert len(graph) == size


def test_extract_keeps_control_inputs(mini):
    v = hr.Variable(1.0)
    with hr.control_dependencies([hr.assign_add(v, 1.0)]):
        read = v + 0.0
    assert types(extract([], [read], []))["AssignAddVariable"] == 1
    assert both([read]) == [2.0]


def test_fold_computes_constants(mini):
    a = hr.constant([1.0, 2.0])
    b = hr.zeros([2]) + a * 3.0
    x = hr.placeholder(hr.float32, [2])
    c = b + x
    step = extract([x], [c], [])
    folded = prune(fold(step, lambda op, i: evaluate(op, i, mini.kernels)))
    assert types(folded) == {"Feed": 1, "Const": 1, "Add": 1}
    const = next(op for op in folded.graph.operations if op.type == "Const")
    np.testing.assert_array_equal(const.attrs["value"], [3, 6])
    assert const.origin == "fold of Add"
    assert const.site == b.op.site
    both([c], {x: [1, 1]})


def test_fold_uses_static_shapes(mini):
    x = hr.placeholder(hr.float32, [None, 4])
    y = hr.reshape(x, [hr.shape(x)[1], -1]) + hr.cast(hr.rank(x), hr.float32)
    step = extract([x], [y], [])
    folded = prune(fold(step, lambda op, i: evaluate(op, i, mini.kernels)))
    assert types(folded) == {"Feed": 1, "Const": 2, "Reshape": 1, "Add": 1}
    both([y], {x: np.ones((2, 4))})


def test_fold_keeps_what_control_edges_order(mini):
    v = hr.Variable(0.0)
    with hr.control_dependencies([hr.assign_add(v, 1.0)]):
        one = hr.identity(hr.constant(1.0))
    two = one * 2.0
    with hr.control_dependencies([two]):
        after = v + 0.0
    assert both([two, after]) == [2.0, 1.0]


def test_fold_leaves_large_and_failing_nodes(mini):
    large = hr.fill([MAX_ELEMENTS], 1.0)
    step = fold(extract([], [large], []), lambda op, i: evaluate(op, i, mini.kernels))
    assert types(step)["Fill"] == 1
    x = hr.constant(np.ones((2, 3), "f"))
    with hr.name_scope("later"):
        wrong = hr.matmul(x, hr.reshape(x, hr.placeholder(hr.int32, [2], name="s")))
    feed = {wrong.graph.get_tensor_by_name("later/s:0"): [2, 3]}
    with hr.Session() as sess, pytest.raises(ExecutionError, match="MatMul failed"):
        sess.run(wrong, feed)


def test_dedupe_merges_equal_nodes(mini):
    x = hr.placeholder(hr.float32, [2])
    y = (x + 1.0) * (x + 1.0)
    merged = prune(dedupe(extract([x], [y], [])))
    assert types(merged) == {"Feed": 1, "Const": 1, "Add": 1, "Mul": 1}
    both([y], {x: [1, 2]})


def test_dedupe_keeps_state_and_control_edges(mini):
    v = hr.Variable(0.0)
    first, second = hr.assign_add(v, 1.0), hr.assign_add(v, 1.0)
    with hr.control_dependencies([first, second]):
        third = v + 0.0
    step = dedupe(extract([], [third], []))
    assert types(step)["AssignAddVariable"] == 2
    assert both([third]) == [2.0]


@pytest.mark.parametrize(
    ("left", "right"),
    [(1, 1.0), (0.0, -0.0), (True, 1)],
    ids=["int-float", "zeros", "bool-int"],
)
def test_dedupe_tells_equal_looking_constants_apart(left, right):
    a, b = hr.constant(left), hr.constant(right)
    assert types(dedupe(extract([], [a, b], []))) == {"Const": 2}


def test_verify_refuses_foreign_fetches():
    a, b = hr.constant(1.0), hr.constant(2.0)
    step = extract([], [a], [])
    with pytest.raises(GraphError, match="not in the step's graph"):
        verify(StepGraph(step.graph, (), (b,), ()))


def test_random_programs_agree_with_and_without_passes(mini):
    rng = np.random.default_rng(0)
    for _ in range(30):
        with hr.Graph().as_default():
            x = hr.placeholder(hr.float32, [3])
            pool = [x, hr.constant([1.0, 2.0, 3.0]), hr.fill([3], 2.0)]
            for _ in range(15):
                a, b = (pool[i] for i in rng.integers(0, len(pool), 2))
                op = [hr.add, hr.subtract, hr.multiply][rng.integers(0, 3)]
                pool.append(op(a, b))
            both(pool[-4:], {x: rng.standard_normal(3).astype("f")})
