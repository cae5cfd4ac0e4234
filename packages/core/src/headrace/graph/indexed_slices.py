"""Row-sparse tensors: the form that gradients of ``gather`` take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

from headrace.graph.schema import call_op
from headrace.graph.tensor import Tensor, TensorOperators

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
        dense_shape: [rank], the shape of the whole tensor.
    """

    values: Tensor
    indices: Tensor
    dense_shape: Tensor

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

    def _as_tensor(self) -> Tensor:
        rows: Any = call_op("UnsortedSegmentSum", self.values, self.indices, self.dense_shape[0])
        dense: Any = call_op("Reshape", rows, self.dense_shape)
        assert isinstance(dense, Tensor)
        return dense
