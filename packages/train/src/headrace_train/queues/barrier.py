"""Barriers: maps whose values come component by component, and leave when they are complete."""

from __future__ import annotations

from typing import Any, NamedTuple, final

import headrace as hr
from headrace import Operation, Tensor
from headrace.errors import AttributeValueError, ShapeError, UnimplementedError, shown
from headrace.extend.primitives import (
    barrier_close,
    barrier_handle,
    barrier_incomplete_size,
    barrier_insert_many,
    barrier_ready_size,
    barrier_take_many,
)
from headrace_train.queues.arguments import dtype_list, handle, shape_list, whole_number
from headrace_train.queues.components import Components, check_graph


class Taken(NamedTuple):
    """What ``Barrier.take_many`` takes.

    Attributes:
        indices: [n], int64: the number of the insertion in which each key was new.
        keys: [n], string.
        values: Each component, [n, ...].
    """

    indices: Tensor
    keys: Tensor
    values: list[Tensor]


@final
class Barrier:
    """A map from strings to tuples of tensors that steps fill, component by component.

    Complete values leave it, in the order in which their first component came: it brings together
    what several steps know of one thing.
    """

    def __init__(
        self, types: Any, shapes: Any = None, shared_name: str | None = None, name: str = "barrier"
    ) -> None:
        """Make a barrier in the default graph.

        Args:
            types: The dtype of each component of a value, or of the only one.
            shapes: The shape of each component, or of the only one; without them nothing can be
                taken.
            shared_name: Its name in its container; the barrier's own name if None. Barriers of one
                shared name in a named container are one barrier.
            name: The barrier's name; made unique.

        Raises:
            AttributeValueError: if the numbers of types and shapes differ.
            ShapeError: if a shape has no elements.
        """
        kinds = dtype_list(types)
        forms = shape_list(shapes, len(kinds))
        for i, shape in enumerate(forms):
            if shape.dims is not None and 0 in shape.dims:
                raise ShapeError(
                    f"component {i} of a barrier has no elements: its shape is {shape}"
                )
        self._ref = handle(
            barrier_handle, name, shared_name, component_types=tuple(kinds), shapes=tuple(forms)
        )
        self._components = Components(self._ref.op.name, kinds, forms, None)

    @property
    def barrier_ref(self) -> Tensor:
        """The handle to the barrier."""
        return self._ref

    @property
    def name(self) -> str:
        """The name of the barrier's operation."""
        return self._ref.op.name

    def insert_many(
        self, component_index: int, keys: Any, values: Any, name: str | None = None
    ) -> Operation:
        """Return an operation that sets one component of the values of some keys.

        Args:
            component_index: Which component.
            keys: [n], strings, new ones or others.
            values: [n, ...], the component of each.
            name: The name of the operation.

        Returns:
            The operation. It fails with ``errors.InvalidArgumentError`` if a value has the
            component already, and with ``errors.CancelledError`` if a key is new to a barrier that
            is closed; it sets all components or none.

        Raises:
            AttributeValueError: if there is no such component.
            DTypeError: if ``values`` has another dtype.
            ShapeError: if ``values`` has another shape.
        """
        check_graph(self._ref, "barrier")
        place = whole_number(component_index, "component_index")
        count = len(self._components.dtypes)
        if not 0 <= place < count:
            raise AttributeValueError(
                f"component_index of {self.name!r} must be from 0 to {count - 1}, got "
                f"{shown(place)}"
            )
        label = f"{self._label}_BarrierInsertMany" if name is None else name
        parts = self._components
        one = Components(
            self.name, [hr.string, parts.dtypes[place]], [hr.Shape([]), parts.shapes[place]], None
        )
        tensors = one.tensors([keys, values], many=True)
        made = barrier_insert_many(self._ref, *tensors, place, name=label)
        assert isinstance(made, Operation)
        return made

    def take_many(
        self,
        num_elements: Any,
        allow_small_batch: bool = False,
        timeout: int | None = None,
        name: str | None = None,
    ) -> Taken:
        """Return complete values, taken out; the step waits until there are so many.

        Args:
            num_elements: How many.
            allow_small_batch: Whether fewer, at least one, do when the barrier is closed; else that
                is ``errors.OutOfRangeError``.
            timeout: Must be None; ``hr.RunOptions(timeout_in_ms=)`` limits a run.
            name: The name of the operation.

        Returns:
            Their numbers, keys and components.

        Raises:
            UnimplementedError: if ``timeout`` is given.
            ShapeError: if the shape of a component is not known.
        """
        check_graph(self._ref, "barrier")
        if timeout is not None:
            raise UnimplementedError(
                "take_many has no timeout of its own; limit the run with "
                "hr.RunOptions(timeout_in_ms=...)"
            )
        parts = self._components
        if not all(shape.is_fully_defined() for shape in parts.shapes):
            raise ShapeError(
                f"take_many of {self.name!r} needs components of fixed shapes to join them; pass "
                "shapes= to the barrier"
            )
        label = f"{self._label}_BarrierTakeMany" if name is None else name
        indices, keys, *values = barrier_take_many(
            self._ref, num_elements, parts.dtypes, parts.shapes, allow_small_batch, name=label
        )
        return Taken(indices, keys, values)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Return an operation that closes the barrier: it takes no new keys from then on.

        Args:
            cancel_pending_enqueues: Whether values that lack components are dropped; else they may
                still be completed.
            name: The name of the operation.
        """
        check_graph(self._ref, "barrier")
        label = f"{self._label}_BarrierClose" if name is None else name
        made = barrier_close(self._ref, cancel_pending_enqueues, name=label)
        assert isinstance(made, Operation)
        return made

    def ready_size(self, name: str | None = None) -> Tensor:
        """Return how many values are complete, as an int32 scalar."""
        check_graph(self._ref, "barrier")
        label = f"{self._label}_BarrierReadySize" if name is None else name
        return barrier_ready_size(self._ref, name=label)

    def incomplete_size(self, name: str | None = None) -> Tensor:
        """Return how many values lack components, as an int32 scalar."""
        check_graph(self._ref, "barrier")
        label = f"{self._label}_BarrierIncompleteSize" if name is None else name
        return barrier_incomplete_size(self._ref, name=label)

    def __repr__(self) -> str:
        return f"<Barrier {self.name!r}>"

    @property
    def _label(self) -> str:
        return self.name.rpartition("/")[2]
