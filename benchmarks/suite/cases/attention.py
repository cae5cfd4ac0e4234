"""Transformer blocks, and the norms over rows that they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight

UNITS, HEADS = 256, 4
EACH = UNITS // HEADS


def _block_state(rng: np.random.Generator) -> Arrays:
    ones, zeros = np.ones(UNITS, np.float32), np.zeros(UNITS, np.float32)
    return {
        "qkv": weight(rng, UNITS, 3 * UNITS),
        "out": weight(rng, UNITS, UNITS),
        "up": weight(rng, UNITS, 4 * UNITS),
        "up_bias": np.zeros(4 * UNITS, np.float32),
        "down": weight(rng, 4 * UNITS, UNITS),
        "down_bias": zeros.copy(),
        "scale1": ones.copy(),
        "shift1": zeros.copy(),
        "scale2": ones.copy(),
        "shift2": zeros.copy(),
    }


def _norm_dataflow(tf: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
    return (x - mean) * tf.rsqrt(variance + 1e-5) * scale + shift


def _block_dataflow(tf: Any, p: Any, x: Any, batch: int, time: int) -> Any:
    rows = tf.reshape(x, [batch * time, UNITS])
    normed = _norm_dataflow(tf, rows, p["scale1"], p["shift1"])
    parts = tf.reshape(tf.matmul(normed, p["qkv"]), [batch, time, 3, HEADS, EACH])
    query, key, value = tf.unstack(tf.transpose(parts, [2, 0, 3, 1, 4]))
    scores = tf.matmul(query, key, transpose_b=True) * EACH**-0.5
    mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores), value), [0, 2, 1, 3])
    rows += tf.matmul(tf.reshape(mixed, [batch * time, UNITS]), p["out"])
    normed = _norm_dataflow(tf, rows, p["scale2"], p["shift2"])
    hidden = tf.nn.relu(tf.matmul(normed, p["up"]) + p["up_bias"])
    return rows + tf.matmul(hidden, p["down"]) + p["down_bias"]


def _block_torch(torch: Any, p: Any, x: Any, batch: int, time: int) -> Any:
    norm = torch.nn.functional.layer_norm
    attend = torch.nn.functional.scaled_dot_product_attention
    rows = x.reshape(batch * time, UNITS)
    normed = norm(rows, (UNITS,), p["scale1"], p["shift1"])
    parts = (normed @ p["qkv"]).reshape(batch, time, 3, HEADS, EACH).permute(2, 0, 3, 1, 4)
    mixed = attend(parts[0], parts[1], parts[2]).transpose(1, 2).reshape(batch * time, UNITS)
    rows = rows + mixed @ p["out"]
    normed = norm(rows, (UNITS,), p["scale2"], p["shift2"])
    hidden = torch.relu(torch.addmm(p["up_bias"], normed, p["up"]))
    return rows + torch.addmm(p["down_bias"], hidden, p["down"])


def _norm_jax(jax: Any, x: Any, scale: Any, shift: Any) -> Any:
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def _block_jax(jax: Any, p: Any, x: Any, batch: int, time: int) -> Any:
    rows = x.reshape(batch * time, UNITS)
    normed = _norm_jax(jax, rows, p["scale1"], p["shift1"])
    parts = (normed @ p["qkv"]).reshape(batch, time, 3, HEADS, EACH).transpose(2, 0, 3, 1, 4)
    scores = parts[0] @ parts[1].swapaxes(2, 3) * EACH**-0.5
    mixed = (jax.nn.softmax(scores) @ parts[2]).swapaxes(1, 2).reshape(batch * time, UNITS)
    rows = rows + mixed @ p["out"]
    normed = _norm_jax(jax, rows, p["scale2"], p["shift2"])
    return rows + jax.nn.relu(normed @ p["up"] + p["up_bias"]) @ p["down"] + p["down_bias"]


def _block(name: str, batch: int, time: int, *, train: bool) -> Case:
    def inputs(rng: np.random.Generator) -> Arrays:
        made = {"x": normal(rng, batch, time, UNITS)}
        return {**made, "y": normal(rng, batch * time, UNITS)} if train else made

    def dataflow(tf: Any, p: Any, x: Any) -> Any:
        found = _block_dataflow(tf, p, x["x"], batch, time)
        return tf.reduce_mean(tf.squared_difference(found, x["y"])) if train else found

    def torch(torch: Any, p: Any, x: Any) -> Any:
        found = _block_torch(torch, p, x["x"], batch, time)
        return ((found - x["y"]) ** 2).mean() if train else found

    def jax(jax: Any, p: Any, x: Any) -> Any:
        found = _block_jax(jax, p, x["x"], batch, time)
        return ((found - x["y"]) ** 2).mean() if train else found

    return Case(
        name,
        f"block of {UNITS} units, {HEADS} heads, batch {batch}, {time} positions"
        + (", adam" if train else ", no training"),
        dataflow,
        torch,
        jax,
        state=_block_state,
        batch=inputs,
        optimizer="adam" if train else "",
        rate=1e-4,
        steps=8 if train else 40,
        compiles=True,
    )


def _rows(rows: int, columns: int) -> Any:
    return lambda rng: {"x": normal(rng, rows, columns)}


def _layer_norm_state(rng: np.random.Generator) -> Arrays:
    scale = np.ones(8192, np.float32)
    return {"x": normal(rng, 512, 8192), "scale": scale, "shift": np.zeros_like(scale)}


CASES = (
    _block("transformer-train", 4, 128, train=True),
    _block("transformer-infer", 1, 64, train=False),
    Case(
        "layer-norm",
        "layer norm of 512 rows of 8192",
        lambda tf, p, x: _norm_dataflow(tf, p["x"], p["scale"], p["shift"]),
        lambda torch, p, x: torch.nn.functional.layer_norm(p["x"], (8192,), p["scale"], p["shift"]),
        lambda jax, p, x: _norm_jax(jax, p["x"], p["scale"], p["shift"]),
        state=_layer_norm_state,
        batches=1,
        compiles=True,
    ),
    Case(
        "long-softmax",
        "softmax of 256 rows of 16 384",
        lambda tf, p, x: tf.nn.softmax(p["x"] * 0.5),
        lambda torch, p, x: torch.softmax(p["x"] * 0.5, 1),
        lambda jax, p, x: jax.nn.softmax(p["x"] * 0.5, 1),
        state=_rows(256, 16_384),
        batches=1,
        compiles=True,
    ),
)
