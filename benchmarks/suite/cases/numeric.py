"""Numerical programs that are no networks: clusters, decompositions, solvers, option prices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal

POINTS, CENTRES, AXES = 20_000, 64, 32


def _points(rng: np.random.Generator) -> Arrays:
    return {"points": normal(rng, POINTS, AXES), "centres": normal(rng, CENTRES, AXES)}


def _k_means_dataflow(tf: Any, p: Any, x: Any) -> Any:
    points, centres = p["points"], p["centres"]
    far = tf.reduce_sum(tf.square(centres), 1) - 2.0 * tf.matmul(points, centres, transpose_b=True)
    nearest = tf.argmin(far, 1)
    sums = tf.unsorted_segment_sum(points, nearest, CENTRES)
    counts = tf.unsorted_segment_sum(tf.ones([POINTS]), nearest, CENTRES)
    return sums / tf.maximum(counts, 1.0)[:, None]


def _k_means_torch(torch: Any, p: Any, x: Any) -> Any:
    points, centres = p["points"], p["centres"]
    nearest = ((centres**2).sum(1) - 2.0 * points @ centres.T).argmin(1)
    sums = torch.zeros(CENTRES, AXES).index_add_(0, nearest, points)
    counts = torch.bincount(nearest, minlength=CENTRES)
    return sums / counts.clamp_min(1)[:, None]


def _k_means_jax(jax: Any, p: Any, x: Any) -> Any:
    points, centres = p["points"], p["centres"]
    nearest = ((centres**2).sum(1) - 2.0 * points @ centres.T).argmin(1)
    sums = jax.ops.segment_sum(points, nearest, CENTRES)
    counts = jax.ops.segment_sum(jax.numpy.ones(POINTS, "float32"), nearest, CENTRES)
    return sums / jax.numpy.maximum(counts, 1.0)[:, None]


def _pca_dataflow(tf: Any, p: Any, x: Any) -> Any:
    centred = p["x"] - tf.reduce_mean(p["x"], 0)
    covariance = tf.matmul(centred, centred, transpose_a=True) / float(POINTS)
    return tf.self_adjoint_eigvals(covariance)


def _pca_torch(torch: Any, p: Any, x: Any) -> Any:
    centred = p["x"] - p["x"].mean(0)
    return torch.linalg.eigvalsh(centred.T @ centred / POINTS)


def _pca_jax(jax: Any, p: Any, x: Any) -> Any:
    centred = p["x"] - p["x"].mean(0)
    return jax.numpy.linalg.eigvalsh(centred.T @ centred / POINTS)


OBSERVED = 400


def _observed(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, OBSERVED, 4), "y": normal(rng, OBSERVED, 1)}


def _gaussian_dataflow(tf: Any, p: Any, x: Any) -> Any:
    norms = tf.reduce_sum(tf.square(x["x"]), 1)
    far = norms[:, None] + norms - 2.0 * tf.matmul(x["x"], x["x"], transpose_b=True)
    kernel = tf.exp(-0.5 * far * tf.exp(p["scale"])) + tf.exp(p["noise"]) * tf.eye(OBSERVED)
    factor = tf.cholesky(kernel)
    white = tf.matrix_triangular_solve(factor, x["y"])
    spread = tf.reduce_sum(tf.log(tf.matrix_diag_part(factor)))
    return (0.5 * tf.reduce_sum(tf.square(white)) + spread) / float(OBSERVED)


def _gaussian(library: Any, eye: Any, factorise: Any, solve: Any, p: Any, x: Any) -> Any:
    norms = (x["x"] ** 2).sum(1)
    far = norms[:, None] + norms - 2.0 * x["x"] @ x["x"].T
    kernel = library.exp(-0.5 * far * library.exp(p["scale"])) + library.exp(p["noise"]) * eye
    factor = factorise(kernel)
    white = solve(factor, x["y"])
    spread = library.log(library.diagonal(factor)).sum()
    return (0.5 * (white**2).sum() + spread) / OBSERVED


def _gaussian_torch(torch: Any, p: Any, x: Any) -> Any:
    def solve(factor: Any, y: Any) -> Any:
        return torch.linalg.solve_triangular(factor, y, upper=False)

    return _gaussian(torch, torch.eye(OBSERVED), torch.linalg.cholesky, solve, p, x)


def _gaussian_jax(jax: Any, p: Any, x: Any) -> Any:
    def solve(factor: Any, y: Any) -> Any:
        return jax.scipy.linalg.solve_triangular(factor, y, lower=True)

    eye = jax.numpy.eye(OBSERVED, dtype="float32")
    return _gaussian(jax.numpy, eye, jax.numpy.linalg.cholesky, solve, p, x)


SIZE, ROUNDS = 1000, 30


def _system(rng: np.random.Generator) -> Arrays:
    half = normal(rng, SIZE, SIZE, scale=SIZE**-0.5)
    matrix = half @ half.T + np.eye(SIZE, dtype=np.float32)
    return {"a": matrix.astype(np.float32), "b": normal(rng, SIZE, 1)}


def _conjugate_dataflow(tf: Any, p: Any, x: Any) -> Any:
    def body(n: Any, found: Any, rest: Any, way: Any, size: Any) -> Any:
        moved = tf.matmul(p["a"], way)
        step = size / tf.reduce_sum(way * moved)
        found += step * way
        rest -= step * moved
        after = tf.reduce_sum(rest * rest)
        return n + 1, found, rest, rest + after / size * way, after

    b = tf.identity(p["b"])
    start = tf.constant(0), tf.zeros_like(b), b, b, tf.reduce_sum(b * b)
    return tf.while_loop(lambda n, *_: n < ROUNDS, body, start)[1]


def _conjugate_torch(torch: Any, p: Any, x: Any) -> Any:
    a, b = p["a"], p["b"]
    found, rest, way, size = torch.zeros_like(b), b, b, (b * b).sum()
    for _ in range(ROUNDS):
        moved = a @ way
        step = size / (way * moved).sum()
        found, rest = found + step * way, rest - step * moved
        after = (rest * rest).sum()
        way, size = rest + after / size * way, after
    return found


def _conjugate_jax(jax: Any, p: Any, x: Any) -> Any:
    a, b = p["a"], p["b"]

    def body(_: Any, held: Any) -> Any:
        found, rest, way, size = held
        moved = a @ way
        step = size / (way * moved).sum()
        found, rest = found + step * way, rest - step * moved
        after = (rest * rest).sum()
        return found, rest, rest + after / size * way, after

    start = jax.numpy.zeros_like(b), b, b, (b * b).sum()
    return jax.lax.fori_loop(0, ROUNDS, body, start)[0]


OPTIONS, PASSES = 2_000_000, 1_000_000
_RATE = 0.02


def _options(rng: np.random.Generator) -> Arrays:
    def between(low: float, high: float) -> Any:
        return rng.uniform(low, high, OPTIONS).astype(np.float32)

    return {
        "spot": between(10, 100),
        "strike": between(10, 100),
        "years": between(0.1, 2),
        "sigma": between(0.1, 0.5),
    }


def _price(log: Any, sqrt: Any, exp: Any, erf: Any, p: Any) -> Any:
    """Return the prices of calls by the formula of Black and Scholes (1973)."""
    years, sigma = p["years"], p["sigma"]
    width = sigma * sqrt(years)
    d1 = (log(p["spot"] / p["strike"]) + (_RATE + 0.5 * sigma * sigma) * years) / width
    d2 = d1 - width

    def normal_distribution(x: Any) -> Any:
        return 0.5 * (1.0 + erf(x * math.sqrt(0.5)))

    discounted = p["strike"] * exp(-_RATE * years)
    return p["spot"] * normal_distribution(d1) - discounted * normal_distribution(d2)


def _elementwise(name: str, what: str, dataflow: Any, torch: Any, jax: Any, state: Any) -> Case:
    return Case(name, what, dataflow, torch, jax, state=state, batches=1, steps=5, compiles=True)


def _positive(rng: np.random.Generator) -> Arrays:
    return {"x": rng.uniform(0.1, 8, PASSES).astype(np.float32)}


CASES = (
    Case(
        "k-means",
        f"a step of k-means: {POINTS} points of {AXES}, {CENTRES} centres",
        _k_means_dataflow,
        _k_means_torch,
        _k_means_jax,
        state=_points,
        batches=1,
    ),
    Case(
        "pca",
        f"covariance of {POINTS} x 64 and its eigenvalues",
        _pca_dataflow,
        _pca_torch,
        _pca_jax,
        state=lambda rng: {"x": normal(rng, POINTS, 64)},
        batches=1,
    ),
    Case(
        "gaussian-process",
        f"likelihood of {OBSERVED} observations by cholesky, and its gradient, sgd",
        _gaussian_dataflow,
        _gaussian_torch,
        _gaussian_jax,
        state=lambda _: {name: np.zeros((), np.float32) for name in ("scale", "noise")},
        batch=_observed,
        optimizer="sgd",
        steps=5,
    ),
    Case(
        "conjugate-gradients",
        f"{ROUNDS} rounds of conjugate gradients on {SIZE} x {SIZE}, by while_loop",
        _conjugate_dataflow,
        _conjugate_torch,
        _conjugate_jax,
        state=_system,
        batches=1,
        steps=5,
    ),
    _elementwise(
        "option-prices",
        f"Black-Scholes prices of {OPTIONS} calls",
        lambda tf, p, x: _price(tf.log, tf.sqrt, tf.exp, tf.erf, p),
        lambda torch, p, x: _price(torch.log, torch.sqrt, torch.exp, torch.erf, p),
        lambda jax, p, x: _price(
            jax.numpy.log, jax.numpy.sqrt, jax.numpy.exp, jax.scipy.special.erf, p
        ),
        _options,
    ),
    _elementwise(
        "gamma-function",
        f"lgamma of {PASSES} numbers",
        lambda tf, p, x: tf.lgamma(p["x"]),
        lambda torch, p, x: torch.lgamma(p["x"]),
        lambda jax, p, x: jax.lax.lgamma(p["x"]),
        _positive,
    ),
    _elementwise(
        "powers-and-waves",
        f"x**1.7 + sin(3 x) cos(x) of {PASSES} numbers",
        lambda tf, p, x: tf.pow(p["x"], 1.7) + tf.sin(3.0 * p["x"]) * tf.cos(p["x"]),
        lambda torch, p, x: p["x"] ** 1.7 + torch.sin(3.0 * p["x"]) * torch.cos(p["x"]),
        lambda jax, p, x: p["x"] ** 1.7 + jax.numpy.sin(3.0 * p["x"]) * jax.numpy.cos(p["x"]),
        _positive,
    ),
)
