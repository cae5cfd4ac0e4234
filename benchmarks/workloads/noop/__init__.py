"""A cached step that fetches one operation that does nothing."""

from __future__ import annotations

from benchmarks.workload import Entry, Workload

# Steps of one round, the same for all.
STEPS = 5000

WORKLOAD = Workload(
    name="noop",
    package=__name__,
    measured="Time of one cached step that does nothing",
    entries=(
        Entry("headrace", "Session.run"),
        Entry("headrace", "make_callable"),
        Entry("tensorflow", "Session.run"),
        Entry("tensorflow", "make_callable"),
        Entry("jax", "jit"),
    ),
    unit="us",
)
