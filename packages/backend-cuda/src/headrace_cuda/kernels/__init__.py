"""Kernels of the cuda devices. Importing them imports no GPU library.

Most are those of the cpu device, which are functions of an array module.
"""

from __future__ import annotations

from headrace.plugins.registries import Kernel
from headrace_cpu.kernels import ARRAY_KERNELS, STATE_KERNELS
from headrace_cuda.kernels.host_inputs import with_host_inputs

CUDA_KERNELS: tuple[Kernel, ...] = tuple(with_host_inputs((*ARRAY_KERNELS, *STATE_KERNELS)))
