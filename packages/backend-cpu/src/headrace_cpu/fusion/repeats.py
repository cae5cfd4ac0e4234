"""Groups that repeat: the steps of a recurrent network, or the layers of a deep one.

A kernel depends on what its operations are and how they are connected, not on which ones they are.
So it is generated once for each *structure*, and made the kernel of other groups by exchanging
their tensors.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import replace

from headrace import Operation, Tensor
from headrace.extend.ops import attribute_key
from headrace.extend.records import dataclass
from headrace_cpu.fusion.interpret import data_inputs, host_values
from headrace_cpu.fusion.kernel import FusedKernel
from headrace_cpu.fusion.nodes import uniform_value
from headrace_cpu.fusion.viewing import UPDATE_RULES


@dataclass(frozen=True, slots=True)
class Structure:
    """What a group has in common with others.

    Attributes:
        key: Equal for groups for which the same kernel is right.
        tensors: The group's tensors, those that correspond to each other at the same places.
    """

    key: Hashable
    tensors: tuple[Tensor, ...]


def structure_of(
    ops: Sequence[Operation], wanted: Sequence[Tensor], *, literal: bool = True
) -> Structure:
    """Return the structure of operations of which some outputs are wanted.

    Args:
        ops: The operations.
        wanted: The outputs.
        literal: Whether numbers that are constants stand in the kernel, rather than in memory.
    """
    numbers: dict[Tensor, int] = {}

    def number(tensor: Tensor) -> int:
        return numbers.setdefault(tensor, len(numbers))

    made = {tensor for op in ops for tensor in op.outputs}
    rows = []
    for op in ops:
        given = data_inputs(op)
        if op.type in UPDATE_RULES or op.type == "ReadVariable":
            given = (op.inputs[0], *given)
        attrs = tuple((name, attribute_key(value)) for name, value in op.attrs.items())
        # Which part of a tensor a slice is does not show in shapes.
        asked = tuple(map(attribute_key, host_values(op)))
        places = tuple(map(number, given)), tuple(map(number, op.outputs))
        rows.append((op.type, attrs, asked, *places))
    kinds = tuple(_kind(tensor, tensor in made, numbers, literal) for tensor in numbers)
    key = (literal, tuple(rows), kinds, tuple(numbers[tensor] for tensor in wanted))
    return Structure(key, tuple(numbers))


def _kind(tensor: Tensor, made: bool, numbers: dict[Tensor, int], literal: bool) -> Hashable:
    """Return what a kernel is told about a tensor."""
    content = tensor.spec.content
    held = None if content is None else (content.dtype, content.shape)
    if made:
        return tensor.dtype, tensor.spec.shape, held
    element = uniform_value(tensor) if literal else None
    constant = None if element is None else element.tobytes()
    # What is read of a variable may be the buffer that the kernel updates.
    read = tensor.op.type == "ReadVariable"
    handle = numbers.get(tensor.op.inputs[0], -1) if read else None
    return tensor.dtype, tensor.spec.shape, held, constant, handle


def repeated(
    kernel: FusedKernel,
    tensors: Sequence[Tensor],
    ops: Sequence[Operation],
    structure: Structure,
    name: str,
) -> FusedKernel:
    """Return the kernel of other operations of the same structure.

    Args:
        kernel: The kernel.
        tensors: The tensors of its structure.
        ops: The other operations.
        structure: Their structure, of the same key.
        name: What the new one is called.
    """
    other = dict(zip(tensors, structure.tensors, strict=True))
    result = copy.copy(kernel)
    result.ops, result.name = tuple(ops), name
    result.writes = tuple(other[t] for t in kernel.writes)
    result.reads = tuple(other[t] for t in kernel.reads)
    result.updates = tuple(other[t] for t in kernel.updates)
    result.reuses = tuple((other[new], other[old]) for new, old in kernel.reuses)
    result.checks = tuple(
        replace(c, indices=None if c.indices is None else other[c.indices]) for c in kernel.checks
    )
    layout = kernel.kernel.layout
    places = {(other[t], offset): word for (t, offset), word in layout.tensors.items()}
    result.kernel = replace(kernel.kernel, layout=replace(layout, tensors=places), loads=[])
    return result
