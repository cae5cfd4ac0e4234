"""Row-sparse tensors: the form that gradients of ``gather`` take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from headrace.arguments import items
from headrace.errors import GraphError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import call_op
from headrace.graph.spec import as_shape
from headrace.graph.tensor import Tensor, TensorOperators
from headrace.graph.tensor_shape import TensorShape
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.dtypes import DType
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation


@final
@dataclass(frozen=True, slots=True, eq=False)
class IndexedSlices(TensorOperators):
    """Rows of a larger tensor, all others being zero; rows named twice add up.

    Converts to a dense tensor wherever one is needed.

    Attributes:
        values: [n, ...], the rows.
        indices: [n], the index of each row along axis 0.
        dense_shape: [rank], the shape of the whole tensor; None where nobody needs to know it.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Any = None

    def __post_init__(self) -> None:
        """Make tensors of the parts."""
        for name in ("values", "indices", "dense_shape"):
            part = getattr(self, name)
            if part is not None:
                object.__setattr__(self, name, convert_to_tensor(part))

    @property
    def shape(self) -> TensorShape:
        """The static shape of the whole tensor."""
        return TensorShape(None if self.dense_shape is None else as_shape(self.dense_shape.spec))

    @property
    def device(self) -> str:
        """The device asked for the rows."""
        return self.values.device

    @property
    def dtype(self) -> DType:
        """The dtype of the rows."""
        return self.values.dtype

    @property
    def graph(self) -> Graph:
        """The graph that owns the parts."""
        return self.values.graph

    @property
    def op(self) -> Operation:
        """The operation that yields the rows."""
        return self.values.op

    @property
    def name(self) -> str:
        """The name of the rows."""
        return self.values.name

    def consumers(self) -> list[Operation]:
        """Return the operations that take one of the parts."""
        parts = self.flatten()
        return [op for op in self.graph.operations if any(t is p for t in op.inputs for p in parts)]

    def flatten(self) -> list[Tensor]:
        """Return its parts, for functions that take structures of tensors."""
        parts = [self.values, self.indices, self.dense_shape]
        return [part for part in parts if part is not None]

    @staticmethod
    def unflatten(tensors: Sequence[Tensor]) -> IndexedSlices:
        """Return row-sparse values of other parts."""
        return IndexedSlices(*items(tensors, "tensors", 3))

    def __neg__(self) -> IndexedSlices:  # type: ignore[override]
        """Return the rows negated."""
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def _as_tensor(self) -> Tensor:
        if self.dense_shape is None:
            raise GraphError(
                f"{shown(self)} converts to no dense tensor: its dense_shape was not given"
            )
        rows: Any = call_op("UnsortedSegmentSum", self.values, self.indices, self.dense_shape[0])
        dense: Any = call_op("Reshape", rows, self.dense_shape)
        assert isinstance(dense, Tensor)
        rows_of = self.values.spec.shape
        if rows_of.rank:
            dense.set_shape([None, *rows_of[1:]])
        return dense
