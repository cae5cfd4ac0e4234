"""Kernels of families that few programs use: what is imported with the first op of one of these."""

from __future__ import annotations

from headrace.extend.kernels import Kernel
from headrace_cpu.kernels import (
    accumulator,
    barrier,
    lookup,
    mutex,
    python_call,
    queue,
    session_tensor,
    sets,
    sparse_cross,
    sparse_text,
    staging,
    text,
    text_convert,
    text_hash,
    text_pieces,
)
from headrace_cpu.native_loops.table import RARE_KERNELS

# Queues hand arrays of any module through, but stack them in the thread of whoever enqueues.
KERNELS: tuple[Kernel, ...] = (
    *queue.KERNELS,
    *staging.KERNELS,
    *barrier.KERNELS,
    *accumulator.KERNELS,
    *mutex.KERNELS,
    *text.KERNELS,
    *text_convert.KERNELS,
    *text_hash.KERNELS,
    *text_pieces.KERNELS,
    *sparse_text.KERNELS,
    *sparse_cross.KERNELS,
    *lookup.KERNELS,
    *session_tensor.KERNELS,
    *python_call.KERNELS,
    *sets.KERNELS,
)
# With those that are asked before them.
ALL_KERNELS: tuple[Kernel, ...] = (*KERNELS, *RARE_KERNELS)
