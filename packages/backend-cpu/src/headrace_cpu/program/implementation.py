"""Implementations: what computes one or several operations at once, as a program sees it.

Matching, the schedule and the memory plan go by this alone, whoever runs it in the end.
"""

from __future__ import annotations

from headrace import Operation, Tensor
from headrace.extend.devices import bytes_of


class Implementation:
    """Something that computes operations on buffers, without Python objects.

    Buffers of tensors are C-contiguous and of the tensor's dtype (bool is a byte of 0 or 1). Every
    dimension is known.

    Attributes:
        ops: What it computes, in an order in which they could run.
        reads: Tensors that it reads.
        spare: Those of them that it no longer reads when it is prepared.
        writes: Tensors that it fills, wholly.
        updates: Handles of variables whose buffers it changes in place.
        scratch: Bytes of scratch memory that it needs while it runs.
        reuses: Pairs (written, read) of tensors that may have the same buffer.
        name: What it is called in the program's source: a Python identifier.
        package: Whose work it is, for explanations: a backend, or a library behind it.
    """

    ops: tuple[Operation, ...]
    reads: tuple[Tensor, ...]
    writes: tuple[Tensor, ...]
    package: str
    spare: tuple[Tensor, ...] = ()
    updates: tuple[Tensor, ...] = ()
    scratch: int = 0
    reuses: tuple[tuple[Tensor, Tensor], ...] = ()
    name: str = "call"

    def flops(self) -> int:
        """Return how many floating-point operations it does."""
        return 0

    def moved(self) -> int:
        """Return how many bytes of tensors and variables it reads and writes."""
        read = (t for t in self.reads if t not in self.spare)
        return bytes_of((*read, *self.writes)) + 2 * bytes_of(self.updates)

    def source(self) -> str:
        """Return the source of what it runs, empty where there is none to show."""
        return ""
