"""Programs that take parts, mask and convert: stencils, images, causal masks, places, numerals."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight, whole

GRID, ROUNDS = 300, 20


def _heat(u: Any, q: Any) -> Any:
    """Return a temperature a step later, with a border of zeros around it."""
    around = q[2:, 1:-1] + q[:-2, 1:-1] + q[1:-1, 2:] + q[1:-1, :-2]
    return u + 0.1 * (around - 4.0 * u)


def _stencil_dataflow(tf: Any, p: Any, x: Any) -> Any:
    def body(n: Any, u: Any) -> Any:
        return n + 1, _heat(u, tf.pad(u, [[1, 1], [1, 1]]))

    start = tf.constant(0), tf.identity(p["u"])
    return tf.while_loop(lambda n, _: n < ROUNDS, body, start)[1]


def _stencil_torch(torch: Any, p: Any, x: Any) -> Any:
    u = p["u"]
    for _ in range(ROUNDS):
        u = _heat(u, torch.nn.functional.pad(u, (1, 1, 1, 1)))
    return u


def _stencil_jax(jax: Any, p: Any, x: Any) -> Any:
    return jax.lax.fori_loop(0, ROUNDS, lambda _, u: _heat(u, jax.numpy.pad(u, 1)), p["u"])


_MEANS, _SPREADS = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def _scaled(constant: Any, floats: Any) -> Any:
    return (floats / 255.0 - constant(_MEANS)) / constant(_SPREADS)


LENGTH, UNITS, HEADS, EACH = 100, 192, 6, 32


def _causal_state(rng: np.random.Generator) -> Arrays:
    return {name: weight(rng, UNITS, UNITS) for name in ("query", "key", "value", "out")}


def _causal_dataflow(tf: Any, p: Any, x: Any) -> Any:
    def heads(name: str) -> Any:
        made = tf.reshape(tf.matmul(x["x"], p[name]), [1, LENGTH, HEADS, EACH])
        return tf.transpose(made, [0, 2, 1, 3])

    scores = tf.matmul(heads("query"), heads("key"), transpose_b=True) * EACH**-0.5
    seen = tf.matrix_band_part(tf.ones([LENGTH, LENGTH]), -1, 0)
    mixed = tf.matmul(tf.nn.softmax(scores + (1.0 - seen) * -1e9), heads("value"))
    rows = tf.reshape(tf.transpose(mixed, [0, 2, 1, 3]), [LENGTH, UNITS])
    return tf.matmul(rows, p["out"])


def _causal_torch(torch: Any, p: Any, x: Any) -> Any:
    def heads(name: str) -> Any:
        return (x["x"] @ p[name]).reshape(1, LENGTH, HEADS, EACH).transpose(1, 2)

    attend = torch.nn.functional.scaled_dot_product_attention
    mixed = attend(heads("query"), heads("key"), heads("value"), is_causal=True)
    return mixed.transpose(1, 2).reshape(LENGTH, UNITS) @ p["out"]


def _causal_jax(jax: Any, p: Any, x: Any) -> Any:
    def heads(name: str) -> Any:
        return (x["x"] @ p[name]).reshape(1, LENGTH, HEADS, EACH).transpose(0, 2, 1, 3)

    scores = heads("query") @ heads("key").swapaxes(2, 3) * EACH**-0.5
    seen = jax.numpy.tril(jax.numpy.ones((LENGTH, LENGTH), bool))
    mixed = jax.nn.softmax(jax.numpy.where(seen, scores, -1e9)) @ heads("value")
    return mixed.transpose(0, 2, 1, 3).reshape(LENGTH, UNITS) @ p["out"]


NUMBERS = 500_000


def _divisible(rng: np.random.Generator) -> Arrays:
    return {"a": whole(rng, 1 << 20, NUMBERS) - (1 << 19), "b": 1 + whole(rng, 1000, NUMBERS)}


def _divided_torch(torch: Any, p: Any, x: Any) -> Any:
    a, b = p["a"], p["b"]
    quotient = torch.div(a, b, rounding_mode="floor")
    return ((quotient + (a >> 3)) & (b << 2)) + (torch.remainder(a, b) | (a >> 3))


def _divided_dataflow(tf: Any, p: Any, x: Any) -> Any:
    a, b, bits = p["a"], p["b"], tf.bitwise
    low = bits.right_shift(a, 3)
    masked = bits.bitwise_and(tf.floordiv(a, b) + low, bits.left_shift(b, 2))
    return masked + bits.bitwise_or(tf.mod(a, b), low)


def _divided_jax(jax: Any, p: Any, x: Any) -> Any:
    a, b = p["a"], p["b"]
    return ((a // b + (a >> 3)) & (b << 2)) + ((a % b) | (a >> 3))


POINTS, SIDE = 100_000, 300


def _points(rng: np.random.Generator) -> Arrays:
    return {"values": normal(rng, POINTS), "places": rng.integers(0, SIDE, (POINTS, 2))}


def _points_torch(torch: Any, p: Any, x: Any) -> Any:
    places = p["places"][:, 0], p["places"][:, 1]
    return torch.zeros(SIDE, SIDE).index_put_(places, p["values"], accumulate=True)


def _points_jax(jax: Any, p: Any, x: Any) -> Any:
    zeros, places = jax.numpy.zeros((SIDE, SIDE), "float32"), p["places"]
    return zeros.at[places[:, 0], places[:, 1]].add(p["values"])


def _numerals(rng: np.random.Generator) -> Arrays:
    rows = rng.integers(0, 100_000, (500, 10))
    return {"text": np.array([",".join(map(str, row)) for row in rows], object)}


IMAGES, PIXELS, CLASSES = 4, 96, 6


def _segmented(rng: np.random.Generator) -> Arrays:
    shape = (IMAGES, PIXELS, PIXELS, CLASSES)
    return {"scores": normal(rng, *shape), "truth": rng.random(shape, np.float32)}


def _overlap(softmax: Any, sums: Any, mean: Any, x: Any) -> Any:
    """Return one minus the overlap of predicted and true classes (the loss of Dice)."""
    shares, truth = softmax(x["scores"]), x["truth"]
    both, either = sums(shares * truth), sums(shares + truth)
    return 1.0 - mean(2.0 * both / (either + 1e-6))


def _segments_dataflow(tf: Any, p: Any, x: Any) -> Any:
    loss = _overlap(tf.nn.softmax, lambda y: tf.reduce_sum(y, [1, 2]), tf.reduce_mean, x)
    return loss, tf.argmax(x["scores"], 3)


def _segments_torch(torch: Any, p: Any, x: Any) -> Any:
    loss = _overlap(lambda y: torch.softmax(y, 3), lambda y: y.sum((1, 2)), torch.mean, x)
    return loss, x["scores"].argmax(3)


def _segments_jax(jax: Any, p: Any, x: Any) -> Any:
    loss = _overlap(jax.nn.softmax, lambda y: y.sum((1, 2)), jax.numpy.mean, x)
    return loss, x["scores"].argmax(3)


CASES = (
    Case(
        "stencil",
        f"heat on {GRID} x {GRID}, {ROUNDS} rounds of a border and slices, by while_loop",
        _stencil_dataflow,
        _stencil_torch,
        _stencil_jax,
        state=lambda rng: {"u": normal(rng, GRID, GRID)},
        batches=1,
        steps=10,
    ),
    Case(
        "image-scaling",
        "16 images of 224 x 224 x 3 bytes, each channel scaled to floats",
        lambda tf, p, x: _scaled(tf.constant, tf.cast(x["x"], tf.float32)),
        lambda torch, p, x: _scaled(torch.tensor, x["x"].to(torch.float32)),
        lambda jax, p, x: _scaled(
            lambda values: jax.numpy.array(values, "float32"), x["x"].astype("float32")
        ),
        batch=lambda rng: {"x": rng.integers(0, 256, (16, 224, 224, 3)).astype(np.uint8)},
        batches=2,
        steps=10,
        compiles=True,
    ),
    Case(
        "causal-attention",
        f"attention of {HEADS} heads of {EACH} with a causal mask, {LENGTH} positions, no training",
        _causal_dataflow,
        _causal_torch,
        _causal_jax,
        state=_causal_state,
        batch=lambda rng: {"x": normal(rng, LENGTH, UNITS)},
        steps=40,
        compiles=True,
    ),
    Case(
        "integer-division",
        f"quotients, remainders and shifts of {NUMBERS} int32",
        _divided_dataflow,
        _divided_torch,
        _divided_jax,
        state=_divisible,
        batches=1,
        steps=10,
        compiles=True,
    ),
    Case(
        "scattered-points",
        f"sums of {POINTS} numbers at places of {SIDE} x {SIDE}",
        lambda tf, p, x: tf.scatter_nd(p["places"], p["values"], [SIDE, SIDE]),
        _points_torch,
        _points_jax,
        state=_points,
        batches=1,
        steps=10,
    ),
    Case(
        "segmentation",
        f"softmax of {CLASSES} classes of {IMAGES} x {PIXELS} x {PIXELS} pixels, overlap, argmax",
        _segments_dataflow,
        _segments_torch,
        _segments_jax,
        batch=_segmented,
        batches=2,
        steps=10,
        compiles=True,
    ),
    Case(
        "numerals",
        "500 lines of 10 numbers, split at commas and read",
        lambda tf, p, x: tf.string_to_number(tf.string_split(x["text"], ",").values),
        batch=_numerals,
    ),
)
