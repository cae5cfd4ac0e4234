"""The networks as a TensorFlow 1.15 program, which Headrace and TensorFlow both run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.networks import layers as lay
from benchmarks.networks.layers import Layer, Layers
from benchmarks.networks.tasks import Task


@dataclass(frozen=True)
class Program:
    """A graph of one training step.

    Attributes:
        feeds: placeholders of the images and of the labels.
        variables: what is trained, in the order of the layers.
        loss: mean cross-entropy of the batch.
        train: the operation that runs one step.
    """

    feeds: tuple[Any, Any]
    variables: list[Any]
    loss: Any
    train: Any


def build(api: Any, task: Task, batch: tuple[Any, Any] | None = None) -> Program:
    """Build the graph with a library: ``headrace`` or ``tensorflow.compat.v1``.

    Variables begin with zeros and are loaded later, so that the graph holds no copy of them.

    Args:
        api: the library.
        task: the network.
        batch: tensors of images and of labels; placeholders if None.
    """
    if batch is None:
        batch = api.placeholder(api.float32, [None, *task.size]), api.placeholder(api.int64, [None])
    images, labels = batch
    variables = [api.Variable(api.zeros(list(p.shape))) for p in task.parameters()]
    logits = _forward(api, task.layers, images, iter(variables))
    losses = api.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    loss = api.reduce_mean(losses)
    train = api.train.GradientDescentOptimizer(task.rate).minimize(loss)
    return Program((images, labels), variables, loss, train)


def load(session: Any, program: Program, task: Task) -> None:
    """Give the variables their first values."""
    for variable, value in zip(program.variables, task.first_values(), strict=True):
        variable.load(value, session)


def _forward(api: Any, layers: Layers, x: Any, variables: Iterator[Any]) -> Any:
    """Add layers to the graph, one after the other."""
    for layer in layers:
        x = _apply(api, layer, x, variables)
    return x


def _apply(api: Any, layer: Layer, x: Any, variables: Iterator[Any]) -> Any:
    """Add one layer to the graph, with its variables."""
    match layer:
        case lay.Conv():
            strides = [1, layer.stride, layer.stride, 1]
            x = api.nn.conv2d(x, next(variables), strides, _padding(layer.padding))
            return api.nn.bias_add(x, next(variables)) if layer.bias else x
        case lay.Norm():
            scale, offset = next(variables), next(variables)
            return api.nn.fused_batch_norm(x, scale, offset, epsilon=layer.epsilon)[0]
        case lay.Relu():
            return api.nn.relu(x)
        case lay.MaxPool():
            window = [1, layer.window, layer.window, 1]
            strides = [1, layer.stride, layer.stride, 1]
            return api.nn.max_pool_v2(x, window, strides, _padding(layer.padding))
        case lay.GlobalMean():
            return api.reduce_mean(x, axis=[1, 2])
        case lay.Flatten():
            features = 1
            for extent in x.shape.as_list()[1:]:
                features *= extent
            return api.reshape(x, [-1, features])
        case lay.Dense():
            return api.nn.bias_add(api.matmul(x, next(variables)), next(variables))
        case lay.Residual():
            body = _forward(api, layer.body, x, variables)
            return body + _forward(api, layer.shortcut, x, variables)


def _padding(padding: int) -> Any:
    """Return the padding as both libraries want it, none by its name."""
    return lay.border(padding) if padding else "VALID"
