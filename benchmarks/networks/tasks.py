"""The networks that are trained, each with its images, batch and learning rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.networks import layers as lay
from benchmarks.networks.layers import Conv, Dense, Flatten, Layers, MaxPool, Norm, Relu, Residual

Array = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Task:
    """A network and what it is trained on.

    Attributes:
        layers: the network, from images to logits.
        size: size of one image or example.
        classes: number of labels.
        batch: examples per step.
        rate: learning rate of gradient descent.
        batches: different batches; steps go through them again and again.
        steps: steps of one round.
        lead_in: untimed steps before each round.
    """

    layers: Layers
    size: lay.Size
    classes: int
    batch: int
    rate: float
    batches: int
    steps: int
    lead_in: int

    def feeds(self) -> list[tuple[Array, Labels]]:
        """Return the batches of one round: images [batch, *size] float32, and labels [batch]."""
        rng = np.random.default_rng(1)
        shape = (self.batch, *self.size)
        made = [
            (rng.standard_normal(shape, np.float32), rng.integers(0, self.classes, self.batch))
            for _ in range(self.batches)
        ]
        return [made[step % self.batches] for step in range(self.steps)]

    def parameters(self) -> list[lay.Parameter]:
        """Return what is to be trained, in the order of the layers."""
        return list(lay.parameters(self.layers, self.size))

    def first_values(self) -> Iterator[Array]:
        """Yield the first values of the parameters one by one, as a large network wants it."""
        rng = np.random.default_rng(0)
        for parameter in self.parameters():
            values = rng.standard_normal(parameter.shape, np.float32)
            values *= np.float32(parameter.scale)
            values += np.float32(parameter.mean)
            yield values


def _lenet() -> Layers:
    convolutions: Layers = (Conv(5, 32, padding=2), Relu(), MaxPool(2, 2))
    convolutions += (Conv(5, 64, padding=2), Relu(), MaxPool(2, 2))
    return (*convolutions, Flatten(), Dense(1024), Relu(), Dense(10))


def _alexnet() -> Layers:
    """Krizhevsky, "One weird trick for parallelizing convolutional neural networks" (2014)."""
    return (
        *(Conv(11, 64, stride=4, padding=2), Relu(), MaxPool(3, 2)),
        *(Conv(5, 192, padding=2), Relu(), MaxPool(3, 2)),
        *(Conv(3, 384, padding=1), Relu()),
        *(Conv(3, 256, padding=1), Relu()),
        *(Conv(3, 256, padding=1), Relu(), MaxPool(3, 2)),
        *_classifier(),
    )


def _vgg_a() -> Layers:
    """Simonyan and Zisserman, "Very deep convolutional networks" (2015), configuration A."""
    stages = ((64,), (128,), (256, 256), (512, 512), (512, 512))
    made: Layers = ()
    for stage in stages:
        for filters in stage:
            made += (Conv(3, filters, padding=1), Relu())
        made += (MaxPool(2, 2),)
    return (*made, *_classifier())


def _classifier() -> Layers:
    return (Flatten(), Dense(4096), Relu(), Dense(4096), Relu(), Dense(1000))


def _resnet18() -> Layers:
    """He et al., "Deep residual learning for image recognition" (2016), 18 layers."""
    made: Layers = (Conv(7, 64, stride=2, padding=3, bias=False), Norm(), Relu())
    made += (MaxPool(3, 2, padding=1),)
    channels = 64
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        made += _block(channels, filters, stride) + _block(filters, filters, 1)
        channels = filters
    return (*made, lay.GlobalMean(), Dense(1000))


def _block(channels: int, filters: int, stride: int) -> Layers:
    body: Layers = (Conv(3, filters, stride, padding=1, bias=False), Norm(), Relu())
    body += (Conv(3, filters, padding=1, bias=False), Norm())
    if (channels, stride) == (filters, 1):
        return (Residual(body), Relu())
    return (Residual(body, (Conv(1, filters, stride, bias=False), Norm())), Relu())


def _mlp() -> Layers:
    return (Dense(512), Relu(), Dense(512), Relu(), Dense(10))


_IMAGE = (224, 224, 3)

TASKS = {
    "lenet": Task(_lenet(), (28, 28, 1), 10, 50, 0.003, batches=10, steps=20, lead_in=3),
    "alexnet": Task(_alexnet(), _IMAGE, 1000, 16, 0.0003, batches=2, steps=2, lead_in=1),
    "vgg-a": Task(_vgg_a(), _IMAGE, 1000, 4, 0.0001, batches=1, steps=1, lead_in=0),
    "resnet18": Task(_resnet18(), _IMAGE, 1000, 8, 0.01, batches=2, steps=2, lead_in=1),
    "mlp": Task(_mlp(), (784,), 10, 128, 0.003, batches=20, steps=100, lead_in=20),
}
