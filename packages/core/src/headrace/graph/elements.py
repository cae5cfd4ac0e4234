"""The elements of a graph: its operations and tensors, found by their names."""

from __future__ import annotations

from typing import Any

from headrace.errors import GraphError, NoElementError, NoSuchElementError, shown
from headrace.graph.attributes import as_text
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor


class GraphElements:
    """What ``Graph`` has to find its operations and tensors.

    Attributes:
        unfeedable: Tensors that sessions refuse to feed.
        unfetchable: Operations that sessions refuse to fetch, and their outputs.
    """

    __slots__ = ()

    _by_name: dict[str, Operation]
    unfeedable: frozenset[Tensor]
    unfetchable: frozenset[Operation]

    def get_operation_by_name(self, name: str) -> Operation:
        """Return the operation ``name``.

        Raises:
            NoSuchElementError: if there is none.
            GraphError: if it is the name of a tensor.
        """
        op = self._by_name.get(name)
        if op is None and name.rpartition(":")[0] in self._by_name:
            raise GraphError(
                f"{name!r} is the name of a tensor; its operation is {name.rpartition(':')[0]!r}"
            )
        if op is None:
            hint = self._suggest(name)
            if not self._by_name:
                hint = ", nor any other; pass the graph that has it to hr.Session(graph=...)"
            raise NoSuchElementError(f"the graph has no operation {name!r}{hint}")
        return op

    def find_operation(self, name: str) -> Operation | None:
        """Return the operation ``name``, or None if there is none."""
        return self._by_name.get(name)

    def get_tensor_by_name(self, name: str) -> Tensor:
        """Return the tensor ``"operation:index"``.

        Raises:
            NoSuchElementError: if there is none.
            GraphError: if that is no name of a tensor.
        """
        op_name, colon, index = name.rpartition(":")
        if not colon or not index.isdecimal() or not index.isascii():
            hint = f"; did you mean '{name}:0'?" if name in self._by_name else ""
            raise GraphError(f"a tensor is named 'operation:index', got {shown(name)}{hint}")
        op = self.get_operation_by_name(op_name)
        if int(index) >= len(op.outputs):
            raise NoSuchElementError(
                f"operation {op_name!r} ({op.type}) has {len(op.outputs)} outputs, "
                f"there is no {name!r}; the first is '{op_name}:0'"
                if op.outputs
                else f"operation {op_name!r} ({op.type}) has no outputs, there is no {name!r}"
            )
        return op.outputs[int(index)]

    def as_graph_element(
        self, obj: Any, allow_tensor: bool = True, allow_operation: bool = True
    ) -> Tensor | Operation:
        """Return the tensor or operation that ``obj`` is, names, or converts to.

        Args:
            obj: A tensor, operation, variable, or a name in text or bytes.
            allow_tensor: Whether it may be a tensor.
            allow_operation: Whether it may be an operation.

        Raises:
            NoSuchElementError: if it names none.
            NoElementError: if it is nothing that a graph has, or not what is allowed.
            GraphError: if it belongs to another graph.
        """
        element = self._element(obj)
        if not allow_tensor and isinstance(element, Tensor):
            raise NoElementError(f"expected an operation, got the tensor {element.name!r}")
        if not allow_operation and isinstance(element, Operation):
            raise NoElementError(f"expected a tensor, got the operation {element.name!r}")
        return element

    def _element(self, value: Any) -> Tensor | Operation:
        element = value
        if isinstance(value, bytes):
            value = as_text(value)
        if isinstance(value, str):
            by_index = ":" in value
            return self.get_tensor_by_name(value) if by_index else self.get_operation_by_name(value)
        convert = getattr(value, "_as_graph_element", None)
        if convert is not None:
            element = convert()
        if not isinstance(element, Tensor | Operation):
            raise NoElementError(
                f"expected a tensor, operation, variable or name, got {type(value).__name__}"
            )
        if element.graph is not self:
            raise GraphError(
                f"{shown(value)} belongs to another graph; use hr.Session(graph=tensor.graph), or "
                "build it in this one"
                if element.graph.outermost is element.graph
                else f"{shown(value)} belongs to {element.graph.described}: return it from there"
            )
        return element

    # -- what sessions refuse

    def is_feedable(self, tensor: Tensor) -> bool:
        """Return whether a tensor may be fed."""
        return tensor not in self.unfeedable

    def is_fetchable(self, tensor_or_op: Any) -> bool:
        """Return whether a tensor or an operation may be fetched."""
        return getattr(tensor_or_op, "op", tensor_or_op) not in self.unfetchable

    def _suggest(self, name: str) -> str:
        import difflib

        near = difflib.get_close_matches(name, self._by_name, n=1)
        return f"; did you mean {near[0]!r}?" if near else ""
