"""What sessions of one process share of a GPU: its stream, and its memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headrace.errors import ExecutionError
from headrace_cuda.settings import MEMORY_LIMIT


class Hardware:
    """One GPU, as this process uses it.

    All work goes to one stream, in the order in which it is started, whatever thread or session
    starts it. So an array that one session made can be read by another, and memory that is given
    back while a kernel still reads it is reused only after that kernel.

    Attributes:
        index: Its number among the GPUs that the process sees.
        stream: The stream.
    """

    def __init__(self, index: int) -> None:
        """Open it. Memory is taken when arrays are made, and kept for the next ones."""
        import cupy

        self.index = index
        self._cuda = cupy.cuda
        self._pool = cupy.cuda.MemoryPool()
        self._limit = MEMORY_LIMIT.read()
        with cupy.cuda.Device(index):
            self.stream = cupy.cuda.Stream(non_blocking=True)
            if self._limit is not None:
                self._pool.set_limit(size=self._limit)

    @contextmanager
    def activate(self) -> Iterator[None]:
        """Let CuPy use this GPU, its stream and its memory in this thread."""
        # A new Device each time: the object itself remembers what was active before.
        cuda = self._cuda
        with cuda.Device(self.index), self.stream, cuda.using_allocator(self._allocate):
            yield

    def synchronize(self) -> None:
        """Wait for all that was started."""
        self.stream.synchronize()

    def memory(self) -> dict[str, int]:
        """Return bytes in use by arrays, kept by the process, free on the GPU, and in all."""
        with self._cuda.Device(self.index):
            free, total = self._cuda.runtime.memGetInfo()
            return {
                "used": int(self._pool.used_bytes()),
                "kept": int(self._pool.total_bytes()),
                "free": int(free),
                "total": int(total),
            }

    def _allocate(self, size: int) -> Any:
        try:
            return self._pool.malloc(size)
        except self._cuda.memory.OutOfMemoryError as error:
            # The pool has given back what it kept and tried again before it raises.
            raise ExecutionError(self._full(size)) from error

    def _full(self, size: int) -> str:
        memory = self.memory()
        beyond = ", which is too large for this GPU" if size > memory["total"] else ""
        limit = ""
        if self._limit is not None:
            limit = f"; HEADRACE_CUDA_MEMORY_LIMIT is {_readable(self._limit)}"
        return (
            f"cuda:{self.index} is out of memory: {_readable(size)} asked for{beyond}, "
            f"{_readable(memory['used'])} in use by this process, {_readable(memory['free'])} of "
            f"{_readable(memory['total'])} free{limit}\n"
            "  take smaller batches, place parts of the model elsewhere with hr.device, or end "
            "other programs on this GPU"
        )


_OPEN: dict[int, Hardware] = {}
_OPEN_LOCK = threading.Lock()


def hardware(index: int) -> Hardware:
    """Return a GPU of this process, opened when first asked for."""
    with _OPEN_LOCK:
        if index not in _OPEN:
            _OPEN[index] = Hardware(index)
        return _OPEN[index]


def _readable(size: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"
