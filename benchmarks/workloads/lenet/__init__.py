"""A small convolutional network for digits: 28x28, two convolutions, batch 50, SGD."""

from __future__ import annotations

from benchmarks.networks.entries import convolutional
from benchmarks.workload import Workload

WORKLOAD = Workload(
    name="lenet",
    package=__name__,
    participants="benchmarks.networks",
    measured="Time of one training step with feeds",
    entries=convolutional(small=True),
    unit="ms",
    loss_tolerance=1e-3,
)
