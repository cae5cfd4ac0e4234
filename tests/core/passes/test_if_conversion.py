"""Small conditions: both branches and a choice, with nothing to be seen of it but time."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError
from headrace.passes.if_conversion import choose_branches
from headrace.passes.inline_calls import inline_calls
from headrace.passes.prune import extract, prune
from headrace.passes.step_graph import verify
from headrace.passes.trim_loops import trim_unread

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

ORACLE = hr.Config(executor="plain", optimize=False)
COMPILED = hr.Config(compile_after=1, compile_wait=True)


def kinds(fetches):
    """Return the types of the operations of a step."""
    step = trim_unread(inline_calls(prune(extract((), fetches, ()))))
    step = prune(choose_branches(step))
    verify(step)
    return [op.type for op in step.graph.operations]


def both(fetches, feeds):
    """Return what the oracle computes, after comparing it with both executors."""
    found = []
    for config in (ORACLE, hr.Config(executor="plain"), COMPILED):
        with hr.Session(config=config) as session:
            session.run(hr.global_variables_initializer())
            found.append([session.run(fetches, feed) for feed in feeds for _ in range(2)])
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            for a, b in zip(one, two, strict=True):
                assert np.asarray(a).dtype == np.asarray(b).dtype
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return found[0]


def placed(*shape, dtype="float32"):
    return hr.placeholder(dtype, list(shape))


def _taken(x):
    return hr.reduce_sum(x) > 0


# Branches that are chosen from, of x [4, 3] in float32.
CHOSEN = {
    "arithmetic": (lambda x: x * 2 + 1, lambda x: x - 3),
    "functions": (lambda x: hr.exp(x), lambda x: hr.log(x)),
    "the same": (lambda x: x, lambda x: x),
    "constant": (lambda x: hr.zeros([4, 3]), lambda x: x),
    "several": (lambda x: [x, x * 2, x[0] > 0], lambda x: [x + 1, x, x[1] > 0]),
    "reductions": (lambda x: hr.reduce_max(x, 0), lambda x: hr.reduce_sum(x, 0)),
    "flipped": (lambda x: hr.reverse(x, [1]), lambda x: x),
    "parts": (lambda x: hr.concat([x[2:], x[:2]], 0), lambda x: hr.pad(x[1:3], [[1, 1], [0, 0]])),
    "product": (lambda x: hr.matmul(x, hr.ones([3, 3])), lambda x: x),
    "in another": (
        lambda x: hr.cond(x[0, 0] > 0, lambda: x + 1, lambda: -x),
        lambda x: hr.cond(x[1, 1] > 0, lambda: x * x, lambda: x / x),
    ),
}
# Branches of which only one may run, and the operation that is the reason.
STAYS = {
    "integers divided": lambda x: hr.cast(hr.cast(x, "int32") // hr.cast(x, "int32"), "float32"),
    "gather": lambda x: hr.gather(x, hr.cast(x[:, 0], "int32")),
    "random": lambda x: x + hr.random_normal([4, 3]),
    "check": lambda x: hr.check_numerics(x, "wrong"),
    "inverse": lambda x: hr.concat([hr.matrix_inverse(x[:3]), x[3:]], 0),
    "large": lambda x: x * hr.reduce_sum(hr.ones([400, 400]) * x[0, 0]),
    "product of large ones": lambda x: x * hr.reduce_sum(hr.matmul(*[hr.tile(x, [8, 9])[:27]] * 2)),
    "waits": lambda x: _after(x),
    "elsewhere": lambda x: _elsewhere(x),
    "of another shape": lambda x: x[:2],
    "of unknown shape": lambda x: hr.boolean_mask(x, x[:, 0] > -9e9),
    "effect": lambda x: _assigned(x),
}


def _after(x):
    with hr.control_dependencies([hr.exp(x)]):
        return hr.identity(x)


def _elsewhere(x):
    with hr.device("/cpu:1"):
        return x * 2


def _assigned(x):
    with hr.control_dependencies([hr.Variable(0.0).assign(x[0, 0])]):
        return x * 2


FEEDS = [
    np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32) + shift
    for shift in (0.5, -0.5, 0.0)
]
ODD = [
    np.full((4, 3), value, np.float32)
    for value in (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e38, 1e-45)
]


@pytest.mark.parametrize("name", CHOSEN)
def test_both_branches_and_a_choice_compute_the_same(name):
    x = placed(4, 3)
    then, other = CHOSEN[name]
    found = hr.cond(_taken(x), lambda: then(x), lambda: other(x))
    results = found if isinstance(found, list) else [found]
    assert "If" not in kinds(results)
    both(results, [{x: value} for value in (*FEEDS, *ODD)])


@pytest.mark.parametrize("name", [n for n in CHOSEN if n != "constant"])
def test_gradients_are_those_of_the_branch_that_is_taken(name):
    x = placed(4, 3)
    then, other = CHOSEN[name]
    found = hr.cond(_taken(x), lambda: then(x), lambda: other(x))
    results = found[:2] if isinstance(found, list) else [found]
    grads = hr.gradients(results, [x])
    assert "If" not in kinds(grads) or name in ("in another", "parts", "reductions")
    both([*results, *grads], [{x: value} for value in (*FEEDS, *ODD)])


def test_second_derivatives_are_the_same():
    x = placed(4, 3)
    y = hr.cond(_taken(x), lambda: hr.exp(x) * x, lambda: x * x * x)
    (first,) = hr.gradients([y], [x])
    second = hr.gradients([first], [x])
    both([y, first, *second], [{x: value} for value in FEEDS])


@pytest.mark.parametrize("name", STAYS)
def test_conditions_stay_whose_branches_may_fail_cost_much_or_have_effects(name):
    x = placed(4, 3)
    found = hr.cond(_taken(x), lambda: STAYS[name](x), lambda: x)
    assert "If" in kinds([found])


def test_what_is_not_taken_fails_nobody():
    x = placed(4, 3)
    n = hr.cast(hr.reduce_sum(x), "int32")
    y = hr.cond(n > 0, lambda: hr.cast(7 // n, "float32") + x, lambda: x)
    with hr.Session() as session:
        assert (session.run(y, {x: np.zeros((4, 3), np.float32)}) == 0).all()


def test_a_nan_that_is_not_taken_is_not_in_the_gradient():
    x = placed(3)
    y = hr.cond(x[0] > 0, lambda: hr.sqrt(x), lambda: x * 2)
    (grad,) = hr.gradients([y], [x])
    assert "If" not in kinds([grad])
    ((value,), *_) = both([grad], [{x: np.float32([-1, -1, 0])}])
    assert value.tolist() == [2, 2, 2]


@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (5,)])
def test_of_all_dtypes_and_of_no_elements(dtype, shape):
    x, p = placed(*shape, dtype=dtype), placed(dtype="bool")
    if dtype == "bool":
        y = hr.cond(p, lambda: hr.logical_not(x), lambda: hr.logical_and(x, p))
    else:
        y = hr.cond(p, lambda: x + x, lambda: x * hr.constant(3, dtype))
    assert "If" not in kinds([y])
    value = (np.random.default_rng(0).normal(size=shape) * 50).astype(dtype)
    both([y], [{x: value, p: True}, {x: value, p: False}])


def test_who_waits_for_a_condition_waits_for_what_it_waits_for():
    x, v = placed(3), hr.Variable([1.0, 2.0, 3.0])
    with hr.control_dependencies([v.assign(x)]):
        y = hr.cond(x[0] > 0, lambda: x + 1, lambda: x - 1)
    with hr.control_dependencies([y]):
        read = v.read_value()
    both([read, y], [{x: np.float32([s, 2, 3])} for s in (1, -1)])


def test_conditions_in_loops_are_chosen_from():
    x = placed(4)
    _, y = hr.while_loop(
        lambda i, y: i < 9,
        lambda i, y: (i + 1, hr.cond(y[0] > 2, lambda: y / 3, lambda: y * y + 1)),
        [0, x],
    )
    both([y, *hr.gradients(y, [x])], [{x: np.float32([s, 0.5, 2, -1])} for s in (0.1, 2.5)])


def test_unfit_predicates_are_refused_as_ever():
    p = hr.placeholder("bool", None)
    x = placed(3)
    y = hr.cond(p, lambda: x + 1, lambda: x)
    with hr.Session() as session, pytest.raises(HeadraceError, match="must be a scalar"):
        session.run(y, {x: np.zeros(3, np.float32), p: [True, False]})


def _program(rng, x, p, depth=0):
    """Return a tensor [3] made at random of others."""

    def one():
        return [x, x * 0.5, hr.ones([3])][rng.integers(3)]

    steps = [
        lambda v: v + one(),
        lambda v: v * one(),
        lambda v: hr.tanh(v),
        lambda v: hr.maximum(v, one()),
        lambda v: hr.reverse(v, [0]),
        lambda v: v - hr.reduce_mean(v),
        lambda v: hr.where(v > 0, v, one()),
    ]
    v = one()
    for _ in range(rng.integers(1, 4)):
        if depth < 3 and rng.random() < 0.5:
            w = v
            v = hr.cond(
                [p, hr.reduce_sum(v) > 0, w[1] < 0.3][rng.integers(3)],
                lambda w=w: _program(rng, w, p, depth + 1),
                lambda w=w: _program(rng, w + x, p, depth + 1),
            )
        else:
            v = steps[rng.integers(len(steps))](v)
    return v


SEEDS = [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 30))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs(seed):
    rng = np.random.default_rng(seed)
    x, p = placed(3), placed(dtype="bool")
    y = _program(rng, x, p) + hr.cond(p, lambda: x, lambda: _program(rng, x, p))
    (grad,) = hr.gradients([y], [x])
    both(
        [y, grad],
        [
            {x: value, p: truth}
            for value in (rng.normal(size=3).astype(np.float32), np.float32([np.nan, 1, -np.inf]))
            for truth in (True, False)
        ],
    )
