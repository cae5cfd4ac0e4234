"""Matching and running single instructions, on memory of the host or of a GPU."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import Tensor
from headrace_cpu.for_backends import Matches, match
from headrace_cuda.program.instruction import CudaInstruction
from headrace_cuda.program.matchers import MATCHERS
from headrace_cuda.program.platform import ALIGNMENT, Platform
from headrace_cuda.program.settings import CudaSettings


def matched(
    results: Sequence[Tensor],
    platform: Platform,
    only: Container[str] | None = None,
    **settings: Any,
) -> list[CudaInstruction]:
    """Return the instructions of a graph.

    Args:
        results: What is wanted of it.
        platform: The GPU.
        only: Names of the matchers that may choose, None for all.
        **settings: Further settings.
    """
    matches = Matches(results[0].op.graph.operations, results)
    match(matches, CudaSettings(platform=platform, **settings), MATCHERS, only)
    found = []
    for instruction in matches.instructions:
        assert isinstance(instruction, CudaInstruction)
        found.append(instruction)
    return found


def run(
    instruction: CudaInstruction,
    values: Mapping[Tensor, Any],
    platform: Platform,
    times: int = 1,
) -> dict[Tensor, Any]:
    """Run an instruction on arrays; return what it wrote.

    What it writes and its scratch memory hold NaN before, so that nobody may count on zeros.

    Args:
        instruction: The instruction.
        values: What it reads.
        platform: The GPU.
        times: How often it runs.
    """
    instruction.load(platform.load(instruction.sources()))
    arrays = {t: platform.upload(np.ascontiguousarray(values[t])) for t in instruction.reads}
    for tensor in instruction.writes:
        shape = tensor.spec.shape.known
        size = max(1, int(np.prod(shape, dtype=int)) * tensor.dtype.numpy.itemsize)
        bits = np.full(size, 0xFF, np.uint8).view(tensor.dtype.numpy).reshape(shape)
        arrays[tensor] = platform.upload(bits)
    room = platform.upload(np.full(instruction.scratch + ALIGNMENT, 0xFF, np.uint8))
    addresses = {t: platform.address(array) for t, array in arrays.items()}
    scratch = -(-platform.address(room) // ALIGNMENT) * ALIGNMENT
    for _ in range(times):
        instruction.start(addresses.__getitem__, scratch)
    return {t: platform.download(arrays[t]) for t in instruction.writes}
