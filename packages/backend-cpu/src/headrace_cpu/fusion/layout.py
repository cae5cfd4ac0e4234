"""What a kernel's block holds: sizes, strides, addresses, and the layout of its scratch memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace import Tensor
from headrace_cpu.fusion.constants import FIRST_WORD
from headrace_cpu.fusion.nodes import BYTES

_LINE = 64


@dataclass(slots=True, eq=False)
class Scratch:
    """A piece of scratch memory.

    Attributes:
        size: In bytes, for one thread, a multiple of a cache line.
        per_thread: Whether each thread has one of its own.
        offset: In bytes from the start of the scratch memory.
    """

    size: int
    per_thread: bool
    offset: int = 0


@dataclass(slots=True, eq=False)
class Layout:
    """The words of a block after those of the runtime.

    Attributes:
        names: The variable of each word.
        numbers: Words that never change.
        tensors: Word by tensor or handle, and offset in bytes, whose address it is.
        pieces: Word by piece of scratch memory.
        scratch: Bytes of scratch memory for one thread and for what threads share.
    """

    names: list[str] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    tensors: dict[tuple[Tensor, int], int] = field(default_factory=dict)
    pieces: dict[int, Scratch] = field(default_factory=dict)

    def number(self, name: str, value: int) -> str:
        """Add a word that never changes."""
        if name not in self.names:
            self.numbers[len(self.names)] = value
            self.names.append(name)
        return name

    def address(self, tensor: Tensor, offset: int, name: str) -> str:
        """Add the address of a tensor's part, once."""
        key = (tensor, offset)
        if key not in self.tensors:
            self.tensors[key] = len(self.names)
            self.names.append(name)
        return self.names[self.tensors[key]]

    def piece(self, name: str, elements: int, code: str, per_thread: bool) -> str:
        """Add a piece of scratch memory."""
        size = -(-elements * BYTES[code] // _LINE) * _LINE
        self.pieces[len(self.names)] = Scratch(size, per_thread)
        self.names.append(name)
        return name

    def place(self, threads: int) -> int:
        """Lay out the scratch memory for so many threads, and return its size in bytes."""
        end = 0
        for piece in self.pieces.values():
            piece.offset = end
            end += piece.size * (threads if piece.per_thread else 1)
        return end

    def word(self, index: int) -> int:
        """Return the position of a word in the block."""
        return FIRST_WORD + index
