"""ResNet-18 with batch normalisation in training mode, batch 8, SGD."""

from __future__ import annotations

from benchmarks.networks.entries import convolutional
from benchmarks.workload import Workload

WORKLOAD = Workload(
    name="resnet18",
    package=__name__,
    participants="benchmarks.networks",
    measured="Time of one training step with feeds",
    entries=convolutional(),
    unit="ms",
    loss_tolerance=1e-3,
)
