"""The networks in JAX, the whole step compiled, channels last."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.networks import layers as lay
from benchmarks.networks import reference
from benchmarks.networks.layers import Layer, Layers
from benchmarks.networks.tasks import TASKS
from benchmarks.participant import Participant, Request, StepLoop


def build(request: Request) -> Participant:
    """Compile a step that maps parameters to parameters."""
    task = TASKS[request.workload]
    parameters: Any = [jnp.array(value) for value in task.first_values()]

    def cross_entropy(parameters: Any, images: Any, labels: Any) -> Any:
        logits = forward(task.layers, images, iter(parameters))
        log_probabilities = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.take_along_axis(log_probabilities, labels[:, None], axis=1))

    # The old parameters are given away, so that the new ones can take their buffers.
    @partial(jax.jit, donate_argnums=0)
    def updated(parameters: Any, images: Any, labels: Any) -> Any:
        gradients = jax.grad(cross_entropy)(parameters, images, labels)
        return [p - task.rate * g for p, g in zip(parameters, gradients, strict=True)]

    def step(images: Any, labels: Any) -> None:
        nonlocal parameters
        parameters = updated(parameters, images, labels)

    return StepLoop(
        step,
        task.feeds(),
        finish=lambda: jax.block_until_ready(parameters),
        final_loss=lambda: reference.loss(task, parameters),
        lead_in=task.lead_in,
    )


def forward(layers: Layers, x: Any, parameters: Iterator[Any]) -> Any:
    """Run layers one after the other."""
    for layer in layers:
        x = _apply(layer, x, parameters)
    return x


def _apply(layer: Layer, x: Any, parameters: Iterator[Any]) -> Any:
    """Run one layer with its parameters."""
    match layer:
        case lay.Conv():
            x = lax.conv_general_dilated(
                x,
                next(parameters),
                (layer.stride, layer.stride),
                lay.border(layer.padding)[1:3],
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
            )
            return x + next(parameters) if layer.bias else x
        case lay.Norm():
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
            factor = next(parameters) * lax.rsqrt(variance + layer.epsilon)
            return (x - mean) * factor + next(parameters)
        case lay.Relu():
            return jax.nn.relu(x)
        case lay.MaxPool():
            window = (1, layer.window, layer.window, 1)
            strides = (1, layer.stride, layer.stride, 1)
            border = lay.border(layer.padding)
            return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, border)
        case lay.GlobalMean():
            return x.mean((1, 2))
        case lay.Flatten():
            return x.reshape(len(x), -1)
        case lay.Dense():
            product = x @ next(parameters)
            return product + next(parameters)
        case lay.Residual():
            body = forward(layer.body, x, parameters)
            return body + forward(layer.shortcut, x, parameters)
