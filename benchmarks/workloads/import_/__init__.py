"""The import of a library into an interpreter that has imported numpy."""

from __future__ import annotations

from benchmarks.workload import Entry, Workload

WORKLOAD = Workload(
    name="import",
    package=__name__,
    measured="Time of the import in a fresh interpreter, after `import numpy`",
    entries=(
        Entry("headrace", module="fresh"),
        Entry("torch", module="fresh"),
        Entry("tensorflow", module="fresh"),
        Entry("jax", module="fresh"),
    ),
    unit="ms",
    memory="memory over numpy",
)
