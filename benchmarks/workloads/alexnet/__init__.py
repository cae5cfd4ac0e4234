"""AlexNet in one column, batch 16, SGD."""

from __future__ import annotations

from benchmarks.networks.entries import convolutional
from benchmarks.workload import Workload

WORKLOAD = Workload(
    name="alexnet",
    package=__name__,
    participants="benchmarks.networks",
    measured="Time of one training step with feeds",
    entries=convolutional(),
    unit="ms",
    loss_tolerance=1e-3,
)
