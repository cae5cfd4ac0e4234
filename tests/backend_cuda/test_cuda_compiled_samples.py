"""T1: samples of the conformance kit, compiled for a GPU whose kernels run on the host."""

from __future__ import annotations

import pytest

from headrace.testing import SkipCheck, cases
from headrace.testing.samples import SAMPLES
from headrace_cuda.testing.host_compiler import host_compiler

pytestmark = pytest.mark.skipif(host_compiler() is None, reason="there is no C++ compiler")

ROWS = [row for rows in SAMPLES.values() for row in rows]
CHECKS = ("forward", "gradient", "broadcast", "scalar")
CASES = [case for case in cases(ROWS, "cuda:0") if case.name.rsplit("-", 1)[1] in CHECKS]
# A C++ compiler takes half a second for the kernels of each.
SOME = CASES[::200]


def run(case, monkeypatch):
    monkeypatch.setenv("HEADRACE_COMPILE_AFTER", "0")
    try:
        case.run()
    except SkipCheck as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("case", SOME, ids=[case.name for case in SOME])
def test_sample_compiled_for_a_pretended_gpu(case, compiling_gpus, monkeypatch):
    run(case, monkeypatch)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_sample_compiled_for_a_pretended_gpu(case, compiling_gpus, monkeypatch):
    run(case, monkeypatch)
