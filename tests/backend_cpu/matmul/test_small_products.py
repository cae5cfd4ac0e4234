"""Products of many small matrices, which are sums of elements, against the plain executor."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

COMPILED = hr.Config(compile_after=0, compile_wait=True)
ORACLE = hr.Config(executor="plain", optimize=False)


def _values(rng, shape, dtype, odd):
    value = (rng.normal(size=shape) * 3).astype(dtype)
    if odd and value.dtype.kind == "f":
        places = rng.random(shape) < 0.1
        value[places] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0], int(places.sum()))
    return value


@pytest.mark.parametrize("seed", range(40))
def test_random_products_and_their_gradients(seed):
    rng = np.random.default_rng(seed)
    rows, terms, columns = (int(n) for n in rng.integers([1, 0, 1], [10, 6, 10]))
    lead = [(64,), (0,), (7, 9), (1, 40), (33,)][seed % 5]
    other = tuple(1 if rng.random() < 0.3 else n for n in lead)
    dtype = ["float32", "float64", "int32", "float32"][seed % 4]
    down, across = (bool(b) for b in rng.integers(0, 2, 2))
    a = (*lead, *((terms, rows) if down else (rows, terms)))
    b = (*other, *((columns, terms) if across else (terms, columns)))
    odd = bool(rng.random() < 0.3)
    with hr.Graph().as_default():
        x, y = hr.placeholder(dtype, a), hr.placeholder(dtype, b)
        found = [hr.matmul(x, y, transpose_a=down, transpose_b=across)]
        if dtype != "int32":
            weights = hr.constant(rng.normal(size=found[0].shape.as_list()).astype(dtype))
            found += hr.gradients(found, [x, y], [weights])
        feeds = {x: _values(rng, a, dtype, odd), y: _values(rng, b, dtype, odd)}
        seen = []
        for config in (ORACLE, COMPILED):
            with hr.Session(config=config) as session:
                seen.append(session.run(found, feeds))
    for plain, compiled in zip(*seen, strict=True):
        assert plain.dtype == compiled.dtype
        np.testing.assert_allclose(compiled, plain, rtol=1e-4, atol=1e-4)


def test_products_of_many_small_matrices_are_one_kernel():
    x, y = hr.placeholder("float32", [64, 3, 3]), hr.placeholder("float32", [64, 3, 3])
    step = hr.matmul(hr.matmul(x, y) + x, y, transpose_b=True)
    feeds = {t: np.ones((64, 3, 3), np.float32) for t in (x, y)}
    with hr.Session(config=COMPILED) as session:
        session.run(step, feeds)
        report = session.explain(step, feeds)
    assert "small-products" in str(report)
    assert "MatMul" not in [op for part in report.walk() for w in part.works for op in w.ops]
