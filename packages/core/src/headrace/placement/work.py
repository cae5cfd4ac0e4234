"""How much an operation computes and moves, estimated from the shapes that a graph knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final

from headrace.errors import PluginError
from headrace.graph.function import functions_within
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.plugins.error_attribution import described, line_of_error
from headrace.plugins.ownership import package_of
from headrace.records import dataclass

# What an element takes of these: handles are handed over as they are, texts are objects.
_ITEM_BYTES: Final = {"resource": 0, "list": 0, "string": 16}

# What yields an array that is there already.
_HANDED_OVER: Final = ("Const", "ReadVariable")
# What reads of its first input no more than it yields.
_LOOKUPS: Final = ("Gather", "GatherNd")


@dataclass(frozen=True, slots=True)
class Work:
    """What a run of an operation takes.

    Attributes:
        bytes: Bytes read and written.
        flops: Floating-point operations.
        runs: How many operations run; 0 for one that the runtime does by the way.
    """

    bytes: float
    flops: float
    runs: int


class Sizes:
    """Sizes of tensors, where dimensions that nobody knows count as so many."""

    def __init__(self, unknown: int, known: Mapping[str, float]) -> None:
        """Take what a program says.

        Args:
            unknown: What an unknown dimension counts as, and how many rounds a loop makes.
            known: Bytes by the names of tensors.
        """
        self._unknown = unknown
        self._known = known

    def elements(self, spec: TensorSpec) -> int:
        """Return the number of elements of a tensor."""
        return math.prod(self.dims(spec))

    def dims(self, spec: TensorSpec) -> tuple[int, ...]:
        """Return the shape of a tensor, that of one dimension if its rank is not known."""
        dims = (None,) if spec.shape.dims is None else spec.shape.dims
        return tuple(self._unknown if dim is None else dim for dim in dims)

    def bytes(self, tensor: Tensor) -> float:
        """Return the bytes of a tensor, 0 of a handle."""
        known = self._known.get(tensor.name)
        return self._of(tensor.spec) if known is None else known

    def work(self, op: Operation) -> Work:
        """Return what a run of an operation takes, with all that its functions do."""
        found = self._own(op)
        inner = functions_within(op)
        if not inner:
            return found
        parts = [self._own(other) for function in inner for other in function.operations]
        # A loop makes some rounds; one of several branches runs.
        times = self._unknown if op.type == "While" else 1 / len(inner) if op.type == "If" else 1
        return Work(
            times * sum(part.bytes for part in parts),
            times * sum(part.flops for part in parts),
            max(int(times * sum(part.runs for part in parts)), 1),
        )

    def _own(self, op: Operation) -> Work:
        if op.schema.view or op.schema.builtin or op.type in _HANDED_OVER:
            return Work(0.0, 0.0, 0)
        read = op.outputs if op.type in _LOOKUPS else ()
        tensors = (*dict.fromkeys((*read, *op.inputs[bool(read) :])), *op.outputs)
        touched = float(sum(map(self.bytes, tensors)))
        ranked = all(t.spec.shape.dims is not None for t in (*op.inputs, *op.outputs))
        if op.schema.flops is not None and ranked:
            return Work(touched, self._counted(op, op.schema.flops), 1)
        return Work(touched, float(max((self.elements(t.spec) for t in tensors), default=0)), 1)

    def _counted(self, op: Operation, count: Callable[..., float]) -> float:
        shapes = [[self.dims(t.spec) for t in tensors] for tensors in (op.inputs, op.outputs)]
        try:
            return float(count(*shapes))
        except Exception as error:
            raise PluginError(
                f"the count of the flops of {op.type} failed: {described(error)}\n"
                f"  in package {package_of(op.schema.where)}, at {line_of_error(error, count)}"
            ) from error

    def _of(self, spec: TensorSpec) -> float:
        item = _ITEM_BYTES.get(spec.dtype.kind)
        if item == 0:
            return 0
        return self.elements(spec) * (spec.dtype.numpy.itemsize if item is None else item)
