"""A language model of two LSTM layers: 200 units, vocabulary 10 000, batch 20, 20 steps, SGD."""

from __future__ import annotations

from benchmarks.workload import Entry, Workload

WORKLOAD = Workload(
    name="lstm",
    package=__name__,
    measured="Time of one training step with feeds",
    entries=(
        Entry("headrace", "Session.run"),
        Entry("headrace", "make_callable"),
        Entry("headrace", "while_loop"),
        Entry("headrace", "plain executor"),
        Entry("headrace", "without oneDNN"),
        Entry("torch", "eager"),
        Entry("torch", "compile"),
        Entry("tensorflow", "Session.run"),
        Entry("tensorflow", "while_loop"),
        Entry("jax", "jit, scan"),
        Entry("jax", "jit, unrolled"),
        Entry("numpy", "the products alone", module="limit", limit=True),
    ),
    unit="ms",
    loss_tolerance=1e-3,
)
