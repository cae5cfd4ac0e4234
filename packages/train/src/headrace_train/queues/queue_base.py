"""The base class of queues: enqueueing, dequeueing, size, and closing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import headrace as hr
from headrace import DType, Operation, Shape, Tensor, TensorShape
from headrace.errors import ArgumentTypeError, ShapeError, listing, shown
from headrace.extend.arguments import items
from headrace.extend.primitives import (
    queue_close,
    queue_dequeue,
    queue_dequeue_many,
    queue_dequeue_up_to,
    queue_enqueue,
    queue_enqueue_many,
    queue_is_closed,
    queue_select,
    queue_size,
)
from headrace_train.queues.arguments import components
from headrace_train.queues.components import Components, check_graph

Element: TypeAlias = Tensor | list[Tensor] | dict[str, Tensor]


class QueueBase:
    """A queue of elements, each a tuple of tensors; its classes say in which order they leave.

    Its methods add operations. Steps that run ``enqueue`` wait while the queue is full, and those
    that run ``dequeue`` while it is empty, without holding up other parts of the step or other
    steps. Closing the queue ends that: enqueuing fails from then on with
    ``errors.CancelledError``, and dequeuing, once nothing is left, with
    ``errors.OutOfRangeError``. Closing the session wakes whoever waits.
    """

    # Whether elements of different shapes are padded where they are joined.
    pads = False

    def __init__(
        self,
        dtypes: Sequence[Any],
        shapes: Sequence[Any] | None,
        names: Sequence[str] | None,
        queue_ref: Tensor,
    ) -> None:
        """Make a queue of a handle; programs make one of the classes.

        Args:
            dtypes: The dtype of each component.
            shapes: The shape of each component, as far as fixed; all unknown if None.
            names: The name of each component; elements then are dicts.
            queue_ref: The handle to the queue.

        Raises:
            AttributeValueError: if the numbers of dtypes, shapes and names differ.
        """
        kinds, forms, labels = components(
            items(dtypes, "dtypes"),
            None if shapes is None else items(shapes, "shapes"),
            names,
            partial=True,
        )
        self._queue_ref = queue_ref
        self._components = Components(queue_ref.op.name, kinds, forms, labels)

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """Return a queue that is one of several, chosen when a step runs.

        Args:
            index: An integer, or a scalar tensor: the place in ``queues``.
            queues: Queues whose components agree in dtypes and names.

        Returns:
            A queue, whose shapes are known as far as those of ``queues`` agree.

        Raises:
            ArgumentTypeError: if ``queues`` is no list of queues, or they do not agree.
        """
        given: Any = queues
        if not isinstance(given, list) or not given:
            raise ArgumentTypeError(f"from_list takes a list of queues, got {shown(queues)}")
        odd = [queue for queue in given if not isinstance(queue, QueueBase)]
        if odd:
            raise ArgumentTypeError(f"from_list takes a list of queues, got {shown(odd[0])} in it")
        first = queues[0]
        for queue in queues[1:]:
            if (queue.dtypes, queue.names) != (first.dtypes, first.names):
                raise ArgumentTypeError(
                    f"queues to choose from must have the same components, got {shown(first)} and "
                    f"{queue!r}"
                )
        shapes = [
            _common([s.plain for s in parts])
            for parts in zip(*(q.shapes for q in queues), strict=True)
        ]
        chosen = queue_select([queue.queue_ref for queue in queues], index, name="queue_select")
        made = QueueBase(first.dtypes, shapes, first.names, chosen)
        made.pads = all(queue.pads for queue in queues)
        return made

    @property
    def queue_ref(self) -> Tensor:
        """The handle to the queue."""
        return self._queue_ref

    @property
    def handle(self) -> Tensor:
        """The handle to the queue."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the queue's operation."""
        return self._queue_ref.op.name

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

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Return an operation that puts an element in, and waits while the queue is full.

        Args:
            vals: The components: a tensor, a list, or a dict where the queue has names.
            name: The name of the operation.

        Raises:
            DTypeError: if a component does not have its dtype.
            ShapeError: if it does not have its shape.
            AttributeValueError: if there are too few components or too many.
        """
        check_graph(self._queue_ref, "queue")
        with hr.name_scope(name, f"{self._label}_enqueue") as scope:
            components = self._components.tensors(vals, many=False)
            return _operation(queue_enqueue(self._queue_ref, components, name=scope))

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Return an operation that puts an element in per row, and waits while the queue is full.

        Args:
            vals: The components, as for ``enqueue``, each [n, ...].
            name: The name of the operation.

        Raises:
            DTypeError: if a component does not have its dtype.
            ShapeError: if its rows do not have its shape, or components differ in length.
            AttributeValueError: if there are too few components or too many.
        """
        check_graph(self._queue_ref, "queue")
        with hr.name_scope(name, f"{self._label}_EnqueueMany") as scope:
            components = self._components.tensors(vals, many=True)
            return _operation(queue_enqueue_many(self._queue_ref, components, name=scope))

    def dequeue(self, name: str | None = None) -> Any:
        """Return the next element, taken out; the step waits while there is none.

        Args:
            name: The name of the operation.

        Returns:
            The only component, or a list of them; a dict where the queue has names.
        """
        check_graph(self._queue_ref, "queue")
        label = f"{self._label}_Dequeue" if name is None else name
        return self._element(queue_dequeue(self._queue_ref, self.dtypes, self.shapes, name=label))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Return the next ``n`` elements joined along a new first axis, taken out.

        The step waits until there are so many; that the queue is closed before is
        ``errors.OutOfRangeError``, and the elements stay in it.

        Args:
            n: How many, an integer or a scalar tensor.
            name: The name of the operation.

        Returns:
            As for ``dequeue``, each component [n, ...].

        Raises:
            ShapeError: if the shape of a component is not fixed, and the queue does not pad.
        """
        check_graph(self._queue_ref, "queue")
        self._check_joinable("dequeue_many")
        label = f"{self._label}_DequeueMany" if name is None else name
        return self._element(
            queue_dequeue_many(self._queue_ref, n, self.dtypes, self.shapes, name=label)
        )

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """Return the next ``n`` elements joined along a new first axis, taken out.

        The step waits until there are so many, or the queue is closed: then it gets what is left,
        at least one element.

        Args:
            n: How many at most, an integer or a scalar tensor.
            name: The name of the operation.

        Returns:
            As for ``dequeue``, each component [up to n, ...].

        Raises:
            ShapeError: if the shape of a component is not fixed, and the queue does not pad.
        """
        check_graph(self._queue_ref, "queue")
        self._check_joinable("dequeue_up_to")
        label = f"{self._label}_DequeueUpTo" if name is None else name
        return self._element(
            queue_dequeue_up_to(self._queue_ref, n, self.dtypes, self.shapes, name=label)
        )

    def size(self, name: str | None = None) -> Tensor:
        """Return how many elements the queue holds, as an int32 scalar."""
        check_graph(self._queue_ref, "queue")
        return queue_size(self._queue_ref, name=f"{self._label}_Size" if name is None else name)

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Return an operation that closes the queue; what is in it can still be taken.

        Where the queue is closed already, the operation fails with ``errors.CancelledError``,
        unless it cancels.

        Args:
            cancel_pending_enqueues: Whether enqueues that wait now fail, too.
            name: The name of the operation.
        """
        check_graph(self._queue_ref, "queue")
        label = f"{self._label}_Close" if name is None else name
        return _operation(queue_close(self._queue_ref, cancel_pending_enqueues, name=label))

    def is_closed(self, name: str | None = None) -> Tensor:
        """Return whether the queue was closed, as a bool scalar."""
        check_graph(self._queue_ref, "queue")
        label = f"{self._label}_Is_Closed" if name is None else name
        return queue_is_closed(self._queue_ref, name=label)

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{d}{s}" for d, s in zip(self.dtypes, self._components.shapes, strict=True)
        )
        return f"<{type(self).__name__} {self.name!r} of {kinds}>"

    @property
    def _label(self) -> str:
        """The beginning of the names of the queue's operations."""
        return self.name.rpartition("/")[2]

    def _check_joinable(self, method: str) -> None:
        loose = [
            f"{label}: {shape}"
            for label, shape in zip(self._components.labels, self._components.shapes, strict=True)
            if not shape.is_fully_defined()
        ]
        if loose and not self.pads:
            raise ShapeError(
                f"{method} of {self.name!r} needs components of fixed shapes to join them, got "
                f"{listing(loose)}; pass shapes= to the queue"
            )

    def _element(self, taken: Sequence[Tensor]) -> Any:
        element = self._components.element(taken)
        return element[0] if isinstance(element, list) and len(element) == 1 else element


def _operation(built: Any) -> Operation:
    assert isinstance(built, Operation)
    return built


def _common(shapes: Sequence[Shape]) -> Shape:
    """Return what is known of a shape that is one of several."""
    if len({shape.rank for shape in shapes}) > 1 or shapes[0].dims is None:
        return Shape(None)
    sizes = zip(*(shape.dims or () for shape in shapes), strict=True)
    return Shape([each[0] if len(set(each)) == 1 else None for each in sizes])
