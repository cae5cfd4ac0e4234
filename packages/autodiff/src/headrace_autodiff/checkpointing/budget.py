"""What users ask for: ``memory_budget``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from headrace import Graph, Tensor
from headrace.errors import AttributeValueError, GraphError, shown

_EXPECTED = (
    "memory_budget is a number of bytes, a fraction such as 0.3 of what would be kept, "
    "'memory', 'speed', 'host', or a list of the tensors to keep"
)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much of the forward pass a gradient may keep; one attribute is set.

    Attributes:
        size: Bytes of values of the forward pass at any one time.
        fraction: The same, as a share of what would be kept without a budget.
        least: As little as one more forward pass allows.
        cheap: Compute again what is elementwise, and nothing else.
        on_host: Keep everything, in the memory of the host.
        checkpoints: Keep these tensors, and no others.
    """

    size: int | None = None
    fraction: float | None = None
    least: bool = False
    cheap: bool = False
    on_host: bool = False
    checkpoints: tuple[Tensor, ...] | None = None


def read_budget(given: Any, graph: Graph) -> Budget | None:
    """Return what the argument ``memory_budget`` means, None where everything is kept.

    Raises:
        AttributeValueError: if it means nothing.
        GraphError: if one of a list of tensors belongs to another graph.
    """
    if given is None:
        return None
    if isinstance(given, str):
        found = {
            "memory": Budget(least=True),
            "speed": Budget(cheap=True),
            "host": Budget(on_host=True),
        }.get(given)
        if found is not None:
            return found
    elif isinstance(given, bool):
        pass
    elif isinstance(given, Integral):
        if int(given) > 0:
            return Budget(size=int(given))
    elif isinstance(given, Real):
        if 0 < float(given) <= 1:
            return Budget(fraction=float(given))
    elif isinstance(given, Sequence):
        return Budget(checkpoints=tuple(_checkpoint(item, graph) for item in given))
    raise AttributeValueError(f"gradients: {_EXPECTED}; got {shown(given)}")


def _checkpoint(item: Any, graph: Graph) -> Tensor:
    if not isinstance(item, Tensor):
        raise AttributeValueError(f"gradients: {_EXPECTED}; the list has {shown(item)}")
    if item.graph is not graph:
        raise GraphError(
            f"gradients: the checkpoint {shown(item)} belongs to another graph than ys[0]"
        )
    return item
