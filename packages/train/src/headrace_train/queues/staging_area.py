"""Staging areas: buffers between steps, limited by number and by bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import headrace as hr
from headrace import DType, Operation, Tensor, TensorShape
from headrace.errors import AttributeValueError, shown
from headrace.extend.primitives import (
    stage,
    stage_clear,
    stage_peek,
    stage_size,
    staging_area_handle,
    unstage,
)
from headrace_train.queues.arguments import components, handle, whole_number
from headrace_train.queues.components import Components, check_graph


@final
class StagingArea:
    """A buffer of elements between steps, on the device of the scope in which it is made.

    A step that puts the next batch in while another one computes hides the time that copying
    takes.
    """

    def __init__(
        self,
        dtypes: Any,
        shapes: Any = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        capacity: int = 0,
        memory_limit: int = 0,
    ) -> None:
        """Make a staging area in the default graph.

        Args:
            dtypes: The dtype of each component of an element.
            shapes: The shape of each component, as far as it is fixed; all unknown if None.
            names: The name of each component; elements then are dicts.
            shared_name: The area's name, also in its container; ``"StagingArea"``, made unique, if
                None.
            capacity: How many elements it holds at most; 0 for any number.
            memory_limit: How many bytes its elements have together at most; 0 for any number.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ, or a limit is
                less than 0.
        """
        if shared_name is not None and not isinstance(shared_name, str):
            raise AttributeValueError(f"shared_name must be a string, got {shown(shared_name)}")
        kinds, forms, labels = components(dtypes, shapes, names, partial=True)
        self._capacity = whole_number(capacity, "capacity")
        self._memory_limit = whole_number(memory_limit, "memory_limit")
        self._ref = handle(
            staging_area_handle,
            "StagingArea" if shared_name is None else shared_name,
            shared_name,
            capacity=self._capacity,
            memory_limit=self._memory_limit,
            component_types=tuple(kinds),
            shapes=tuple(forms),
        )
        self._name = shared_name or self._ref.op.name
        self._components = Components(self._name, kinds, forms, labels)

    @property
    def name(self) -> str:
        """The name of the area."""
        return self._name

    @property
    def dtypes(self) -> list[DType]:
        """The dtype of each component."""
        return self._components.dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """The shape of each component, as far as fixed."""
        return [TensorShape(shape) for shape in self._components.shapes]

    @property
    def names(self) -> list[str] | None:
        """The name of each component, None where they have none."""
        return self._components.names

    @property
    def capacity(self) -> int:
        """How many elements it holds at most; 0 for any number."""
        return self._capacity

    @property
    def memory_limit(self) -> int:
        """How many bytes its elements have together at most; 0 for any number."""
        return self._memory_limit

    def put(self, values: Any, name: str | None = None) -> Operation:
        """Return an operation that puts an element in, and waits while there is no room.

        Args:
            values: The components: a tensor, a list, or a dict where the area has names.
            name: The name of the operation.

        Raises:
            DTypeError: if a component does not have its dtype.
            ShapeError: if it does not have its shape.
            AttributeValueError: if there are too few components or too many.
        """
        check_graph(self._ref, "staging area")
        with hr.name_scope(name, f"{self._label}_put") as scope:
            tensors = self._components.tensors(values, many=False)
            return _operation(stage(self._ref, tensors, name=scope))

    def get(self, name: str | None = None) -> dict[str, Tensor] | list[Tensor]:
        """Return the oldest element, taken out; the step waits while there is none.

        Args:
            name: The name of the operation.

        Returns:
            The components, a list also of one; a dict where the area has names.
        """
        check_graph(self._ref, "staging area")
        label = f"{self._label}_get" if name is None else name
        return self._components.element(unstage(self._ref, self.dtypes, self.shapes, name=label))

    def peek(self, index: Any, name: str | None = None) -> dict[str, Tensor] | list[Tensor]:
        """Return an element, which stays; the step waits until there are so many.

        Args:
            index: Which one, 0 for the oldest.
            name: The name of the operation.

        Returns:
            As for ``get``.
        """
        check_graph(self._ref, "staging area")
        label = f"{self._label}_peek" if name is None else name
        seen = stage_peek(self._ref, index, self.dtypes, self.shapes, name=label)
        return self._components.element(seen)

    def size(self, name: str | None = None) -> Tensor:
        """Return how many elements the area holds, as an int32 scalar."""
        check_graph(self._ref, "staging area")
        return stage_size(self._ref, name=f"{self._label}_size" if name is None else name)

    def clear(self, name: str | None = None) -> Operation:
        """Return an operation that drops all elements."""
        check_graph(self._ref, "staging area")
        label = f"{self._label}_clear" if name is None else name
        return _operation(stage_clear(self._ref, name=label))

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{d}{s}" for d, s in zip(self.dtypes, self._components.shapes, strict=True)
        )
        return f"<StagingArea {self.name!r} of {kinds}>"

    @property
    def _label(self) -> str:
        return self._name.rpartition("/")[2]


def _operation(built: Any) -> Operation:
    assert isinstance(built, Operation)
    return built
