"""The softmax regression of TensorFlow's first tutorial: 784x10, batch 100, SGD."""

from __future__ import annotations

from benchmarks.workload import Entry, Workload

WORKLOAD = Workload(
    name="softmax",
    package=__name__,
    measured="Time of one training step with feeds",
    entries=(
        Entry("headrace", "Session.run"),
        Entry("headrace", "make_callable"),
        Entry("numpy", "by hand"),
        Entry("torch", "eager"),
        Entry("torch", "compile"),
        Entry("tensorflow", "Session.run"),
        Entry("tensorflow", "make_callable"),
        Entry("jax", "jit"),
        Entry("numpy", "the two products alone", module="limit", limit=True),
    ),
    unit="us",
    loss_tolerance=1e-4,
)
