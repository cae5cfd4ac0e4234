"""The softmax regression in JAX, the whole step compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.softmax import data

Array = npt.NDArray[np.float32]


def build(request: Request) -> Participant:
    """Compile a step that maps parameters to parameters."""
    del request  # JAX takes the CPUs it sees, and the worker shows it as many as it may use
    parameters: Any = (
        jnp.zeros((data.FEATURES, data.CLASSES), jnp.float32),
        jnp.zeros(data.CLASSES, jnp.float32),
    )

    def cross_entropy(parameters: Any, x: Any, labels: Any) -> Any:
        weights, biases = parameters
        y = jax.nn.softmax(x @ weights + biases)
        return jnp.mean(-jnp.sum(labels * jnp.log(y), axis=1))

    # The old parameters are given away, so that the new ones can take their buffers.
    @partial(jax.jit, donate_argnums=0)
    def updated(parameters: Any, x: Any, labels: Any) -> Any:
        gradients = jax.grad(cross_entropy)(parameters, x, labels)
        return jax.tree.map(lambda p, g: p - data.LEARNING_RATE * g, parameters, gradients)

    def step(images: Array, targets: Array) -> None:
        nonlocal parameters
        parameters = updated(parameters, images, targets)

    return StepLoop(
        step,
        data.feeds(),
        finish=lambda: jax.block_until_ready(parameters),
        final_loss=lambda: data.loss(*parameters),
    )
