"""What a step over ranks sends: few frames, whatever number of variables it has."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.ranks(2), pytest.mark.needs("backend-cpu"), pytest.mark.needs("train")]
STEPS = 20


def network() -> tuple[Any, Any, Any]:
    """Return the batch, the loss and the update of four layers with eight variables on the ps."""
    rng = np.random.default_rng(0)
    sizes = [16, 32, 32, 32, 4]
    x = hr.placeholder(hr.float32, [8, sizes[0]])
    h: Any = x
    for i in range(4):
        with hr.device("/job:ps/task:0"):
            start = rng.normal(size=(sizes[i], sizes[i + 1])) * 0.3
            w = hr.Variable(start.astype(np.float32))
            b = hr.Variable(np.zeros(sizes[i + 1], np.float32))
        h = hr.tanh(hr.matmul(h, w) + b)
    loss = hr.reduce_mean(hr.square(h))
    return x, loss, hr.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_a_network_of_eight_variables_costs_four_frames(cluster: Any) -> None:
    assert os.environ["OMPI_COMM_WORLD_SIZE"] == "2"
    if not cluster.is_chief:
        return
    batch = np.random.default_rng(1).normal(size=(8, 16)).astype(np.float32)
    transport = cluster._node.transport
    with hr.Session(cluster.target) as session:
        x, loss, update = network()
        session.run(hr.global_variables_initializer())
        session.run([loss, update], {x: batch})
        before = transport.frames_sent + transport.frames_received
        losses = [session.run([loss, update], {x: batch})[0] for _ in range(STEPS)]
        frames = transport.frames_sent + transport.frames_received - before
    # RUN and the gradients there; the variables and DONE back.
    assert frames == 4 * STEPS
    assert losses == sorted(losses, reverse=True)
