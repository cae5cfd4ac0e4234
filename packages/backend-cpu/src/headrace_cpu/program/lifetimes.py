"""Lifetimes: from which item to which each buffer of a program is needed."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import Tensor
from headrace.extend.records import dataclass
from headrace_cpu.program.arena import Layout, Lifetime, lay_out
from headrace_cpu.program.implementation import Implementation
from headrace_cpu.program.schedule import Item
from headrace_cpu.program.values import Home, Values, size_of


@dataclass(frozen=True, slots=True)
class Places:
    """Where the buffers of a program are.

    Attributes:
        layout: The arena.
        lifetimes: When each buffer is needed.
        tensors: The number of each root's buffer.
        scratch: The number of each instruction's scratch memory.
    """

    layout: Layout
    lifetimes: dict[int, Lifetime]
    tensors: dict[Tensor, int]
    scratch: dict[Implementation, int]

    def offset(self, root: Tensor) -> int:
        """Return where a root's buffer is."""
        return self.layout.offsets[self.tensors[root]]

    def scratch_offset(self, instruction: Implementation) -> int | None:
        """Return where an instruction's scratch memory is, None where it needs none."""
        number = self.scratch.get(instruction)
        return None if number is None else self.layout.offsets[number]


def place_buffers(items: Sequence[Item], values: Values) -> Places:
    """Return the layout of a program's arena."""
    last = last_uses(items, values)
    lifetimes: dict[int, Lifetime] = {}
    tensors: dict[Tensor, int] = {}
    scratch: dict[Implementation, int] = {}
    for index, item in enumerate(items):
        instruction = item.instruction
        if instruction is None:
            continue
        if instruction.scratch:
            scratch[instruction] = len(lifetimes)
            lifetimes[len(lifetimes)] = Lifetime(instruction.scratch, index, index)
        reused: set[Tensor] = set()
        for tensor in instruction.writes:
            if values.home[tensor] is not Home.BUFFER:
                continue
            size = size_of(tensor)
            end = last.get(tensor, index)
            old = _reusable(instruction, tensor, index, values, last, reused)
            number = tensors.get(old) if old is not None else None
            if number is not None and lifetimes[number].size == size:
                # The old buffer lives on under the new tensor.
                reused.add(old)  # type: ignore[arg-type]
                before = lifetimes[number]
                lifetimes[number] = Lifetime(size, before.first, max(before.last, end))
                tensors[tensor] = number
            else:
                tensors[tensor] = len(lifetimes)
                lifetimes[len(lifetimes)] = Lifetime(size, index, end)
    return Places(lay_out(lifetimes, len(items)), lifetimes, tensors, scratch)


def _reusable(
    instruction: Implementation,
    written: Tensor,
    index: int,
    values: Values,
    last: dict[Tensor, int],
    reused: set[Tensor],
) -> Tensor | None:
    """Return a root whose buffer may become that of ``written``, since it dies here."""
    for new, old in instruction.reuses:
        if new is not written:
            continue
        root = values.root(old)
        dies = last.get(root) == index and values.home.get(root) is Home.BUFFER
        if dies and root not in reused:
            return root
    return None


def last_uses(items: Sequence[Item], values: Values) -> dict[Tensor, int]:
    """Return the last item that uses each root, also through objects that may be views of it."""
    last: dict[Tensor, int] = {}
    for index, item in enumerate(items):
        if values.is_view(item):
            continue
        instruction = item.instruction
        used = item.op.inputs
        if instruction is not None:
            used = (*instruction.reads, *instruction.updates)
        for tensor in used:
            root = values.root(tensor)
            last[root] = index
            for lender in values.lent(tensor):
                last[lender] = index
    last.update(dict.fromkeys(values.shown, len(items) - 1))
    return last
