"""Random programs of elementwise operations and reductions: compiled, they compute the same."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.session.config import Config
from headrace_cpu.fusion import kernel as fused_kernel

SIZES = (1, 2, 3, 5, 17, 70)
UNARY = (
    hr.tanh, hr.sigmoid, hr.square, hr.nn.relu, hr.abs, hr.negative,
    lambda x: hr.exp(hr.minimum(x, 2.0)), lambda x: hr.sqrt(hr.abs(x)),
    lambda x: hr.where_v2(x > 0.0, x, 0.5 * x), lambda x: hr.cast(x > 0.2, x.dtype),
    hr.nn.softplus, hr.identity,
)  # fmt: skip
BINARY = (
    hr.add, hr.subtract, hr.multiply, hr.maximum, hr.minimum,
    lambda x, y: x / (hr.abs(y) + 1.0), lambda x, y: hr.where_v2(x < y, x, y),
)  # fmt: skip
FOLDS = (hr.reduce_sum, hr.reduce_mean, hr.reduce_max, hr.reduce_min, hr.reduce_logsumexp)


def program(rng: random.Random, feeds: list[Any]) -> list[Any]:
    """Return fetches of a random program on placeholders."""
    pool = list(feeds)
    for _ in range(rng.randint(3, 14)):
        x = rng.choice(pool[-6:])
        kind = rng.random()
        rank = x.shape.rank
        if kind < 0.35:
            made = rng.choice(UNARY)(x)
        elif kind < 0.65:
            others = [t for t in pool if fits(x, t)]
            made = rng.choice(BINARY)(x, rng.choice(others))
        elif kind < 0.85 and rank:
            axes = rng.sample(range(rank), rng.randint(1, rank))
            # Sums of many grow; the mean keeps numbers near 1.
            made = rng.choice(FOLDS)(x, axis=sorted(axes), keepdims=rng.random() < 0.5)
        elif kind < 0.9 and rank:
            made = hr.nn.softmax(x, axis=rng.randrange(rank))
        elif kind < 0.95 and rank:
            made = hr.transpose(x)
        else:
            made = hr.expand_dims(x, rng.randint(0, rank)) if rank < 4 else hr.identity(x)
        pool.append(made)
    made = pool[len(feeds) :]
    return [made[-1], *rng.sample(made, min(3, len(made)))]


def fits(x: Any, y: Any) -> bool:
    try:
        np.broadcast_shapes(x.shape.known, y.shape.known)
    except ValueError:
        return False
    return max(x.shape.rank, y.shape.rank) <= 4


@pytest.mark.parametrize("seed", range(60))
def test_random_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_kernel, "_WORTH_A_THREAD", 1)
    rng = random.Random(seed)
    dtype = rng.choice(("float32", "float64"))
    shape = [rng.choice(SIZES) for _ in range(rng.randint(1, 3))]
    shapes = [shape, shape, [d if rng.random() < 0.6 else 1 for d in shape], shape[-1:]]
    numbers = np.random.default_rng(seed)
    arrays = [numbers.normal(size=s).astype(dtype) for s in shapes]
    with hr.Graph().as_default() as graph:
        feeds = [hr.placeholder(dtype, s) for s in shapes]
        fetches = program(rng, feeds)
    values = dict(zip(feeds, arrays, strict=True))
    with hr.Session(graph=graph, config=Config(executor="plain")) as session:
        wanted = session.run(fetches, values)
    threads = 1 + seed % 2
    with hr.Session(graph=graph, config=Config(compile_after=1, threads=threads)) as session:
        for _ in range(3):
            for got, want in zip(session.run(fetches, values), wanted, strict=True):
                rtol = 2e-4 if dtype == "float32" else 1e-9
                np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
