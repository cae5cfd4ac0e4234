"""The models of the examples: how a graph is built.

Each function adds a model to the default graph and returns its logits, one score per class. Pass
``parameters_on="/job:ps"`` to keep the variables on a parameter server.
"""

from __future__ import annotations

from typing import NamedTuple

import headrace as hr


class Classifier(NamedTuple):
    """The ends of a classifier's graph, for feeding and fetching."""

    images: hr.Tensor
    labels: hr.Tensor
    loss: hr.Tensor
    accuracy: hr.Tensor


def classifier(model: str, pixels: int, classes: int, parameters_on: str = "") -> Classifier:
    """Build one of ``MODELS`` with placeholders, loss and accuracy around it."""
    images = hr.placeholder(hr.float32, [None, pixels], name="images")
    labels = hr.placeholder(hr.float32, [None, classes], name="labels")
    logits = MODELS[model](images, classes, parameters_on)
    loss = hr.reduce_mean(
        hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss"
    )
    correct = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
    accuracy = hr.reduce_mean(hr.cast(correct, hr.float32), name="accuracy")
    return Classifier(images, labels, loss, accuracy)


def softmax_regression(images: hr.Tensor, classes: int, parameters_on: str = "") -> hr.Tensor:
    """Add a single linear layer: images [n, pixels], logits [n, classes]."""
    return linear(images, classes, "softmax", parameters_on)


def convnet(images: hr.Tensor, classes: int, parameters_on: str = "") -> hr.Tensor:
    """Add two convolutions and two linear layers: images [n, pixels], logits [n, classes]."""
    side = round(images.shape[1] ** 0.5)
    x = hr.reshape(images, [-1, side, side, 1])
    x = max_pool(convolution(x, 16, "conv1", parameters_on))
    x = max_pool(convolution(x, 32, "conv2", parameters_on))
    x = hr.reshape(x, [-1, x.shape[1] * x.shape[2] * x.shape[3]])
    x = hr.nn.relu(linear(x, 64, "hidden", parameters_on))
    return linear(x, classes, "output", parameters_on)


MODELS = {"softmax regression": softmax_regression, "conv net": convnet}


def linear(x: hr.Tensor, outputs: int, name: str, parameters_on: str = "") -> hr.Tensor:
    """Add ``x @ weights + bias``."""
    with hr.name_scope(name):
        weights, bias = parameters([x.shape[1], outputs], parameters_on)
        return hr.matmul(x, weights) + bias


def convolution(x: hr.Tensor, channels: int, name: str, parameters_on: str = "") -> hr.Tensor:
    """Add a convolution with 3x3 filters, and the positive part of its result."""
    with hr.name_scope(name):
        filters, bias = parameters([3, 3, x.shape[3], channels], parameters_on)
        return hr.nn.relu(hr.nn.conv2d(x, filters, strides=[1, 1, 1, 1], padding="SAME") + bias)


def max_pool(x: hr.Tensor) -> hr.Tensor:
    """Halve height and width, keeping the largest of each 2x2 pixels."""
    return hr.nn.max_pool(x, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="SAME")


def parameters(shape: list[int], parameters_on: str) -> tuple[hr.Variable, hr.Variable]:
    """Add weights of a shape and a bias for its last axis."""
    fan_in = 1
    for size in shape[:-1]:
        fan_in *= size
    with hr.device(parameters_on or None):
        start = hr.truncated_normal(shape, stddev=(2 / fan_in) ** 0.5)
        weights = hr.Variable(start, name="weights")
        bias = hr.Variable(hr.zeros(shape[-1:]), name="bias")
    return weights, bias
