"""Queues, by which steps hand tensors to other steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, final

import headrace as hr
from headrace import DType, Operation, Shape, Tensor
from headrace.errors import AttributeValueError, DTypeError, GraphError, ShapeError, listing
from headrace.graph.scopes import current_scope
from headrace.ops.queue import (
    fifo_queue,
    queue_close,
    queue_dequeue,
    queue_dequeue_many,
    queue_enqueue,
    queue_enqueue_many,
    queue_is_closed,
    queue_size,
)

Element: TypeAlias = Tensor | list[Tensor] | dict[str, Tensor]


@final
class FIFOQueue:
    """A queue of elements, each a tuple of tensors, that come out in the order they went in.

    Its methods add operations. Steps that run ``enqueue`` wait while the queue is full, and those
    that run ``dequeue`` while it is empty, without holding up other parts of the step or other
    steps. Closing the queue ends that: enqueuing fails from then on with
    ``errors.CancelledError``, and dequeuing, once nothing is left, with
    ``errors.OutOfRangeError``. Closing the session wakes whoever waits.

    Attributes:
        handle: The handle to the queue.
        dtypes: The dtype of each component.
        shapes: The shape of each component, as far as fixed.
        names: The name of each component, None where they have none.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: str | Sequence[str] | None = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        """Make a queue in the default graph.

        Args:
            capacity: How many elements it holds at most, at least 1.
            dtypes: The dtype of each component, or of the only one.
            shapes: The shape of each component, or of the only one, as far as it is fixed; all
                unknown if None.
            names: The name of each component, or of the only one; elements then are dicts.
            shared_name: Its name in its container; the queue's own name if None. Queues of one
                shared name in a named container or a cluster are one queue.
            name: The queue's name; made unique.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ.
        """
        given = list(dtypes) if isinstance(dtypes, list | tuple) else [dtypes]
        self.dtypes: tuple[DType, ...] = tuple(hr.as_dtype(d) for d in given)
        self.shapes = _shapes(shapes, len(self.dtypes))
        self.names = _names(names, len(self.dtypes))
        if not isinstance(capacity, int):
            raise AttributeValueError(f"capacity must be a whole number, got {capacity!r}")
        with hr.control_dependencies(None), hr.name_scope(name) as scope:
            self.handle: Tensor = fifo_queue(
                capacity,
                self.dtypes,
                self.shapes,
                current_scope().container,
                scope[:-1] if shared_name is None else shared_name,
                name="handle",
            )

    @property
    def name(self) -> str:
        """The queue's name in its graph."""
        return self.handle.op.name.removesuffix("/handle")

    @property
    def queue_ref(self) -> Tensor:
        """The handle, under the name that TensorFlow has for it."""
        return self.handle

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Return an operation that appends an element, and waits while the queue is full.

        Args:
            vals: The components: a tensor, a list, or a dict where the queue has names.
            name: The name of the operation.

        Raises:
            DTypeError: if a component does not have its dtype.
            ShapeError: if it does not have its shape.
            AttributeValueError: if there are too few components or too many.
        """
        with self._scope(name, "enqueue"):
            components = self._components(vals, many=False)
            return _operation(queue_enqueue(self.handle, components, name="enqueue"))

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Return an operation that appends an element per row, and waits while the queue is full.

        Args:
            vals: The components, as for ``enqueue``, each [n, ...].
            name: The name of the operation.

        Raises:
            DTypeError: if a component does not have its dtype.
            ShapeError: if its rows do not have its shape, or components differ in length.
            AttributeValueError: if there are too few components or too many.
        """
        with self._scope(name, "enqueue_many"):
            components = self._components(vals, many=True)
            return _operation(queue_enqueue_many(self.handle, components, name="enqueue_many"))

    def dequeue(self, name: str | None = None) -> Any:
        """Return the oldest element, taken out; the step waits while the queue is empty.

        Args:
            name: The name of the operation.

        Returns:
            The only component, or a list of them; a dict where the queue has names.
        """
        with self._scope(name, "dequeue"):
            taken = queue_dequeue(self.handle, self.dtypes, self.shapes, name="dequeue")
            return self._element(taken)

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Return the ``n`` oldest elements joined along a new first axis, taken out.

        The step waits until there are so many.

        Args:
            n: How many, an integer or a scalar tensor.
            name: The name of the operation.

        Returns:
            As for ``dequeue``, each component [n, ...].

        Raises:
            ShapeError: if the shape of a component is not fixed.
        """
        loose = [
            f"{label}: {shape}"
            for label, shape in zip(self._labels(), self.shapes, strict=True)
            if not shape.is_fully_defined()
        ]
        if loose:
            raise ShapeError(
                f"dequeue_many of {self.name!r} needs components of fixed shapes to join them, got "
                f"{listing(loose)}; pass shapes= to the queue"
            )
        with self._scope(name, "dequeue_many"):
            taken = queue_dequeue_many(
                self.handle, n, self.dtypes, self.shapes, name="dequeue_many"
            )
            return self._element(taken)

    def size(self, name: str | None = None) -> Tensor:
        """Return how many elements the queue holds, as an int32 scalar."""
        with self._scope(name, "size"):
            return queue_size(self.handle, name="size")

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Return an operation that closes the queue; what is in it can still be taken.

        Args:
            cancel_pending_enqueues: Whether enqueues that wait now fail, too.
            name: The name of the operation.
        """
        with self._scope(name, "close"):
            return _operation(queue_close(self.handle, cancel_pending_enqueues, name="close"))

    def is_closed(self, name: str | None = None) -> Tensor:
        """Return whether the queue was closed, as a bool scalar."""
        with self._scope(name, "is_closed"):
            return queue_is_closed(self.handle, name="is_closed")

    def __repr__(self) -> str:
        kinds = ", ".join(f"{d}{s}" for d, s in zip(self.dtypes, self.shapes, strict=True))
        return f"<FIFOQueue {self.name!r} of {kinds}>"

    def _scope(self, name: str | None, method: str) -> Any:
        """Return the scope of what a method adds."""
        if self.handle.graph is not hr.get_default_graph().outermost:
            raise GraphError(
                f"the queue {self.name!r} belongs to another graph than the default one; use it "
                "inside 'with graph.as_default():'"
            )
        return hr.name_scope(name, f"{self.name.rpartition('/')[2]}_{method}")

    def _labels(self) -> list[str]:
        return (
            list(self.names) if self.names else [f"component {i}" for i in range(len(self.dtypes))]
        )

    def _components(self, vals: Any, *, many: bool) -> list[Tensor]:
        """Convert and check the components of what is enqueued."""
        if self.names is not None:
            if not isinstance(vals, Mapping) or set(vals) != set(self.names):
                keys = isinstance(vals, Mapping)
                got = f"the keys {listing(map(repr, vals))}" if keys else type(vals).__name__
                raise AttributeValueError(
                    f"elements of {self.name!r} are dicts with the keys "
                    f"{listing(map(repr, self.names))}, got {got}"
                )
            items = [vals[name] for name in self.names]
        elif isinstance(vals, Mapping):
            raise AttributeValueError(
                f"{self.name!r} was made without names= and takes no dict, got the keys "
                f"{listing(map(repr, vals))}"
            )
        else:
            items = list(vals) if isinstance(vals, list | tuple) else [vals]
        if len(items) != len(self.dtypes):
            raise AttributeValueError(
                f"an element of {self.name!r} is a list of {len(self.dtypes)} components, got a "
                f"list of {len(items)}; data in a list of its own goes into another list"
            )
        components: list[Tensor] = []
        rows = Shape([None])
        for label, value, dtype, shape in zip(
            self._labels(), items, self.dtypes, self.shapes, strict=True
        ):
            tensor = self._converted(label, value, dtype)
            expected = rows.concatenate(shape) if many else shape
            if not expected.is_compatible_with(tensor.shape) or (many and tensor.shape.rank == 0):
                raise ShapeError(
                    f"{label} of {self.name!r} must have shape {expected}, got {tensor!r}"
                )
            if many and tensor.shape.rank is not None:
                rows = rows.merge_with(tensor.shape[:1])
            components.append(tensor)
        return components

    def _converted(self, label: str, value: Any, dtype: DType) -> Tensor:
        try:
            return hr.convert_to_tensor(value, dtype)
        except DTypeError as error:
            raise DTypeError(f"{label} of {self.name!r} is {dtype}: {error}") from None

    def _element(self, taken: Sequence[Tensor]) -> Any:
        if self.names is not None:
            return dict(zip(self.names, taken, strict=True))
        return taken[0] if len(taken) == 1 else list(taken)


def _operation(built: Any) -> Operation:
    assert isinstance(built, Operation)
    return built


def _shapes(shapes: Any, count: int) -> tuple[Shape, ...]:
    if shapes is None:
        return (Shape(None),) * count
    given = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
    # The shape of the only component may stand alone: [2, 3], or [] for a scalar.
    if count == 1 and not (len(given) == 1 and _is_shape(given[0])):
        given = [shapes]
    if len(given) != count:
        raise AttributeValueError(
            f"a queue of {count} components needs as many shapes, got {len(given)}: {shapes!r}"
        )
    return tuple(Shape(shape) for shape in given)


def _is_shape(value: Any) -> bool:
    return value is None or isinstance(value, list | tuple | Shape)


def _names(names: str | Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    if names is None:
        return None
    given = (names,) if isinstance(names, str) else tuple(names)
    if len(given) != count or len(set(given)) != count:
        raise AttributeValueError(
            f"a queue of {count} components needs as many different names, got {list(given)}"
        )
    return given
