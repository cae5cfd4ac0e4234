"""Parts of models whose gradients compute them again: the same values, and nothing else twice."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import GraphError

pytestmark = pytest.mark.needs("backend-cpu")

DATA = np.random.default_rng(0).normal(size=[4, 8])


def matrix(seed):
    return hr.Variable(hr.constant(np.random.default_rng(seed).normal(size=[8, 8]) / 3))


def plain(h, w, state):
    return hr.tanh(hr.matmul(h, w)) * hr.exp(-h * h)


def dropped(h, w, state):
    return hr.nn.dropout(hr.tanh(hr.matmul(h, w)), rate=0.5, seed=3) + hr.sin(h)


def counting(h, w, state):
    with hr.control_dependencies([state.assign_add(1.0)]):
        return hr.sigmoid(hr.matmul(h, w)) + hr.sin(h)


def looping(h, w, state):
    return hr.while_loop(
        lambda k, s: k < 3, lambda k, s: (k + 1, hr.tanh(hr.matmul(s, w))), [0, h]
    )[1]


def branching(h, w, state):
    return hr.cond(hr.reduce_sum(h) > 0, lambda: hr.sin(hr.matmul(h, w)), lambda: hr.tanh(h) * 2)


def several(h, w, state):
    u = hr.tanh(hr.matmul(h, w))
    first, second = hr.train.recompute(lambda a: [hr.sin(a) * u, hr.cos(a)])(h)
    return first * second


def passing(h, w, state):
    return hr.tanh(hr.train.recompute(lambda a: (a, hr.exp(-a * a)))(hr.matmul(h, w))[0]) * h


PARTS = [plain, dropped, counting, looping, branching, several, passing]


def losses(part, wrap, executor="plan", inside_loop=False):
    with hr.Graph().as_default() as graph:
        hr.set_random_seed(5)
        x = hr.placeholder(hr.float64, [4, 8])
        state = hr.Variable(hr.constant(0.0), trainable=False)
        ws = [matrix(i) for i in range(3)]
        h = x
        for w in ws:
            # The variable is not an argument: gradients reach what a part uses, too.
            call = wrap(lambda h, w=w: part(h, w, state))
            if inside_loop:
                h = hr.while_loop(lambda k, s: k < 2, lambda k, s, c=call: (k + 1, c(s)), [0, h])[1]
            else:
                h = call(h)
        loss = hr.reduce_sum(h * h)
        found = hr.gradients(loss, [x, *ws])
        with hr.Session(config=hr.Config(executor=executor, verify=True)) as session:
            session.run(hr.global_variables_initializer())
            values = session.run([loss, *found], {x: DATA})
            return [*values, session.run(state)], graph


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("part", PARTS)
def test_gradients_are_the_same(part, executor):
    expected, _ = losses(part, lambda f: f, executor)
    found, _ = losses(part, hr.train.recompute, executor)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("part", [plain, branching, several])
def test_parts_of_loop_bodies(part):
    expected, _ = losses(part, lambda f: f, inside_loop=True)
    found, _ = losses(part, hr.train.recompute, inside_loop=True)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


def test_a_part_is_built_once():
    calls = []

    @hr.train.recompute
    def part(h):
        calls.append(h)
        return hr.sin(h)

    with hr.Graph().as_default():
        x = hr.placeholder(hr.float64, [])
        hr.gradients(part(x) * part(x), [x])
    assert len(calls) == 2


def test_the_inside_is_not_kept():
    """Of a part only what goes in is used by the gradient of the forward pass's nodes."""
    _, graph = losses(plain, hr.train.recompute)
    kept = {
        t.op.type
        for op in graph.operations
        if "gradients" in op.name and "again" not in op.origin
        for t in op.inputs
        if "gradients" not in t.op.name and "/again/" not in t.op.name
    }
    assert not kept & {"Tanh", "Exp", "Neg"}


def test_second_derivatives():
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float64, [3])

        def f(h):
            return hr.sin(h) * hr.exp(h)

        values = []
        for y in (f(x), hr.train.recompute(f)(x)):
            (g,) = hr.gradients(y, [x])
            values.append(hr.gradients(g, [x])[0])
        with hr.Session() as session:
            np.testing.assert_allclose(*session.run(values, {x: [0.1, 0.2, 0.3]}), rtol=1e-12)


def test_a_part_that_returns_no_tensors_is_refused():
    with hr.Graph().as_default(), pytest.raises(GraphError, match="must return a tensor"):
        hr.train.recompute(lambda: 3)()
