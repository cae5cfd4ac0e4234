"""A node of TensorFlow's as the functions of translations see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import headrace as hr
from headrace import Tensor
from headrace.errors import DocumentError, listing
from headrace_io.graph_import.attributes import attribute_value
from headrace_io.translation.values import as_handle, as_tensor

# Which inputs and outputs there are, and how kernels of TensorFlow go about it.
_EVERYWHERE = frozenset(("N", "use_locking", "use_cudnn_on_gpu", "validate_indices"))


@final
class Node:
    """A node, its inputs and its attributes.

    Attributes:
        name: Its name.
        op: The type of its op.
        inputs: What stands for its inputs.
    """

    def __init__(
        self,
        message: Any,
        inputs: Sequence[Any],
        call: Callable[[Any, Sequence[Any]], list[Any]],
        root: bool,
    ) -> None:
        self.message = message
        self.name: str = message.name
        self.op: str = message.op
        self.inputs = list(inputs)
        # Whether it is a node of the graph itself and not of a loop or function.
        self.root = root
        self._call = call
        self._asked: set[str] = set()

    @property
    def tensors(self) -> list[Tensor]:
        """The inputs as tensors; of a variable the value."""
        return [as_tensor(value) for value in self.inputs]

    def value(self, index: int) -> Any:
        """Return an input as the translation of its node returned it."""
        if index >= len(self.inputs):
            raise DocumentError(f"it has {len(self.inputs)} inputs, expected {index + 1} or more")
        return self.inputs[index]

    def tensor(self, index: int) -> Tensor:
        """Return an input as a tensor; of a variable the value."""
        return as_tensor(self.value(index))

    def handle(self, index: int) -> Tensor:
        """Return an input that is the handle of a resource."""
        return as_handle(self.value(index))

    def static(self, index: int) -> Any:
        """Return the value of an input where it is known while the graph is built, else None."""
        return hr.get_static_value(self.tensor(index))

    def known(self, index: int, what: str) -> Any:
        """Return the value of an input that must be known while the graph is built.

        Raises:
            DocumentError: if it is not.
        """
        found = self.static(index)
        if found is None:
            raise DocumentError(
                f"its input {what} must be known while the graph is built, and is computed by "
                f"{self.tensor(index).op.type} {self.tensor(index).op.name!r}"
            )
        return found.tolist()

    def attr(self, name: str, default: Any = None) -> Any:
        """Return an attribute, or ``default`` where it is not there."""
        self._asked.add(name)
        if name not in self.message.attr:
            return default
        given = self.message.attr[name]
        if given.WhichOneof("value") == "func":
            return given.func
        return attribute_value(given, None)

    def text(self, name: str, default: str = "") -> str:
        """Return an attribute that is a text."""
        found = self.attr(name)
        return default if found is None else found.decode("utf-8", "surrogateescape")

    def call(self, function: Any, arguments: Sequence[Any]) -> list[Any]:
        """Build what a function of the graph's library holds, and return its results."""
        return self._call(function, arguments)

    def check_asked(self, ignored: frozenset[str]) -> None:
        """Refuse attributes that nobody asked for, but dtypes.

        Raises:
            DocumentError: if there are any.
        """
        odd = [
            name
            for name in self.message.attr
            if name not in self._asked
            and name not in ignored
            and name not in _EVERYWHERE
            and not name.startswith("_")
            and not _is_dtypes(self.message.attr[name])
        ]
        if odd:
            raise DocumentError(
                f"its op has no attributes {listing(map(repr, sorted(odd)))} in TensorFlow 1.15"
            )


def _is_dtypes(given: Any) -> bool:
    kind = given.WhichOneof("value")
    if kind != "list":
        return kind in ("type", None)
    return not given.list.ListFields() or bool(given.list.type)
