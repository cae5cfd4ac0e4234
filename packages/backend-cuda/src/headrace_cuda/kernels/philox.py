"""Random bits on the GPU: the very ones that ``numpy.random.Philox`` makes on the host."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace_cuda.nvrtc import Program

THREADS = 256
# Enough blocks to fill the largest GPU; a thread goes on to the next four words until all are made.
MAX_BLOCKS = 2048
_MASK = (1 << 64) - 1


def philox_program(arch: str) -> Program:
    """Return the kernel's program for an architecture."""
    # lazy: kernels are listed on every machine, and NVRTC is for those with a GPU
    from headrace_cuda.nvrtc import Program

    source = Path(__file__).with_name("philox.cu").read_text(encoding="utf-8")
    return Program("philox.cu", source, arch)


def philox_words(xp: Any, key: tuple[int, int], counter: int, count: int) -> Any:
    """Return random 64-bit words on the GPU that is active.

    Args:
        xp: ``cupy``.
        key: The two words of the key.
        counter: Where the stream starts, up to 256 bits.
        count: How many words.

    Returns:
        [count], uint64: what ``numpy.random.Philox(key=key, counter=counter)`` gives raw.
    """
    words = xp.empty((count,), xp.uint64)
    if count:
        numbers = (count, *key, *(counter >> shift & _MASK for shift in (0, 64, 128, 192)))
        blocks = min(MAX_BLOCKS, -(-count // (4 * THREADS)))
        arguments = (words, *(xp.uint64(number) for number in numbers))
        _function(xp, int(xp.cuda.runtime.getDevice()))((blocks,), (THREADS,), arguments)
    return words


@functools.cache
def _function(xp: Any, device: int) -> Any:
    """Return the kernel, loaded on a device, which is active."""
    # lazy: as for its program
    from headrace_cuda.nvrtc import cubin

    arch = f"sm_{xp.cuda.Device(device).compute_capability}"
    module = xp.cuda.function.Module()
    module.load(cubin(philox_program(arch)))
    return module.get_function("philox")
