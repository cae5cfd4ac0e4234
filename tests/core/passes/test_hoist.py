"""What is the same in each round of a loop: before the loop, and what it was."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.passes.hoist import hoist_invariants
from headrace.passes.inline import inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import verify

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


@pytest.fixture(autouse=True)
def graph():
    with hr.Graph().as_default() as graph:
        yield graph


def numbers(*shape):
    return np.random.default_rng(0).normal(size=shape).astype(np.float32) * 0.5


def loop(change, rounds=3):
    x, w = hr.constant(numbers(2, 4)), hr.Variable(numbers(4, 4))
    found = hr.while_loop(
        lambda i, h: i < rounds, lambda i, h: (i + 1, change(h, w)), [hr.constant(0), x]
    )
    return found[1], w


def kinds(fetches):
    """Return the types of operations of a step, and those in the bodies of its loops."""
    step = hoist_invariants(inline_calls(prune(extract((), fetches, ()))))
    verify(step)
    found = [op.type for op in step.graph.operations]
    bodies = [op.attrs["body"] for op in step.graph.operations if op.type == "While"]
    return found, [op.type for body in bodies for op in body.operations]


# What moves out of a body, and its type.
MOVES = {
    "transpose": (lambda h, w: hr.matmul(h, hr.transpose(w)), "Transpose"),
    "elementwise": (lambda h, w: hr.matmul(h, hr.tanh(w)), "Tanh"),
    "product": (lambda h, w: h @ hr.matmul(w, w, transpose_a=True), "MatMul"),
    "part": (lambda h, w: hr.concat([h @ p for p in hr.split(w, 2, 1)], 1), "Split"),
    "reduce": (lambda h, w: h * hr.reduce_mean(hr.square(w), 0), "ReduceMean"),
}
# What stays: it is made larger, a view, random, has an effect, or may fail.
STAYS = {
    "broadcast": (lambda h, w: h + hr.reduce_sum(w) * hr.ones([2, 4]), "Mul"),
    "view": (lambda h, w: h * hr.reshape(w, [4, 4])[0], "Reshape"),
    "random": (lambda h, w: h + hr.random_normal([2, 4]), "RandomStandardNormal"),
    "waits": (lambda h, w: _after(h, hr.tanh(w)), "Tanh"),
}


def _after(h, t):
    with hr.control_dependencies([t]):
        return hr.identity(h)


@pytest.mark.parametrize("name", MOVES)
def test_what_does_not_change_moves(name: str) -> None:
    change, kind = MOVES[name]
    outside, inside = kinds([loop(change)[0]])
    assert kind in outside
    assert inside.count(kind) < (2 if kind == "MatMul" else 1)


@pytest.mark.parametrize("name", STAYS)
def test_what_is_no_gain_or_may_not_move_stays(name: str) -> None:
    change, kind = STAYS[name]
    outside, inside = kinds([loop(change)[0]])
    assert kind in inside
    assert kind not in outside


@pytest.mark.parametrize("rounds", [0, 1, 4])
@pytest.mark.parametrize("name", sorted({**MOVES} | {"broadcast": 0, "view": 0}))
def test_values_and_gradients_are_those_of_the_plain_executor(name: str, rounds: int) -> None:
    change, _ = {**MOVES, **STAYS}[name]
    h, w = loop(change, rounds)
    fetches = [h, hr.gradients(hr.reduce_sum(hr.square(h)), w)[0]]
    found = []
    for executor in ("plan", "plain"):
        with hr.Session(config=hr.Config(executor=executor)) as session:
            session.run(hr.global_variables_initializer())
            found.append(session.run(fetches))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
