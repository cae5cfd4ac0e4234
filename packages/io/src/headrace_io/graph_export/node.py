"""What the function of a row is given: an operation, and the message that nodes are added to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

import headrace as hr
from headrace import DType, Operation, Tensor
from headrace.errors import UnimplementedError
from headrace_io.graph_protos import attr_value_of
from headrace_io.tensor_protos import make_tensor_proto

# What an operation's outputs are in the message, in order: ``"name"`` or ``"name:1"``.
Rule = Callable[["ExportedNode"], str | Sequence[str]]


@final
class ExportedNode:
    """An operation that is written.

    Attributes:
        op: The operation.
        inputs: What its inputs are called in the message, in order.
    """

    def __init__(self, op: Operation, inputs: list[str], message: Any, taken: set[str]) -> None:
        """Write nothing yet.

        Args:
            op: The operation.
            inputs: What its inputs are called.
            message: The ``GraphDef``.
            taken: The names of nodes that the message has, or will have.
        """
        self.op = op
        self.inputs = inputs
        self._message = message
        self._taken = taken

    def attr(self, name: str) -> Any:
        """Return an attribute of the operation."""
        return self.op.attrs[name]

    def tensor(self, index: int) -> Tensor:
        """Return an input."""
        return self.op.inputs[index]

    def dtype(self, index: int = 0) -> DType:
        """Return the dtype of an input."""
        return self.op.inputs[index].dtype

    def rank(self, index: int = 0) -> int:
        """Return the rank of an input.

        Raises:
            UnimplementedError: if it is not known.
        """
        found = self.op.inputs[index].shape.rank
        if found is None:
            raise self.refused(f"the rank of {self.op.inputs[index].name!r} is not known")
        return found

    def refused(self, why: str) -> UnimplementedError:
        """Return the error that says why TensorFlow has no such operation."""
        return UnimplementedError(
            f"{self.op.type} {self.op.name!r} cannot be written as TensorFlow's: {why}"
        )

    def emit(self, kind: str, *inputs: str, part: str = "", **attrs: Any) -> str:
        """Add a node.

        Args:
            kind: The type of TensorFlow's op.
            *inputs: What it takes.
            part: The node's name below that of the operation; that of the operation if empty.
            **attrs: Its attributes.

        Returns:
            Its name, which also is its first output.
        """
        node = self._message.node.add(op=kind, name=self._named(part))
        node.input.extend(inputs)
        for name, value in attrs.items():
            node.attr[name].CopyFrom(attr_value_of(value))
        return str(node.name)

    def const(self, value: Any, part: str, dtype: DType = hr.int32) -> str:
        """Add a constant, and return its name."""
        array = np.asarray(value, dtype.numpy)
        name = self.emit("Const", part=part, dtype=dtype)
        self._message.node[-1].attr["value"].tensor.CopyFrom(make_tensor_proto(array))
        return name

    def cast(self, index: int, dtype: DType) -> str:
        """Return an input as another dtype: itself where it has that one."""
        if self.dtype(index) == dtype:
            return self.inputs[index]
        return self.emit(
            "Cast", self.inputs[index], part="Cast", SrcT=self.dtype(index), DstT=dtype
        )

    def _named(self, part: str) -> str:
        if not part:
            return self.op.name
        base = name = f"{self.op.name}/{part}"
        count = 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


@final
class ExportTable:
    """Rows of one family: the rule for each type of operation."""

    def __init__(self) -> None:
        """Have no row yet."""
        self.rules: dict[str, Rule] = {}

    def add(self, *kinds: str) -> Callable[[Rule], Rule]:
        """Add ``f(node)``, which writes an operation and returns what its outputs are called."""

        def add(rule: Rule) -> Rule:
            for kind in kinds:
                self.rules[kind] = rule
            return rule

        return add

    def same(
        self,
        kinds: str,
        to: str = "",
        *,
        types: str = "T",
        attrs: str = "",
        outputs: int = 1,
        **fixed: Any,
    ) -> None:
        """Add rows for operations that one node of the same inputs stands for.

        Args:
            kinds: Types of operations, with blanks between them.
            to: The type of TensorFlow's op, where it is another one.
            types: Attributes that are the dtypes of the inputs in order; ``-`` for an input whose
                dtype TensorFlow does not ask for.
            attrs: Attributes that are passed on; ``theirs=ours`` where the names differ.
            outputs: How many outputs there are.
            **fixed: Further attributes.
        """
        names = types.split()
        pairs = [(theirs, ours or theirs) for theirs, _, ours in _pairs(attrs)]

        def rule(node: ExportedNode) -> list[str]:
            given: dict[str, Any] = {
                name: node.dtype(i) for i, name in enumerate(names) if name != "-"
            }
            given |= {theirs: node.attr(ours) for theirs, ours in pairs}
            made = node.emit(to or node.op.type, *node.inputs, **given, **fixed)
            return [made, *(f"{made}:{i}" for i in range(1, outputs))]

        self.add(*kinds.split())(rule)


def _pairs(text: str) -> list[tuple[str, str, str]]:
    return [word.partition("=") for word in text.split()]
