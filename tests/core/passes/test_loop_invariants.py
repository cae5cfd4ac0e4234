"""What is the same in each round of a loop: before the loop, and what it was."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError
from headrace.passes import pipeline
from headrace.passes.inline_calls import inline_calls
from headrace.passes.loop_invariants import hoist_invariants
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import verify
from tests.steps import run_ready

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


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
    "view of what moves": (lambda h, w: h * hr.reshape(w, [16])[4:8], "Reshape"),
    "slice": (lambda h, w: h * hr.slice(w, [1, 0], [1, 4]), "Slice"),
    "softmax": (lambda h, w: h @ hr.nn.softmax(w), "Softmax"),
    "floats divided": (lambda h, w: h * (1.0 / w)[0], "Div"),
}
# What stays: it is made larger, a view, random, has an effect, or may fail.
STAYS = {
    "broadcast": (lambda h, w: h + hr.reduce_sum(w) * hr.ones([2, 4]), "Mul"),
    "view": (lambda h, w: h @ hr.reshape(hr.reshape(w, [2, 8]), [4, 4]), "Reshape"),
    "random": (lambda h, w: h + hr.random_normal([2, 4]), "RandomStandardNormal"),
    "waits": (lambda h, w: _after(h, hr.tanh(w)), "Tanh"),
    "integers divided": (lambda h, w: h + hr.cast(_whole(w) // _whole(w), "float32"), "FloorDiv"),
    "gather": (lambda h, w: h + hr.gather(w, _whole(w)[0, :2]), "Gather"),
    "inverse": (lambda h, w: h @ hr.matrix_inverse(w), "MatrixInverse"),
    "check": (lambda h, w: h + hr.check_numerics(w, "wrong")[0], "CheckNumerics"),
    "asks the shape": (lambda h, w: h + hr.reshape(w, _whole(w)[0, :1] * 4)[:4], "Reshape"),
}


def _whole(w):
    return hr.cast(w[:2] > 9.0, "int32") + 4


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


def agree(fetches, monkeypatch, feed=None):
    """Compute with the pass and without it, to the bit; the compiled step must agree, too."""
    moved = run_ready(fetches, feed, executor="plain")
    compiled = run_ready(fetches, feed, verify=True)
    left = tuple(p for p in pipeline.PASSES if p.name != "hoist-invariants")
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "PASSES", left)
        stayed = run_ready(fetches, feed, executor="plain")
    for one, other, third in zip(moved, stayed, compiled, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(third, one, rtol=1e-5, atol=1e-6)
    return moved


@pytest.mark.parametrize("rounds", [0, 1, 4])
@pytest.mark.parametrize("name", [*MOVES, "broadcast", "view"])
def test_values_are_those_of_the_loop_as_it_was_built(name, rounds, monkeypatch) -> None:
    change, _ = {**MOVES, **STAYS}[name]
    agree([loop(change, rounds)[0]], monkeypatch)


@pytest.mark.parametrize("rounds", [0, 1, 4])
@pytest.mark.parametrize("name", [*MOVES, "broadcast", "view"])
def test_values_and_gradients_are_those_of_the_plain_executor(name: str, rounds: int) -> None:
    change, _ = {**MOVES, **STAYS}[name]
    h, w = loop(change, rounds)
    fetches = [h, hr.gradients(hr.reduce_sum(hr.square(h)), w)[0]]
    found = [run_ready(fetches, executor=executor) for executor in ("plan", "plain")]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


# What may fail and is the same in all rounds, with what it says then.
FAILING = {
    "integers divided by 0": (lambda n: 7 // n, "by 0|by zero"),
    "powers of integers": (lambda n: hr.pow(hr.constant(2), n - 1), "negative"),
    "places out of range": (
        lambda n: hr.gather(hr.constant([1, 2, 3]), n + 5),
        "out of range|range",
    ),
    "assertions": (lambda n: _asserted(n), "Assert"),
    "parts": (lambda n: hr.slice(hr.constant([1, 2, 3]), [n + 5], [1])[0], "Slice"),
}


def _asserted(n):
    with hr.control_dependencies([hr.Assert(n > 0, [n])]):
        return hr.identity(n)


@pytest.mark.parametrize("name", FAILING)
def test_a_loop_of_no_rounds_does_not_fail_for_what_it_would_have_computed(name) -> None:
    n, rounds = hr.placeholder("int32", []), hr.placeholder("int32", [])
    found = hr.while_loop(
        lambda i, total: i < rounds,
        lambda i, total: (i + 1, total + FAILING[name][0](n)),
        [hr.constant(0), hr.constant(5)],
    )
    with hr.Session() as session:
        assert session.run(found, {n: 0, rounds: 0}) == (0, 5)
        with pytest.raises(HeadraceError, match=FAILING[name][1]):
            session.run(found, {n: 0, rounds: 1})


def test_what_is_the_same_in_all_rounds_of_two_loops_moves_before_both(monkeypatch) -> None:
    x, w, u = hr.constant(numbers(2, 4)), hr.Variable(numbers(4, 4)), hr.Variable(numbers(4, 4))

    def outer(i, h):
        inner = hr.while_loop(
            lambda j, g: j < 3,
            lambda j, g: (j + 1, hr.tanh(g @ hr.transpose(w) + hr.reduce_mean(hr.square(h)))),
            [hr.constant(0), h @ hr.transpose(u)],
        )
        return i + 1, inner[1]

    h = hr.while_loop(lambda i, h: i < 2, outer, [hr.constant(0), x])[1]
    outside, inside = kinds([h])
    assert outside.count("Transpose") == 2
    assert "Transpose" not in inside
    # What changes with the rounds of the loop around moves between the two.
    assert "ReduceMean" in inside
    agree([h, *hr.gradients(hr.reduce_sum(h), [w, u])], monkeypatch)


@pytest.mark.parametrize("rounds", [0, 3])
@pytest.mark.parametrize("flag", [False, True])
def test_branches_in_a_body_keep_what_they_compute(flag, rounds, monkeypatch) -> None:
    w, chosen = hr.Variable(numbers(4, 4)), hr.placeholder("bool", [])

    def change(h, w):
        return hr.cond(chosen, lambda: h @ hr.transpose(w), lambda: h @ hr.matrix_inverse(w))

    h, w = loop(change, rounds)
    outside, _ = kinds([h])
    assert not {"Transpose", "MatrixInverse"} & {*outside}
    agree([h, hr.gradients(hr.reduce_sum(h), w)[0]], monkeypatch, {chosen: flag})


def test_a_loop_variable_that_never_changes_is_the_same_in_all_rounds(monkeypatch) -> None:
    x, w = hr.constant(numbers(2, 4)), hr.Variable(numbers(4, 4))
    found = hr.while_loop(
        lambda i, h, w: i < 3,
        lambda i, h, w: (i + 1, h @ hr.transpose(w), w),
        [hr.constant(0), x, hr.identity(w)],
    )
    assert "Transpose" in kinds([found[1]])[0]
    agree([found[1], hr.gradients(found[1], w)[0]], monkeypatch)


def test_what_is_read_anew_in_each_round_stays() -> None:
    w = hr.Variable(numbers(4, 4))

    def body(i, h):
        with hr.control_dependencies([hr.assign(w, w * 0.5)]):
            return i + 1, h @ hr.transpose(w.read_value())

    h = hr.while_loop(lambda i, h: i < 3, body, [hr.constant(0), hr.constant(numbers(2, 4))])[1]
    assert "Transpose" not in kinds([h])[0]
    left = numbers(2, 4)
    for k in (1, 2, 3):
        left = left @ (numbers(4, 4) * 0.5**k).T
    np.testing.assert_allclose(run_ready(h), left, rtol=1e-5)


def test_gradients_of_a_loop_do_not_save_its_constants() -> None:
    scale = numbers(4, 4)
    h, w = loop(lambda h, w: h @ (w * hr.constant(scale)))
    hr.gradients(h, w)
    saving = [op for op in hr.get_default_graph().get_operations() if op.type == "While"]
    saved = [name for op in saving for name in op.attrs["saves"]]
    bodies = [op.attrs["body"] for op in saving]
    kept = [b.get_tensor_by_name(n) for b in bodies for n in saved if n in _names(b)]
    assert not [t for t in kept if t.op.type == "Const"]


def _names(body):
    return {t.name for op in body.operations for t in op.outputs}
