"""The programs whose cost is measured, for Headrace and for TensorFlow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.networks import dataflow, layers
from benchmarks.networks.layers import Dense, Layers, Relu
from benchmarks.networks.tasks import Task

# What a perceptron is like where it is not varied.
BATCH, WIDTH, DEPTH = 128, 512, 3
# Extent of the matrices between the nodes of a chain: so small that the nodes are what costs.
EXTENT = 8
# Optimizers of a table, [rows, COLUMNS], of which a step names NAMED rows; and their arguments.
OPTIMIZERS: dict[str, tuple[float, ...]] = {
    "GradientDescentOptimizer": (0.1,),
    "MomentumOptimizer": (0.1, 0.9),
    "AdagradOptimizer": (0.1,),
    "AdadeltaOptimizer": (0.1,),
    "RMSPropOptimizer": (0.1,),
    "FtrlOptimizer": (0.1,),
    "ProximalAdagradOptimizer": (0.1,),
    "LazyAdamOptimizer": (0.1,),
    "AdamOptimizer": (0.1,),
}
COLUMNS, NAMED = 16, 1000


@dataclass(frozen=True)
class Program:
    """A graph, and one step of it.

    Attributes:
        fetch: what a step fetches.
        feeds: placeholders.
        values: what is fed.
        flops: floating-point operations of the products of one step.
    """

    fetch: Any
    feeds: tuple[Any, ...]
    values: tuple[Any, ...]
    flops: float


def build(api: Any, varied: str, value: int) -> Program:
    """Build a program with a library: ``headrace`` or ``tensorflow.compat.v1``."""
    if varied == "nodes":
        return _chain(api, value)
    if varied in OPTIMIZERS:
        return _table(api, varied, value)
    sizes = {"batch": BATCH, "width": WIDTH, "depth": DEPTH, varied: value}
    return _perceptron(api, **sizes)


def _perceptron(api: Any, batch: int, width: int, depth: int) -> Program:
    """Build the training of a network of dense layers."""
    hidden: Layers = (Dense(width), Relu()) * (depth - 1)
    net = (*hidden, Dense(10))
    task = Task(net, (width,), 10, batch, 0.001, batches=1, steps=1, lead_in=0)
    program = dataflow.build(api, task)
    # A product, and both its gradients but that to the images.
    inside = [
        2.0 * batch * size[0] * layer.units
        for layer, size in layers.walk(net, task.size)
        if isinstance(layer, Dense)
    ]
    flops = 3 * sum(inside) - inside[0]
    return Program(program.train, program.feeds, task.feeds()[0], flops)


def _chain(api: Any, nodes: int) -> Program:
    """Build a chain of mixed operations on small matrices, each on the result of the last."""
    x = api.placeholder(api.float32, [EXTENT, EXTENT])
    weights = api.constant(np.full((EXTENT, EXTENT), 0.1, np.float32))
    half = api.constant(0.5, dtype=api.float32)
    turn = (
        lambda h: api.tanh(h),
        lambda h: h + x,
        lambda h: api.matmul(h, weights),
        lambda h: h * half,
        lambda h: api.maximum(h, x),
        lambda h: api.exp(h),
        lambda h: api.nn.softmax(h),
        lambda h: h - x,
    )
    h = x
    # The placeholder and two constants are nodes, too.
    for at in range(max(1, nodes - 3)):
        h = turn[at % len(turn)](h)
    products = (nodes - 3) // len(turn)
    feed = np.linspace(-1, 1, EXTENT * EXTENT, dtype=np.float32).reshape(EXTENT, EXTENT)
    return Program(h, (x,), (feed,), 2.0 * products * EXTENT**3)


def _table(api: Any, optimizer: str, rows: int) -> Program:
    """Build a step of an optimizer that moves some rows of a table towards one."""
    table = api.Variable(api.zeros([rows, COLUMNS]))
    ids = api.placeholder(api.int64, [NAMED])
    loss = api.reduce_sum(api.square(api.gather(table, ids) - 1.0))
    step = getattr(api.train, optimizer)(*OPTIMIZERS[optimizer]).minimize(loss)
    named = np.random.default_rng(0).integers(0, rows, NAMED)
    return Program(step, (ids,), (named,), 0.0)
