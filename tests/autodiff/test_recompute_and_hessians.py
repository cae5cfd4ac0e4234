"""Gradients that compute their function again, and second derivatives as matrices."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.graph.function import functions_in
from tests.steps import run_ready

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]


def test_recomputed_gradients_equal_kept_ones():
    x = hr.placeholder(hr.float64, [3])
    w = hr.Variable(hr.constant([1.0, -2.0, 0.5], hr.float64))

    def layer(h):
        return hr.tanh(h * w) * hr.exp(h)

    kept, again = x, x
    for _ in range(4):
        kept, again = layer(kept), hr.recompute_grad(layer)(again)
    pairs = [run_ready(hr.gradients(y, [x, w]), {x: [0.1, 0.2, 0.3]}) for y in (kept, again)]
    for a, b in zip(*pairs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_gradient_waits_until_it_is_needed(graph):
    x = hr.placeholder(hr.float64, [3])
    y = hr.recompute_grad(lambda h: hr.sin(hr.exp(h)))(x)
    before = len(graph)
    hr.gradients(y * y, [x])
    repeated = [op for op in graph.operations[before:] if op.type in ("Exp", "Sin")]
    assert len(repeated) == 2
    assert all(op.inputs[0].op.control_inputs for op in repeated if op.type == "Exp")


@pytest.mark.parametrize("shape", [[3], [2, 2], []])
def test_hessians(shape):
    x = hr.placeholder(hr.float64, shape)
    y = hr.reduce_sum(hr.sin(x) * hr.reduce_sum(x * x))
    (found,) = hr.hessians(y, x)
    assert found.shape.as_list() == [*shape, *shape]
    value = np.linspace(0.1, 0.7, int(np.prod(shape))).reshape(shape)

    def plain(v):
        flat = v.ravel()
        # d/dx of sum(sin x) * sum(x^2), twice.
        first, square = np.sin(flat).sum(), flat @ flat
        cross = np.cos(flat)[:, None] * 2 * flat[None, :]
        return cross + cross.T + np.diag(2 * first - np.sin(flat) * square)

    np.testing.assert_allclose(
        run_ready(found, {x: value}).reshape(value.size, value.size), plain(value), rtol=1e-10
    )


def test_hessians_of_variables_and_of_what_does_not_depend():
    v = hr.Variable([1.0, 2.0])
    other = hr.Variable([1.0])
    y = hr.reduce_sum(v * v * v)
    found = run_ready(hr.hessians(y, [v, other]))
    np.testing.assert_allclose(found[0], [[6, 0], [0, 12]])
    np.testing.assert_array_equal(found[1], [[0]])


def test_a_loop_without_gradient_stacks_nothing(graph):
    x = hr.placeholder(hr.float64, [])
    y = hr.while_loop(lambda s: s < 5.0, lambda s: s * s + x, [x])
    hr.gradients(y, [x])
    assert {f.name for f in functions_in(graph)} >= {"while/body", "while/body_grad"}
    with hr.Session() as session:
        session.run(y, {x: 2.0})
        prepared = next(iter(session._prepared.values()))
        nodes = prepared.step.plan.nodes
        loops = [op for node in nodes for op in node.ops if op.type == "While"]
    assert [op.attrs["saves"] for op in loops] == [()]
