"""Which values leave a region before it has ended.

That pays for large ones that nobody on this task waits for: what is sent to other tasks is on its
way while the region goes on, and so is what starts an operation that others wait for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.runtime.planning.clustering import Unit
from headrace.runtime.transfers.rendezvous import Edge

_LARGE_BYTES = 1 << 16


def sent_early(readers: Mapping[Tensor, Collection[Unit]], came: Collection[Edge]) -> set[Tensor]:
    """Return the tensors that regions make for other tasks only.

    Args:
        readers: The units that read each tensor of another unit.
        came: The transfers that this process receives.
    """
    return {t for t, units in readers.items() if _is_large(t) and _all_leave(units, came)}


def starting_early(
    order: Sequence[Operation],
    place: Mapping[Operation, Unit],
    readers: Mapping[Tensor, Collection[Unit]],
) -> set[Operation]:
    """Return the operations for which other tasks wait, and which one region makes all inputs of.

    Args:
        order: The operations.
        place: The unit of each that is in one.
        readers: The units that read each tensor of another unit.
    """
    found = set()
    for op in order:
        if not op.schema.concerted or op.control_inputs or not any(map(_is_large, op.inputs)):
            continue
        makers = {place.get(t.op) for t in op.inputs}
        (maker, *others) = makers
        if maker is None or not maker.region or others:
            continue
        if all(readers[t] == {place[op]} for t in op.inputs):
            found.add(op)
    return found


def _is_large(tensor: Tensor) -> bool:
    """Whether sending a tensor early is worth a call for it; small ones leave together."""
    if tensor.dtype.kind in ("resource", "list"):
        return True
    count = tensor.shape.num_elements()
    return count is None or count * tensor.dtype.numpy.itemsize >= _LARGE_BYTES


def _all_leave(units: Collection[Unit], came: Collection[Edge]) -> bool:
    """Whether units do nothing but send to other tasks.

    Args:
        units: Who reads a tensor.
        came: The transfers that this process receives.
    """
    ops = [op for unit in units for op in unit.ops]
    return all(op.type == "Send" and Edge.of(op) not in came for op in ops)
