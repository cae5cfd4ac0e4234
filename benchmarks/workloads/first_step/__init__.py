"""The first steps of `lenet` in a new process, which plan and compile."""

from __future__ import annotations

from benchmarks.workload import Entry, Workload

# Variants with caches on disk: empty in every round, or kept from the round that does not count.
COLD = "cold"
WARM = "warm"

# Key of the time of the first steps together.
FIRST_FIVE = "first_five"
FIVE = 5

WORKLOAD = Workload(
    name="first-step",
    package=__name__,
    measured="Time from the built graph to the end of the first training step of `lenet`",
    entries=(
        Entry("headrace", COLD, module="fresh"),
        Entry("headrace", WARM, module="fresh"),
        Entry("torch", "eager channels_last", module="fresh"),
        Entry("torch", f"compile, {COLD}", module="fresh"),
        Entry("torch", f"compile, {WARM}", module="fresh"),
        Entry("tensorflow", "Session.run", module="fresh"),
        Entry("jax", f"jit, {COLD}", module="fresh"),
        Entry("jax", f"jit, {WARM}", module="fresh"),
    ),
    unit="ms",
    loss_tolerance=1e-3,
    rounds=3,
    more_times={FIRST_FIVE: "first 5 steps"},
)
