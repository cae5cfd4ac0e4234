"""T0: the samples of the conformance kit on a device that pretends to be a GPU.

What they prove is that kernels never mix host and device arrays, use nothing that CuPy lacks, and
check what CuPy does not check. Checks that are the same on all devices run on the cpu alone.
"""

from __future__ import annotations

import pytest

from headrace.testing import SkipCheck, cases
from headrace.testing.samples import SAMPLES
from headrace_cpu.kernels import ARRAY_KERNELS, PREPARED_KERNELS, STATE_KERNELS
from headrace_cuda.kernels import cuda_kernels

ROWS = [row for rows in SAMPLES.values() for row in rows]
CHECKS = ("forward", "scalar", "empty", "broadcast", "layouts", "inputs_kept", "refused")
CASES = [
    case for case in cases(ROWS, "cuda:0") if case.name.rsplit("-", 1)[1] in (*CHECKS, "gradient")
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_sample_on_a_pretended_gpu(case, pretended_gpus):
    try:
        case.run()
    except SkipCheck as reason:
        pytest.skip(str(reason))


def test_every_kernel_of_the_cpu_is_there():
    there = {kernel.op for kernel in cuda_kernels()}
    assert {kernel.op for kernel in (*ARRAY_KERNELS, *STATE_KERNELS, *PREPARED_KERNELS)} <= there
