"""``tanh(a*b+c) * exp(-a)`` on four million numbers: memory traffic, and nothing to reuse."""

from __future__ import annotations

from benchmarks.workload import Entry, Workload

WORKLOAD = Workload(
    name="chain",
    package=__name__,
    measured="Time of one evaluation of `tanh(a*b+c) * exp(-a)` on 4 194 304 float32",
    entries=(
        Entry("headrace", "Session.run"),
        Entry("headrace", "make_callable"),
        Entry("headrace", "plain executor"),
        Entry("numpy", "by hand"),
        Entry("torch", "eager"),
        Entry("torch", "compile"),
        Entry("tensorflow", "Session.run"),
        Entry("jax", "jit"),
        Entry("numpy", "one pass over memory", module="limit", limit=True),
    ),
    unit="ms",
    loss_tolerance=1e-5,
)
