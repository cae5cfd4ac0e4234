"""Programs whose numbers are few: what is left is the cost of a step and of its nodes."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Arrays, Case, normal, weight

LAYERS, UNITS = 4, 128


def _layers(rng: np.random.Generator) -> Arrays:
    made: Arrays = {}
    for n in range(LAYERS):
        made[f"w{n}"] = weight(rng, UNITS, UNITS)
        made[f"b{n}"] = np.zeros(UNITS, np.float32)
    return made


def _dense(product: Any, act: Any, p: Any, x: Any) -> Any:
    for n in range(LAYERS):
        x = act(product(x, p[f"w{n}"]) + p[f"b{n}"])
    return x


SCALARS = 60


def _controller(exp: Any, p: Any, x: Any) -> Any:
    """Return a recurrence of scalars, as control programs compute them."""
    level, speed = x["level"], x["speed"]
    for n in range(SCALARS):
        force = p["gain"] * (1.0 - level) - p["drag"] * speed
        speed = speed + 0.01 * force
        level = level + 0.01 * speed * exp(-0.001 * n * level * level)
    return level, speed


def _scalars(**values: float) -> Any:
    made = {name: np.full((), value, np.float32) for name, value in values.items()}
    return lambda _: {name: value.copy() for name, value in made.items()}


CHAINS, LINKS, LENGTH = 100, 50, 64


def _nodes(tanh: Any, p: Any, x: Any) -> Any:
    """Return the sum of chains: two nodes a link, ten thousand in all."""
    total = None
    for chain in range(CHAINS):
        y = x["x"] * (1.0 + chain / CHAINS)
        for link in range(LINKS):
            y = tanh(y) if link % 10 == 9 else y * 0.99 + p["b"]
        total = y if total is None else total + y
    return total


VARIABLES = 100


def _small(rng: np.random.Generator) -> Arrays:
    return {f"v{n}": normal(rng, 8, 8) for n in range(VARIABLES)}


def _distances(mean: Any, p: Any, x: Any) -> Any:
    total = mean((p["v0"] - x["y"]) ** 2)
    for n in range(1, VARIABLES):
        total = total + mean((p[f"v{n}"] - x["y"]) ** 2)
    return total


CASES = (
    Case(
        "batch-of-one",
        f"{LAYERS} layers of {UNITS} relu units, batch 1, no training",
        lambda tf, p, x: _dense(tf.matmul, tf.nn.relu, p, x["x"]),
        lambda torch, p, x: _dense(torch.mm, torch.relu, p, x["x"]),
        lambda jax, p, x: _dense(jax.numpy.matmul, jax.nn.relu, p, x["x"]),
        state=_layers,
        batch=lambda rng: {"x": normal(rng, 1, UNITS)},
        steps=200,
        compiles=True,
    ),
    Case(
        "scalars",
        f"a recurrence of {SCALARS} steps on scalars",
        lambda tf, p, x: _controller(tf.exp, p, x),
        lambda torch, p, x: _controller(torch.exp, p, x),
        lambda jax, p, x: _controller(jax.numpy.exp, p, x),
        state=_scalars(gain=3.0, drag=0.5),
        batch=_scalars(level=0.2, speed=0.1),
        steps=50,
    ),
    Case(
        "ten-thousand-nodes",
        f"{CHAINS} chains of {LINKS} links on {LENGTH} numbers, about 10 000 nodes",
        lambda tf, p, x: _nodes(tf.tanh, p, x),
        lambda torch, p, x: _nodes(torch.tanh, p, x),
        lambda jax, p, x: _nodes(jax.numpy.tanh, p, x),
        state=lambda rng: {"b": normal(rng, LENGTH)},
        batch=lambda rng: {"x": normal(rng, LENGTH)},
        steps=3,
    ),
    Case(
        "many-variables",
        f"adam on {VARIABLES} variables of 8 x 8",
        lambda tf, p, x: _distances(tf.reduce_mean, p, x),
        lambda torch, p, x: _distances(torch.mean, p, x),
        lambda jax, p, x: _distances(jax.numpy.mean, p, x),
        state=_small,
        batch=lambda rng: {"y": normal(rng, 8, 8)},
        optimizer="adam",
        rate=0.01,
    ),
)
