"""Whole programs keep their results when they are simplified."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import headrace as hr
import headrace_testing.samples as samples
from headrace.errors import NoGradientError
from headrace.graph.schema import OPS
from headrace.passes.prune import extract
from headrace.passes.simplify.engine import simplify
from headrace.passes.step_graph import StepGraph, verify
from headrace.testing import ConformanceError, Sample
from headrace_testing.build import add_node, flat, make_values, nested, one_per_kind, swept

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")


def _rows() -> list[Sample]:
    rows: list[Sample] = []
    for module in pkgutil.iter_modules(samples.__path__):
        found = importlib.import_module(f"{samples.__name__}.{module.name}")
        for value in vars(found).values():
            if isinstance(value, list | tuple):
                rows += [row for row in value if isinstance(row, Sample)]
    unique = {id(row): row for row in rows}
    return [row for row in unique.values() if not (OPS[row.op].stateful or OPS[row.op].builtin)]


ROWS = _rows()


def _same(got: np.ndarray, wanted: np.ndarray, tolerance: float = 2e-5) -> None:
    """Require equal results; where the original is not finite, the other may be better."""
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if got.dtype.kind not in "fcV":
        assert (got == wanted).all()
        return
    if got.dtype.itemsize == 2:
        got, wanted, tolerance = got.astype("f"), wanted.astype("f"), 0.05
    judged = np.isfinite(wanted)
    size = max(1.0, float(np.abs(wanted[judged]).max(initial=0)))
    np.testing.assert_allclose(got[judged], wanted[judged], rtol=tolerance, atol=tolerance * size)


def _check(step: StepGraph, feeds: list[np.ndarray], steps: Any) -> tuple[str, ...]:
    new, rewrites = simplify(step)
    verify(new)
    again, more = simplify(new)
    assert not more, [str(m) for m in more]
    assert steps.text(again) == steps.text(new)
    with np.errstate(all="ignore"):
        for got, wanted in zip(steps.run(new, feeds), steps.run(step, feeds), strict=True):
            _same(got, wanted)
    return tuple(r.rule for r in rewrites)


# All rows with known shapes, and some of each op without.
VARIANTS = [(row, True) for row in ROWS] + [(row, False) for row in ROWS[::4]]


@pytest.mark.parametrize(
    ("row", "known"),
    VARIANTS,
    ids=[f"{i}-{row.op}{'' if known else '-unknown'}" for i, (row, known) in enumerate(VARIANTS)],
)
def test_samples_and_their_gradients(row, known, steps):
    for dtype in one_per_kind(swept(row))[:1]:
        values = make_values(row.inputs, dtype, row.seed)
        with hr.Graph().as_default():
            fed: list[Any] = []

            def enter(array: np.ndarray, fed: list[Any] = fed) -> Any:
                kind = "string" if array.dtype == object else array.dtype
                fed.append(hr.placeholder(kind, array.shape if known else None))
                return fed[-1]

            node = add_node(row, nested(enter, values))
            outputs = [t for t in node.outputs if t.dtype.kind not in ("list", "resource")]
            if not outputs:
                return
            fetches = list(outputs)
            xs = [t for t in fed if t.dtype.is_floating]
            if xs and outputs[0].dtype.is_floating and not node.schema.no_gradient:
                try:
                    grads = hr.gradients(outputs[0], xs)
                except NoGradientError:
                    grads = []
                fetches += [hr.convert_to_tensor(g) for g in grads if g is not None]
            step = extract(fed, fetches, [])
            if any(op.type in ("If", "While", "Call") for op in step.graph.operations):
                return
            try:
                steps.run(step, flat(values))
            except ConformanceError:
                # Such as the inverse of a singular matrix, in the gradient.
                return
            _check(step, flat(values), steps)


def _grown(rng: np.random.Generator, x: Any, y: Any) -> list[Any]:
    """Return tensors of a random program on two matrices."""
    pool = [x, y, hr.constant(2.0), hr.ones([4, 3]), hr.zeros([3])]

    def pick(rank: int | None = None) -> Any:
        found = [t for t in pool[-12:] + pool[:2] if rank is None or t.shape.rank == rank]
        return found[rng.integers(len(found))] if found else x

    def numbers() -> float:
        return float(rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, 3.0, -0.25]))

    makers = [
        lambda: pick() + numbers(),
        lambda: numbers() - pick(),
        lambda: pick() * numbers(),
        lambda: pick() / float(rng.choice([1.0, 2.0, -4.0, 3.0])),
        lambda: -pick(),
        lambda: hr.tanh(pick()),
        lambda: hr.square(pick()),
        lambda: pick() ** float(rng.choice([0.0, 1.0, 2.0, 3.0])),
        lambda: hr.nn.relu(pick()),
        lambda: hr.nn.softmax(pick(2)),
        lambda: hr.log(hr.nn.softmax(pick(2))),
        lambda: hr.log(hr.sigmoid(pick())),
        lambda: hr.transpose(pick()),
        lambda: hr.identity(pick()),
        lambda: hr.expand_dims(pick(1), int(rng.integers(-2, 2))),
        lambda: hr.reshape(pick(2), [-1]),
        lambda: hr.cast(hr.cast(pick(), hr.float64), hr.float32),
        lambda: hr.reduce_sum(pick(2), int(rng.integers(2)), keepdims=bool(rng.integers(2))),
        lambda: hr.reduce_mean(pick()),
        lambda: hr.reduce_max(pick(2), 1, keepdims=True),
        lambda: hr.broadcast_to(hr.reduce_mean(pick()), [2, 3]),
        lambda: hr.concat([pick(1)], 0),
        lambda: hr.pad(pick(2), [[0, 0], [0, 0]]),
    ]
    binary = [hr.add, hr.subtract, hr.multiply, hr.maximum]
    while len(pool) < 40:
        if rng.random() < 0.4:
            a, b = pick(), pick()
            dims = [(t.shape.known) for t in (a, b)]
            try:
                np.broadcast_shapes(*dims)
            except ValueError:
                if len(dims[0]) == len(dims[1]) == 2 and dims[0][1] == dims[1][1]:
                    pool.append(hr.matmul(a, hr.transpose(b)) / 3.0)
                continue
            pool.append(binary[rng.integers(len(binary))](a, b))
        else:
            pool.append(makers[rng.integers(len(makers))]())
    return pool[-6:]


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed, steps):
    rng = np.random.default_rng(seed)
    x, y = hr.placeholder("float32", [4, 3]), hr.placeholder("float32", [4, 3])
    outputs = _grown(rng, x, y)
    total = hr.add_n([hr.reduce_mean(hr.tanh(t)) for t in outputs])
    grads = [g for g in hr.gradients(total, [x, y]) if g is not None]
    feeds = [rng.standard_normal((4, 3)).astype("f") for _ in range(2)]
    rules = _check(extract([x, y], [*outputs, *grads], []), feeds, steps)
    assert rules


def _losses(labels: Any, logits: Any) -> dict[str, Any]:
    p = hr.nn.softmax(logits)
    return {
        "seeds": hr.reduce_mean(-hr.reduce_sum(labels * hr.log(p), reduction_indices=[1])),
        "keepdims": hr.reduce_mean(-hr.reduce_sum(labels * hr.log(p), axis=-1, keepdims=True)),
        "sum": -hr.reduce_sum(labels * hr.log(p)),
        "mean of all": -hr.reduce_mean(labels * hr.log(p)),
        "negated inside": hr.reduce_sum(-labels * hr.log(p)) / 128.0,
        "log first": hr.reduce_mean(hr.reduce_sum(hr.log(p) * labels, 1) * -1.0),
        "log_softmax": -hr.reduce_mean(hr.reduce_sum(labels * hr.nn.log_softmax(logits), 1)),
        "op": hr.reduce_mean(
            hr.nn.softmax_cross_entropy_with_logits_v2(labels=labels, logits=logits)
        ),
        "sparse op": hr.reduce_mean(
            hr.nn.sparse_softmax_cross_entropy_with_logits(
                labels=hr.argmax(labels, 1), logits=logits
            )
        ),
        "sigmoid": -hr.reduce_mean(
            labels * hr.log(hr.sigmoid(logits)) + (1 - labels) * hr.log(1 - hr.sigmoid(logits))
        ),
        "no labels": -hr.reduce_mean(hr.log(p)),
    }


LOSSES = (
    *("seeds", "keepdims", "sum", "mean of all", "negated inside", "log first", "log_softmax"),
    *("op", "sparse op", "sigmoid", "no labels"),
)


@pytest.mark.parametrize("name", LOSSES)
def test_cross_entropies_and_their_gradients_are_stable(name, steps):
    labels, logits = hr.placeholder("float32", [5, 4]), hr.placeholder("float32", [5, 4])
    loss = _losses(labels, logits)[name]
    (grad,) = hr.gradients(loss, [logits])
    step = extract([labels, logits], [loss, grad], [])
    rng = np.random.default_rng(1)
    hot = np.eye(4, dtype="f")[rng.integers(0, 4, 5)]
    _check(step, [hot, rng.standard_normal((5, 4)).astype("f")], steps)
    new, _ = simplify(step)
    types = [op.type for op in new.graph.operations]
    assert "Log" not in types
    assert "Div" not in types
    assert "Reciprocal" not in types
    # The naive forms take logarithms of 0 here, and divide by it.
    far = np.array(rng.permuted(np.resize([-1e3, 500, 2e3, 0], (5, 4)), axis=1), "f")
    results = steps.run(new, [hot, far])
    assert all(np.isfinite(r).all() for r in results)
    wide = [np.asarray(a, "d") for a in (hot, far)]
    labels, logits = hr.placeholder("float64", [5, 4]), hr.placeholder("float64", [5, 4])
    exact = _losses(labels, logits)[name] if name != "sigmoid" else None
    if exact is not None:
        better, _ = simplify(extract([labels, logits], [exact, *hr.gradients(exact, logits)], []))
        for got, wanted in zip(results, steps.run(better, wide), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_the_seeds_program_becomes_the_stable_gradient(steps):
    x = hr.placeholder("float32", [128, 20], name="x")
    labels = hr.placeholder("float32", [128, 10], name="labels")
    w = hr.placeholder("float32", [20, 10], name="w")
    logits = hr.matmul(x, w)
    loss = hr.reduce_mean(-hr.reduce_sum(labels * hr.log(hr.nn.softmax(logits)), axis=1))
    step = extract([x, labels, w], [loss, *hr.gradients(loss, [logits, w])], [])
    new, _ = simplify(step)
    slope = (
        "Mul(Sub(Mul(Softmax(MatMul(x, w)), ReduceSum(labels, axis=(1,), keepdims=True)), labels), "
        "0.0078125)"
    )
    assert steps.text(new) == [
        "ReduceMean(Neg(ReduceSum(Mul(labels, LogSoftmax(MatMul(x, w))), axis=1)))",
        slope,
        f"MatMul(x, {slope}, transpose_a=True)",
    ]
