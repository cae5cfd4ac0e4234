"""Kernels of the cpu device, in tables that packages of other array modules can take, too.

``ARRAY_KERNELS`` are functions of an array module like NumPy, and ``STATE_KERNELS`` keep arrays of
such a module in variables. ``random.kernels`` makes a table of kernels upon a device's random bits.
"""

from __future__ import annotations

from headrace.plugins.registries import Kernel
from headrace_cpu.kernels import (
    array,
    constant,
    conv,
    elementwise,
    indexing,
    linalg,
    nn,
    pool,
    queue,
    random,
    reduce,
    state,
)

ARRAY_KERNELS: tuple[Kernel, ...] = (
    *elementwise.KERNELS,
    *reduce.KERNELS,
    *array.KERNELS,
    *constant.KERNELS,
    *indexing.KERNELS,
    *linalg.KERNELS,
    *nn.KERNELS,
    *conv.KERNELS,
    *pool.KERNELS,
)
STATE_KERNELS: tuple[Kernel, ...] = (*state.KERNELS,)
# Queues hand arrays of any module through, but stack them in the thread of whoever enqueues.
HOST_KERNELS: tuple[Kernel, ...] = (*queue.KERNELS,)

# All that the cpu device has.
CPU_KERNELS: tuple[Kernel, ...] = (
    *ARRAY_KERNELS,
    *STATE_KERNELS,
    *HOST_KERNELS,
    *random.kernels(random.host_bits),
)
