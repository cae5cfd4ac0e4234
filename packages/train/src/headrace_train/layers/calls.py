"""What a layer was called with, and what came of it."""

from __future__ import annotations

from typing import Any

from headrace.errors import AttributeValueError, told
from headrace.extend.graphs import flatten, pack


class Calls:
    """The inputs and outputs of a layer's calls, in order.

    Attributes:
        inputs: A structure of tensors for each call.
        outputs: Likewise.
    """

    def __init__(self, layer: str) -> None:
        """Start empty.

        Args:
            layer: The layer's name, for messages.
        """
        self._layer = layer
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def add(self, inputs: Any, outputs: Any) -> None:
        """Record a call."""
        self.inputs.append(inputs)
        self.outputs.append(outputs)

    def at(self, index: int, what: str) -> Any:
        """Return the inputs or outputs of a call.

        Args:
            index: Its number, from 0.
            what: "input" or "output".

        Raises:
            AttributeError: if there was no call.
            AttributeValueError: if there were fewer calls.
        """
        values = self._of(what, what)
        if not 0 <= index < len(values):
            raise AttributeValueError(
                f"layer {self._layer!r} was called {len(values)} times, there is no "
                f"call {told(index)}"
            )
        return values[index]

    def shape(self, what: str) -> Any:
        """Return the static shapes of the inputs or outputs of all calls.

        Args:
            what: "input" or "output".

        Raises:
            AttributeError: if there was no call, or if they differ.
        """
        shapes = [shapes_of(value) for value in self._of(what, f"{what}_shape")]
        if any(shape != shapes[0] for shape in shapes):
            raise AttributeError(
                f"layer {self._layer!r} was called with several shapes: use "
                f"get_{what}_shape_at(node_index)"
            )
        return shapes[0]

    def _of(self, what: str, asked: str) -> list[Any]:
        values = self.inputs if what == "input" else self.outputs
        if not values:
            raise AttributeError(f"layer {self._layer!r} was never called: it has no {asked}")
        return values


def shapes_of(structure: Any) -> Any:
    """Return the static shapes of tensors, in a structure as theirs."""
    shapes = [leaf.shape for leaf in flatten(structure, composites=False)]
    return pack(structure, shapes, composites=False)
