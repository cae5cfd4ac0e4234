"""State besides variables that savers save, as any package may offer it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.dtypes import DType
    from headrace.graph.graph import Graph
    from headrace.graph.operation import Operation
    from headrace.graph.tensor import Tensor
    from headrace.shapes import Shape


@final
@dataclass(frozen=True, slots=True, eq=False)
class Saveable:
    """State that is saved as one tensor, beside the variables.

    A saver takes what is in the collection ``GraphKeys.SAVEABLE_OBJECTS`` when it is made, or what
    its ``var_list`` names.

    Attributes:
        op_name: The name under which it is saved.
        snapshot: The state as a tensor; fetched together with the variables.
        initialized: [], bool: whether there is something to save.
        make_restore: From a tensor of the saved state to an operation that restores it.
    """

    op_name: str
    snapshot: Tensor
    initialized: Tensor
    make_restore: Callable[[Tensor], Any]

    @property
    def graph(self) -> Graph:
        """The graph to which it belongs."""
        return self.snapshot.graph

    @property
    def dtype(self) -> DType:
        """The dtype of what is saved."""
        return self.snapshot.dtype

    @property
    def shape(self) -> Shape:
        """The shape of what is saved, as far as it is fixed."""
        return self.snapshot.spec.shape

    def is_initialized(self) -> Tensor:
        """Return whether there is something to save."""
        return self.initialized

    def restore(self, value: Tensor) -> Operation:
        """Return the operation that restores a state."""
        found: Operation = self.make_restore(value)
        return found
