"""Memory that is kept for the next step: its pages are there, unless the user says otherwise."""

from __future__ import annotations

import sys

import pytest

from tests.children import run_program

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="glibc's heap")

_STEP = """
import resource
import numpy as np, headrace as hr
from headrace_cpu.native.heap import keep_freed_memory
x = hr.placeholder("float32", [200, 1000])
start = [hr.constant(0), x]
_, y = hr.while_loop(lambda i, h: i < 20, lambda i, h: (i + 1, hr.tanh(h * 0.9)), start)
grad = hr.gradients(hr.reduce_sum(y), x)[0]
fed = {x: np.ones([200, 1000], "f")}
with hr.Session() as session:
    def faults():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(5):
            session.run(grad, fed)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    for _ in range(4):
        faults()
    print(keep_freed_memory(), min(faults() for _ in range(4)))
"""


@pytest.mark.needs("backend-cpu", "autodiff")
@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ({}, True),
        ({"MALLOC_TRIM_THRESHOLD_": "131072"}, False),
        ({"MALLOC_MMAP_THRESHOLD_": "131072"}, False),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}, False),
    ],
)
def test_steps_find_their_pages_again_unless_the_user_says_otherwise(told, kept, monkeypatch):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    for name, value in told.items():
        monkeypatch.setenv(name, value)
    done = run_program(_STEP)
    does, faults = done.stdout.split()[-2:]
    assert does == str(kept)
    if kept:
        # The loop leaves 16 MB behind in each step: 4000 pages.
        assert int(faults) < 1000
