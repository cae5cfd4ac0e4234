"""The language model in JAX, the whole step compiled; time steps in a scan or unrolled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.lstm import data

UNROLLED = "jit, unrolled"


def build(request: Request) -> Participant:
    """Compile a step that maps parameters to parameters."""
    parameters: Any = jax.tree.map(jnp.array, data.parameters())
    unroll = data.STEPS if request.variant == UNROLLED else 1

    # The old parameters are given away, so that the new ones can take their buffers.
    @partial(jax.jit, donate_argnums=0)
    def updated(parameters: Any, words: Any, targets: Any) -> Any:
        gradients = jax.grad(_cross_entropy)(parameters, words, targets, unroll)
        norm = jnp.sqrt(sum(jnp.sum(g * g) for g in jax.tree.leaves(gradients)))
        rate = data.LEARNING_RATE * jnp.minimum(1, data.MAX_NORM / norm)
        return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients)

    def step(words: Any, targets: Any) -> None:
        nonlocal parameters
        parameters = updated(parameters, words, targets)

    return StepLoop(
        step,
        data.feeds(),
        finish=lambda: jax.block_until_ready(parameters),
        final_loss=lambda: data.loss(parameters),
        lead_in=data.LEAD_IN,
    )


def _cross_entropy(parameters: Any, words: Any, targets: Any, unroll: int) -> Any:
    """Return the mean loss of a batch."""

    def turn(state: Any, x: Any) -> Any:
        new = []
        for layer, (output, cell) in enumerate(state):
            joined = jnp.concatenate([x, output], 1)
            gates = joined @ parameters.kernels[layer] + parameters.biases[layer]
            write, candidate, keep, show = jnp.split(gates, 4, 1)
            kept = cell * jax.nn.sigmoid(keep + data.FORGET_BIAS)
            cell = kept + jax.nn.sigmoid(write) * jnp.tanh(candidate)
            x = jnp.tanh(cell) * jax.nn.sigmoid(show)
            new.append((x, cell))
        return new, x

    zeros = jnp.zeros((data.BATCH, data.UNITS))
    inputs = parameters.embedding[words].swapaxes(0, 1)
    _, outputs = lax.scan(turn, [(zeros, zeros)] * data.LAYERS, inputs, unroll=unroll)
    logits = outputs.reshape(-1, data.UNITS) @ parameters.projection
    log_probabilities = jax.nn.log_softmax(logits + parameters.projection_bias)
    labels = targets.T.reshape(-1, 1)
    return -jnp.mean(jnp.take_along_axis(log_probabilities, labels, axis=1))
