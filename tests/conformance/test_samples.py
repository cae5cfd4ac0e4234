"""Every sample of every op on the cpu device, and on an NVIDIA GPU where there is one."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.graph.schema import OPS
from headrace.testing import Sample, conformance
from headrace.testing.samples import SAMPLES, WITHOUT_SAMPLES
from headrace_testing.build import Bench, Variant, make_values, swept

ROWS = [row for rows in SAMPLES.values() for row in rows]

# Thousands of cases that are all skipped for one reason would only hide the others.
GPU = any(node.name[6:].isdigit() for node in Path("/dev").glob("nvidia*"))

# `nox -s executors` runs all of them, node by node and compiled.
test_cpu = pytest.mark.one_in(4)(pytest.mark.needs("backend-cpu", "autodiff")(conformance(ROWS)))
test_cuda = pytest.mark.gpu(
    pytest.mark.needs("backend-cuda", "autodiff")(
        conformance(ROWS if GPU else ROWS[:1], device="cuda")
    )
)


def test_every_op_has_samples():
    core = {schema.type for schema in OPS if schema.where.startswith("headrace.")}
    sampled = {row.op for row in ROWS if isinstance(row, Sample)}
    assert core - sampled - WITHOUT_SAMPLES.keys() == set()
    assert sampled & WITHOUT_SAMPLES.keys() == set()
    assert WITHOUT_SAMPLES.keys() - core == set()


@pytest.mark.needs("backend-cpu")
def test_cpu_has_a_kernel_for_every_dtype_of_every_sample():
    missing = [
        f"{row.name} {dtype}"
        for row in ROWS
        if isinstance(row, Sample)
        for dtype in swept(row)
        if Bench(row, "cpu").add(Variant("", make_values(row.inputs, dtype))) is None
    ]
    assert missing == []
