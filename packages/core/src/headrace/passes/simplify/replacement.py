"""What a rule builds its replacement with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType
from headrace.graph.spec import TensorSpec, constant_spec
from headrace.passes.simplify.workgraph import Node, Value, WorkGraph

_NDArray = np.ndarray[Any, np.dtype[Any]]


class Replacement:
    """Nodes that one application of a rule adds.

    Attributes:
        graph: The graph that is simplified.
        root: The node that the rule looks at.
        origin: The rule's name, which added nodes bear.
        added: The nodes that the rule added.
    """

    __slots__ = ("added", "graph", "origin", "root")

    def __init__(self, graph: WorkGraph, root: Node) -> None:
        """Start without nodes."""
        self.graph = graph
        self.root = root
        self.origin = ""
        self.added: list[Node] = []

    def add(self, type_name: str, *inputs: Any, **attrs: Any) -> Value:
        """Return the first output of an op, added to the graph unless an equal node is there.

        Args:
            type_name: The op.
            inputs: One entry for each of its parameters.
            attrs: All of its attributes.
        """
        node, new = self.graph.add(type_name, inputs, attrs, self.root, self.origin)
        if new:
            self.added.append(node)
        return Value(node, 0)

    def again(self, inputs: Sequence[Value]) -> Value:
        """Return the root's op on other inputs."""
        root = self.root
        return self.add(root.type, *root.schema.group(list(inputs), root.arity), **root.attrs)

    def constant(self, value: Any, dtype: DType) -> Value:
        """Return a constant; plain data is converted to ``dtype``."""
        array: _NDArray = np.array(value, dtype.numpy)
        array.flags.writeable = False
        made = self.add("Const", value=array)
        if made.spec.value is None:
            made.node.specs = (constant_spec(array, dtype),)
        return made

    def shape_vector(self, dims: Sequence[int]) -> Value:
        """Return a shape as a constant: int32, or int64 where a size needs it."""
        wide = any(d > dtypes.int32.max for d in dims)
        return self.constant(list(dims), dtypes.int64 if wide else dtypes.int32)

    def reshape(self, x: Value, dims: Sequence[int]) -> Value:
        """Return a value under a known shape; the value itself where it has it."""
        return x if x.dims == tuple(dims) else self.add("Reshape", x, self.shape_vector(dims))

    def broadcast(self, x: Value, dims: Sequence[int]) -> Value:
        """Return a value repeated to a known shape; the value itself where it has it."""
        return x if x.dims == tuple(dims) else self.add("BroadcastTo", x, self.shape_vector(dims))


def sharpened(spec: TensorSpec, by: TensorSpec) -> TensorSpec:
    """Return a spec with what another one of the same tensor knows of its shape."""
    return spec if spec.shape == by.shape else spec.sharpened(by.shape)
