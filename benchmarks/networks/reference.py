"""The loss by which all participants are compared: one forward pass in NumPy, in float64."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.networks import layers as lay
from benchmarks.networks.layers import Layer, Layers
from benchmarks.networks.tasks import Task

Array = npt.NDArray[Any]

# Enough to see a parameter that is off, few enough for the largest network.
_EXAMPLES = 4


def loss(task: Task, values: Iterable[npt.ArrayLike]) -> float:
    """Return the mean cross-entropy of trained parameters on examples of the first batch.

    Args:
        task: what was trained.
        values: its parameters, in the order and the shapes of ``task.parameters()``.

    Returns:
        The loss; batch normalisation takes its moments from these examples.
    """
    images, labels = task.feeds()[0]
    count = min(_EXAMPLES, task.batch)
    logits = _forward(task.layers, images[:count].astype(np.float64), iter(values))
    logits -= logits.max(axis=1, keepdims=True)
    log_sums = np.log(np.exp(logits).sum(axis=1))
    return float((log_sums - logits[np.arange(count), labels[:count]]).mean())


def _forward(layers: Layers, x: Array, values: Iterator[npt.ArrayLike]) -> Array:
    """Run layers one after the other."""
    for layer in layers:
        x = _apply(layer, x, values)
    return x


def _apply(layer: Layer, x: Array, values: Iterator[npt.ArrayLike]) -> Array:
    """Run one layer, and take its parameters from ``values``."""
    match layer:
        case lay.Conv():
            kernel = _next(values)
            windows = _windows(np.pad(x, lay.border(layer.padding)), layer.kernel, layer.stride)
            x = np.tensordot(windows, kernel, axes=([4, 5, 3], [0, 1, 2]))
            return x + _next(values) if layer.bias else x
        case lay.Norm():
            mean, variance = x.mean(axis=(0, 1, 2)), x.var(axis=(0, 1, 2))
            scaled: Array = (x - mean) / np.sqrt(variance + layer.epsilon) * _next(values)
            return scaled + _next(values)
        case lay.Relu():
            return np.maximum(x, 0)
        case lay.MaxPool():
            padded = np.pad(x, lay.border(layer.padding), constant_values=-np.inf)
            return np.asarray(_windows(padded, layer.window, layer.stride).max(axis=(4, 5)))
        case lay.GlobalMean():
            return np.asarray(x.mean(axis=(1, 2)))
        case lay.Flatten():
            return x.reshape(len(x), -1)
        case lay.Dense():
            product = x @ _next(values)
            return product + _next(values)
        case lay.Residual():
            body = _forward(layer.body, x, values)
            return body + _forward(layer.shortcut, x, values)


def _windows(x: Array, window: int, stride: int) -> Array:
    """Return a view [batch, rows, columns, channels, window, window] of images."""
    view = np.lib.stride_tricks.sliding_window_view(x, (window, window), axis=(1, 2))
    return view[:, ::stride, ::stride]


def _next(values: Iterator[npt.ArrayLike]) -> Array:
    """Return the next parameter in float64."""
    return np.asarray(next(values), np.float64)
