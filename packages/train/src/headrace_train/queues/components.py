"""The components of elements: converted and checked on their way in, arranged on their way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, final

import headrace as hr
from headrace import DType, Shape, Tensor
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    listing,
    shown,
)
from headrace.extend.arguments import items


@final
class Components:
    """What the elements are that something holds.

    Attributes:
        owner: The name of what holds them, for errors.
        dtypes: The dtype of each component.
        shapes: The shape of each, as far as fixed.
        names: The name of each, None where they have none.
        labels: What errors call each.
    """

    def __init__(
        self,
        owner: str,
        dtypes: Sequence[DType],
        shapes: Sequence[Shape],
        names: Sequence[str] | None,
    ) -> None:
        self.owner = owner
        self.dtypes = list(dtypes)
        self.shapes = list(shapes)
        self.names = None if names is None else list(names)
        self.labels = self.names or [f"component {i}" for i in range(len(self.dtypes))]

    def tensors(self, vals: Any, *, many: bool) -> list[Tensor]:
        """Return an element, or several, as one tensor per component.

        Args:
            vals: A tensor, a list, or a dict where components have names.
            many: Whether each has a leading axis along which elements are stacked.

        Raises:
            DTypeError: if a component does not have its dtype.
            ShapeError: if it does not have its shape, or components differ in length.
            AttributeValueError: if there are too few components or too many.
        """
        items = self._items(vals)
        tensors: list[Tensor] = []
        rows = Shape([None])
        for i, value in enumerate(items):
            tensor = self._converted(i, value)
            expected = rows.concatenate(self.shapes[i]) if many else self.shapes[i]
            if not expected.is_compatible_with(tensor.spec.shape) or (
                many and tensor.shape.rank == 0
            ):
                raise ShapeError(
                    f"{self.labels[i]} of {self.owner!r} must have shape {expected}, got "
                    f"{shown(tensor)}"
                )
            if many and tensor.shape.rank is not None:
                rows = rows.merge_with(tensor.spec.shape[:1])
            tensors.append(tensor)
        return tensors

    def element(self, taken: Sequence[Tensor]) -> dict[str, Tensor] | list[Tensor]:
        """Return an element that was taken, as a dict where components have names."""
        return dict(zip(self.names, taken, strict=True)) if self.names else list(taken)

    def _items(self, vals: Any) -> list[Any]:
        if self.names is not None:
            keys = items(vals, "vals") if isinstance(vals, Mapping) else None
            if keys is None or set(keys) != set(self.names):
                got = type(vals).__name__
                if keys is not None:
                    got = f"the keys {listing(map(shown, keys))}"
                raise AttributeValueError(
                    f"elements of {self.owner!r} are dicts with the keys "
                    f"{listing(map(repr, self.names))}, got {got}"
                )
            return [vals[name] for name in self.names]
        if isinstance(vals, Mapping):
            raise AttributeValueError(
                f"{self.owner!r} was made without names= and takes no dict, got the keys "
                f"{listing(map(shown, items(vals, 'vals')))}"
            )
        parts = items(vals, "vals") if isinstance(vals, list | tuple) else [vals]
        if len(parts) != len(self.dtypes):
            raise AttributeValueError(
                f"an element of {self.owner!r} is a list of {len(self.dtypes)} components, got a "
                f"list of {len(parts)}; data in a list of its own goes into another list"
            )
        return parts

    def _converted(self, index: int, value: Any) -> Tensor:
        dtype = self.dtypes[index]
        try:
            return hr.convert_to_tensor(value, dtype, name=f"component_{index}")
        except DTypeError as error:
            raise DTypeError(
                f"{self.labels[index]} of {self.owner!r} is {dtype}: {error}"
            ) from None


def check_graph(handle: Tensor, what: str) -> None:
    """Refuse to use a resource in another graph than its own.

    Args:
        handle: The handle to the resource.
        what: What it is, as in "queue".

    Raises:
        GraphError: if the default graph is another one.
    """
    if handle.graph.outermost is not hr.get_default_graph().outermost:
        raise GraphError(
            f"the {what} {handle.op.name!r} belongs to another graph than the default one; use it "
            "inside 'with graph.as_default():'"
        )
