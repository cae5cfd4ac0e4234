"""Kernels of the cuda devices. Importing them imports no GPU library.

Most are those of the cpu device, which are functions of an array module.
"""

from __future__ import annotations

from headrace.extend.kernels import Kernel
from headrace_cpu.kernels import (
    ARRAY_KERNELS,
    PREPARED_KERNELS,
    STATE_KERNELS,
    random_kernels,
)
from headrace_cpu.kernels.random import RandomBits
from headrace_cuda.kernels.philox import philox_words


def cuda_kernels(random_bits: RandomBits = philox_words) -> tuple[Kernel, ...]:
    """Return all kernels.

    Args:
        random_bits: Makes the bits of random tensors.
    """
    shared = (*ARRAY_KERNELS, *STATE_KERNELS, *PREPARED_KERNELS)
    return (*shared, *random_kernels(random_bits))
