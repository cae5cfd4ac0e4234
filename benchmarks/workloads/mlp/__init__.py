"""A perceptron of three layers, 512 wide, batch 128, SGD."""

from __future__ import annotations

from benchmarks.networks.entries import dense
from benchmarks.workload import Workload

WORKLOAD = Workload(
    name="mlp",
    package=__name__,
    participants="benchmarks.networks",
    measured="Time of one training step with feeds",
    entries=dense(),
    unit="ms",
    loss_tolerance=1e-3,
)
