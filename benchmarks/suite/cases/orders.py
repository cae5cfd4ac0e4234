"""Cumulative sums, orders, other types than float32, random numbers, strings and tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight, whole

ROWS, COLUMNS, BEST = 200, 10_000, 50


def _rows(rng: np.random.Generator) -> Arrays:
    return {"x": normal(rng, ROWS, COLUMNS)}


def _on_rows(name: str, what: str, dataflow: Any, torch: Any, jax: Any, steps: int) -> Case:
    what = f"{what} of {ROWS} rows of {COLUMNS}"
    return Case(name, what, dataflow, torch, jax, state=_rows, batches=1, steps=steps)


def _double(rng: np.random.Generator) -> Arrays:
    return {
        "w": rng.standard_normal((256, 256)) / 16,
        "v": rng.standard_normal((256, 1)) / 16,
    }


def _double_batch(rng: np.random.Generator) -> Arrays:
    return {"x": rng.standard_normal((512, 256)), "y": rng.standard_normal((512, 1))}


INTEGERS = 2_000_000


def _mix(xor: Any, add: Any, x: Any) -> Any:
    """Return a hash of int32 by shifts that multiplications stand for."""
    h = xor(x, add(x * 33, 7))
    h = xor(h, add(h * 5, 13))
    return xor(h, add(h * 9, -11)) + x


def _bools_dataflow(tf: Any, p: Any, x: Any) -> Any:
    a, b = p["a"] > 0.0, p["b"] > 0.0
    both = tf.logical_or(tf.logical_and(a, b), tf.logical_not(tf.logical_or(a, b)))
    return tf.reduce_sum(tf.cast(both, tf.int32), axis=1), tf.reduce_any(both, axis=0)


def _bools_torch(torch: Any, p: Any, x: Any) -> Any:
    a, b = p["a"] > 0.0, p["b"] > 0.0
    both = (a & b) | ~(a | b)
    return both.sum(1, dtype=torch.int32), both.any(0)


def _bools_jax(jax: Any, p: Any, x: Any) -> Any:
    a, b = p["a"] > 0.0, p["b"] > 0.0
    both = (a & b) | ~(a | b)
    return both.sum(1, dtype="int32"), both.any(0)


RANDOM = 1_000_000


def _noise_dataflow(tf: Any, p: Any, x: Any) -> Any:
    drawn = tf.random_normal([RANDOM], seed=1) * p["scale"]
    return tf.reduce_mean(tf.square(drawn + tf.random_uniform([RANDOM], seed=2)))


def _noise_torch(torch: Any, p: Any, x: Any) -> Any:
    drawn = torch.randn(RANDOM) * p["scale"]
    return (drawn + torch.rand(RANDOM)).square().mean()


def _noise_jax(jax: Any, p: Any, x: Any) -> Any:
    first, second = jax.random.split(jax.random.key(x["seed"][0]))
    drawn = jax.random.normal(first, RANDOM, "float32") * p["scale"]
    return jax.numpy.square(drawn + jax.random.uniform(second, RANDOM, "float32")).mean()


def _dropout_state(rng: np.random.Generator) -> Arrays:
    return {"w": weight(rng, 784, 1024), "v": weight(rng, 1024, 10)}


def _dropout_batch(rng: np.random.Generator) -> Arrays:
    return {
        "x": normal(rng, 256, 784),
        "labels": whole(rng, 10, 256).astype(np.int64),
        "seed": whole(rng, 1 << 30, 1),
    }


def _dropout_dataflow(tf: Any, p: Any, x: Any) -> Any:
    hidden = tf.nn.dropout(tf.nn.relu(tf.matmul(x["x"], p["w"])), rate=0.5, seed=3)
    logits = tf.matmul(hidden, p["v"])
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x["labels"], logits=logits)
    return tf.reduce_mean(losses)


def _dropout_torch(torch: Any, p: Any, x: Any) -> Any:
    f = torch.nn.functional
    return f.cross_entropy(f.dropout(torch.relu(x["x"] @ p["w"]), 0.5) @ p["v"], x["labels"])


def _dropout_jax(jax: Any, p: Any, x: Any) -> Any:
    jnp, hidden = jax.numpy, jax.nn.relu(x["x"] @ p["w"])
    # Other masks each time a batch comes again, as the others have them: with the same ones a
    # network learns more than it shows without.
    turn = jax.lax.bitcast_convert_type(jax.lax.stop_gradient(p["v"][0, 0]), "uint32")
    key = jax.random.fold_in(jax.random.key(x["seed"][0]), turn)
    kept = jax.random.bernoulli(key, 0.5, hidden.shape)
    scores = jax.nn.log_softmax(jnp.where(kept, hidden * 2.0, 0.0) @ p["v"])
    return -jnp.take_along_axis(scores, x["labels"][:, None], 1).mean()


WORDS = 1000


def _lines(rng: np.random.Generator) -> Arrays:
    words = rng.integers(0, 2 * WORDS, (256, 12))
    return {"text": np.array([" ".join(f"word{n}" for n in row) for row in words], object)}


def _lookup_dataflow(tf: Any, p: Any, x: Any) -> Any:
    words = tf.string_split(x["text"]).values
    known = tf.constant([f"word{n}" for n in range(WORDS)])
    numbers = tf.range(WORDS, dtype=tf.int64)
    initializer = tf.lookup.KeyValueTensorInitializer(known, numbers)
    ids = tf.lookup.StaticHashTable(initializer, -1).lookup(words)
    buckets = tf.string_to_hash_bucket_fast(words, 100)
    return tf.where(ids < 0, buckets + WORDS, ids)


CASES = (
    _on_rows(
        "cumulative-sum",
        "cumulative sums",
        lambda tf, p, x: tf.cumsum(p["x"], 1),
        lambda torch, p, x: torch.cumsum(p["x"], 1),
        lambda jax, p, x: jax.numpy.cumsum(p["x"], 1),
        steps=5,
    ),
    _on_rows(
        "sort",
        "sorting",
        lambda tf, p, x: tf.sort(p["x"], 1),
        lambda torch, p, x: torch.sort(p["x"], 1).values,
        lambda jax, p, x: jax.numpy.sort(p["x"], 1),
        steps=2,
    ),
    _on_rows(
        "top-k",
        f"the {BEST} largest",
        lambda tf, p, x: tuple(tf.nn.top_k(p["x"], BEST)),
        lambda torch, p, x: tuple(torch.topk(p["x"], BEST, 1)),
        lambda jax, p, x: tuple(jax.lax.top_k(p["x"], BEST)),
        steps=5,
    ),
    Case(
        "float64",
        "a layer of 256 tanh units on 512 x 256 in float64, sgd",
        lambda tf, p, x: tf.reduce_mean(
            tf.squared_difference(tf.matmul(tf.tanh(tf.matmul(x["x"], p["w"])), p["v"]), x["y"])
        ),
        lambda torch, p, x: ((torch.tanh(x["x"] @ p["w"]) @ p["v"] - x["y"]) ** 2).mean(),
        lambda jax, p, x: ((jax.numpy.tanh(x["x"] @ p["w"]) @ p["v"] - x["y"]) ** 2).mean(),
        state=_double,
        batch=_double_batch,
        optimizer="sgd",
    ),
    Case(
        "integers",
        f"a hash of {INTEGERS} int32",
        lambda tf, p, x: _mix(tf.bitwise.bitwise_xor, tf.add, p["x"]),
        lambda torch, p, x: _mix(torch.bitwise_xor, torch.add, p["x"]),
        lambda jax, p, x: _mix(jax.numpy.bitwise_xor, jax.numpy.add, p["x"]),
        state=lambda rng: {"x": whole(rng, 1000, INTEGERS)},
        batches=1,
        compiles=True,
    ),
    Case(
        "bools",
        "logic on 1000 x 1000 comparisons, counted by row and by column",
        _bools_dataflow,
        _bools_torch,
        _bools_jax,
        state=lambda rng: {"a": normal(rng, 1000, 1000), "b": normal(rng, 1000, 1000)},
        batches=1,
        compiles=True,
    ),
    Case(
        "random-numbers",
        f"{RANDOM} normal and {RANDOM} uniform numbers, and a mean",
        _noise_dataflow,
        _noise_torch,
        _noise_jax,
        state=lambda _: {"scale": np.float32(2).reshape(1)},
        batch=lambda rng: {"seed": whole(rng, 1 << 30, 1)},
        steps=5,
        tolerance=0.02,
    ),
    Case(
        "dropout",
        "784, 1024, 10 with dropout of a half, batch 256, sgd",
        _dropout_dataflow,
        _dropout_torch,
        _dropout_jax,
        state=_dropout_state,
        batch=_dropout_batch,
        optimizer="sgd",
        tolerance=0.2,
    ),
    Case(
        "text-lookup",
        f"256 lines split into words, looked up among {WORDS} or hashed",
        _lookup_dataflow,
        batch=_lines,
    ),
)
