"""The models of the examples: how a graph is built.

Each function adds a model to the default graph and returns its logits, one score per class. Pass
``parameters_on="/job:ps"`` to keep the variables on a parameter server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import headrace as hr

HE_NORMAL = hr.initializers.he_normal()


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
    return judged(model, images, labels, parameters_on)


def judged(model: str, images: hr.Tensor, labels: hr.Tensor, parameters_on: str = "") -> Classifier:
    """Build one of ``MODELS`` on images [n, pixels] and labels [n, classes], and judge it."""
    logits = MODELS[model](images, labels.shape[1], parameters_on)
    loss = hr.reduce_mean(
        hr.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss"
    )
    correct = hr.equal(hr.argmax(logits, 1), hr.argmax(labels, 1))
    accuracy = hr.reduce_mean(hr.cast(correct, hr.float32), name="accuracy")
    return Classifier(images, labels, loss, accuracy)


def softmax_regression(images: hr.Tensor, classes: int, parameters_on: str = "") -> hr.Tensor:
    """Add a single linear layer: images [n, pixels], logits [n, classes]."""
    with hr.variable_scope("", initializer=HE_NORMAL, custom_getter=placed(parameters_on)):
        return hr.layers.dense(images, classes, name="softmax")


def convnet(images: hr.Tensor, classes: int, parameters_on: str = "") -> hr.Tensor:
    """Add two convolutions and two linear layers: images [n, pixels], logits [n, classes]."""
    side = round(images.shape[1] ** 0.5)
    relu = hr.nn.relu
    with hr.variable_scope("", initializer=HE_NORMAL, custom_getter=placed(parameters_on)):
        x = hr.reshape(images, [-1, side, side, 1])
        x = hr.layers.conv2d(x, 16, 3, padding="same", activation=relu, name="conv1")
        x = hr.layers.max_pooling2d(x, 2, 2, "same")
        x = hr.layers.conv2d(x, 32, 3, padding="same", activation=relu, name="conv2")
        x = hr.layers.max_pooling2d(x, 2, 2, "same")
        x = hr.layers.dense(hr.layers.flatten(x), 64, activation=relu, name="hidden")
        return hr.layers.dense(x, classes, name="output")


MODELS = {"softmax regression": softmax_regression, "conv net": convnet}


def placed(device: str) -> Callable[..., hr.Variable]:
    """Return a custom getter that makes variables on a device."""

    def get(getter: Callable[..., hr.Variable], *args: Any, **kwargs: Any) -> hr.Variable:
        with hr.device(device or None):
            return getter(*args, **kwargs)

    return get
