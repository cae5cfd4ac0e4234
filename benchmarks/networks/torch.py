"""The networks in PyTorch: eager in both layouts, and with the loss compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.networks import layers as lay
from benchmarks.networks import reference
from benchmarks.networks.layers import Layer, Layers
from benchmarks.networks.tasks import TASKS, Array, Task
from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.torch_setup import compiled, set_threads

CHANNELS_FIRST = "eager NCHW"


def build(request: Request) -> Participant:
    """Build a model and an optimizer, and lay parameters and images out as the variant says."""
    set_threads(request.threads)
    task = TASKS[request.workload]
    layout = torch.channels_last
    if request.variant == CHANNELS_FIRST:
        layout = torch.contiguous_format
    model = load(nn.Sequential(*modules(task.layers, task.size)), task)
    feeds = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in task.feeds()]
    if len(task.size) == 3:
        model = model.to(memory_format=layout)
        # The arrays are channels last already; only the order of the axes is another.
        feeds = [(x.permute(0, 3, 1, 2).contiguous(memory_format=layout), y) for x, y in feeds]
    optimizer = torch.optim.SGD(model.parameters(), lr=task.rate, fused=True)

    def cross_entropy(images: Any, labels: Any) -> Any:
        return nn.functional.cross_entropy(model(images), labels)

    loss = compiled(cross_entropy) if request.variant == "compile" else cross_entropy

    def step(images: Any, labels: Any) -> None:
        optimizer.zero_grad()
        loss(images, labels).backward()
        optimizer.step()

    return StepLoop(
        step,
        feeds,
        final_loss=lambda: reference.loss(task, _values(model, task)),
        lead_in=task.lead_in,
    )


class _Residual(nn.Module):
    """The sum of two paths."""

    def __init__(self, layer: lay.Residual, size: lay.Size) -> None:
        super().__init__()
        self.body = nn.Sequential(*modules(layer.body, size))
        self.shortcut = nn.Sequential(*modules(layer.shortcut, size))

    def forward(self, x: Any) -> Any:
        return self.body(x) + self.shortcut(x)


def modules(layers: Layers, size: lay.Size) -> Iterator[Any]:
    """Yield the modules of layers, which take an input of a size."""
    for layer in layers:
        yield _module(layer, size)
        size = lay.output_size(layer, size)


def _module(layer: Layer, size: lay.Size) -> Any:
    """Return the module of a layer whose input has this size."""
    match layer:
        case lay.Conv():
            shape = (size[2], layer.filters, layer.kernel)
            return nn.Conv2d(*shape, layer.stride, layer.padding, bias=layer.bias)
        case lay.Norm():
            return nn.BatchNorm2d(size[2], eps=layer.epsilon, track_running_stats=False)
        case lay.Relu():
            return nn.ReLU(inplace=True)
        case lay.MaxPool():
            return nn.MaxPool2d(layer.window, layer.stride, layer.padding)
        case lay.GlobalMean():
            return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        case lay.Flatten():
            return nn.Flatten()
        case lay.Dense():
            return nn.Linear(size[0], layer.units)
        case lay.Residual():
            return _Residual(layer, size)


def load(model: Any, task: Task) -> Any:
    """Give the model the first values."""
    with torch.no_grad():
        triples = zip(model.parameters(), task.parameters(), task.first_values(), strict=True)
        for target, parameter, value in triples:
            target.copy_(torch.from_numpy(_to_torch(parameter, value)))
    return model


def _values(model: Any, task: Task) -> Iterator[Array]:
    """Yield the model's parameters in the shapes that all participants share."""
    for source, parameter in zip(model.parameters(), task.parameters(), strict=True):
        yield _from_torch(parameter, source.detach().numpy())


def _to_torch(parameter: lay.Parameter, value: Array) -> Array:
    """Lay a parameter out as modules want it: outputs first, channels before positions."""
    if len(value.shape) == 4:
        value = value.transpose(3, 2, 0, 1)
    elif len(value.shape) == 2:
        if parameter.image:
            positions = value.reshape(*parameter.image, -1)
            value = positions.transpose(2, 0, 1, 3).reshape(value.shape)
        value = value.T
    return np.ascontiguousarray(value)


def _from_torch(parameter: lay.Parameter, value: Array) -> Array:
    """Undo ``_to_torch``."""
    if len(value.shape) == 4:
        return value.transpose(2, 3, 1, 0)
    if len(value.shape) == 2:
        value = value.T
        if parameter.image:
            height, width, channels = parameter.image
            positions = value.reshape(channels, height, width, -1)
            value = positions.transpose(1, 2, 0, 3).reshape(value.shape)
    return value
