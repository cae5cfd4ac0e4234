"""Examples as the functions of pipelines take them: lists, tuples or dicts of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import headrace as hr
from headrace import Operation, Shape, SparseTensor, Tensor
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    ShapeError,
    SymbolicTensorError,
    listing,
    shown,
    told,
)
from headrace.extend.arguments import items
from headrace_train.pipelines.components import Component, DenseComponent, SparseComponent


@final
@dataclass(frozen=True)
class Structure:
    """How the components of an example are arranged.

    Attributes:
        keys: The keys of a dict, sorted; None of a list or tuple.
    """

    keys: tuple[Any, ...] | None

    @staticmethod
    def of(example: Any, function: str) -> Structure:
        """Return the structure of an example.

        Args:
            example: A list, tuple or dict.
            function: Whose argument it is.

        Raises:
            SymbolicTensorError: if it is a single tensor.
            DTypeError: if it is something else.
            AttributeValueError: if there is nothing in it.
        """
        if isinstance(example, Tensor | SparseTensor):
            raise SymbolicTensorError(
                f"{function} takes examples as lists or dicts of tensors, got {shown(example)}; "
                "pass "
                "[tensor]"
            )
        if not isinstance(example, list | tuple | Mapping):
            raise DTypeError(
                f"{function} takes examples as lists or dicts of tensors, got {shown(example)}"
            )
        if not example:
            raise AttributeValueError(f"{function} needs at least one tensor, got {shown(example)}")
        if not isinstance(example, Mapping):
            return Structure(None)
        return Structure(tuple(sorted(items(example, "tensors"), key=_by_name)))

    def components(self, example: Any) -> list[Tensor | SparseTensor]:
        """Return the components of an example as tensors, those of a dict in order of the keys."""
        parts = example if self.keys is None else [example[key] for key in self.keys]
        return [
            part if isinstance(part, SparseTensor) else hr.convert_to_tensor(part) for part in parts
        ]

    def arranged(self, components: Sequence[Any]) -> Any:
        """Return components as they are handed out: the only one of a list stands alone."""
        if self.keys is not None:
            return dict(zip(self.keys, components, strict=True))
        return components[0] if len(components) == 1 else list(components)


def same_structures(examples: Any, function: str) -> Structure:
    """Return the structure that several examples have in common.

    Raises:
        AttributeValueError: if there are none, or they have different keys or numbers of tensors.
    """
    if isinstance(examples, Tensor) or not isinstance(examples, list | tuple):
        raise DTypeError(
            f"{function} takes a list of examples, one for each thread, got {shown(examples)}"
        )
    if not examples:
        raise AttributeValueError(f"{function} needs at least one example, got none")
    first = Structure.of(examples[0], function)
    for i, example in enumerate(examples):
        other = Structure.of(example, function)
        if other != first or len(example) != len(examples[0]):
            raise AttributeValueError(
                f"{function}: all examples must have the same keys and number of tensors, got "
                f"{_described(examples[0])} and, in place {i}, {_described(example)}"
            )
    return first


def _described(example: Any) -> str:
    if isinstance(example, Mapping):
        return f"the keys {listing(sorted(map(shown, example)))}"
    return f"{len(example)} tensors"


def components_of(
    rows: Sequence[Sequence[Tensor | SparseTensor]],
    shapes: Sequence[Any] | None,
    *,
    enqueue_many: bool,
    function: str,
) -> list[Component]:
    """Return how each component goes through a queue.

    Args:
        rows: The components of each of the examples that one queue takes.
        shapes: The shape of each component; those of the tensors if None.
        enqueue_many: Whether each tensor holds several examples.
        function: Whose examples they are.

    Raises:
        AttributeValueError: if there are as many shapes as not components.
        DTypeError: if the dtypes of the examples differ.
        ShapeError: if the shapes of the examples differ, or have an unknown rank.
    """
    count = len(rows[0])
    if shapes is not None and len(shapes) != count:
        raise AttributeValueError(
            f"{function} needs a shape for each of {count} tensors, got {len(shapes)}: "
            f"{shown(shapes)}"
        )
    found: list[Component] = []
    given = None if shapes is None else items(shapes, "shapes")
    for i in range(count):
        column = [row[i] for row in rows]
        if len({isinstance(part, SparseTensor) for part in column}) > 1:
            raise AttributeValueError(
                f"{function}: component {i} must be sparse in all examples or in none, got "
                f"{listing(map(repr, column))}"
            )
        dtypes = {part.dtype for part in column}
        if len(dtypes) > 1:
            raise DTypeError(
                f"{function}: component {i} must have one dtype in all examples, got "
                f"{listing(sorted(map(str, dtypes)))}"
            )
        if isinstance(column[0], SparseTensor):
            found.append(SparseComponent.of(column, enqueue_many=enqueue_many))
        elif given is not None:
            found.append(DenseComponent(column[0].dtype, Shape(given[i])))
        else:
            tensors = [part for part in column if isinstance(part, Tensor)]
            what = f"{function}: component {i}"
            shape = _shape_of_first(tensors, enqueue_many=enqueue_many, what=what)
            found.append(DenseComponent(column[0].dtype, shape))
    return found


def _shape_of_first(column: Sequence[Tensor], *, enqueue_many: bool, what: str) -> Shape:
    """Return the shape of a component in the first example, with which all others must go.

    What others know besides would be wrong of the first one, whose size may differ each time.
    """
    shapes = []
    for tensor in column:
        shape = tensor.spec.shape
        if shape.rank is None:
            raise ShapeError(f"{what} is {tensor!r} of unknown rank; pass shapes=")
        if enqueue_many and shape.rank == 0:
            raise ShapeError(
                f"{what} is the scalar {tensor!r}; with enqueue_many=True each tensor has a row "
                "for each example"
            )
        shapes.append(shape[1:] if enqueue_many else shape)
    for shape in shapes[1:]:
        shapes[0].merge_with(shape)
    return shapes[0]


@final
class Keep:
    """Which examples go into a queue.

    Attributes:
        value: [] or [n], bool, whether to keep the example or each of them.
    """

    def __init__(self, keep_input: Any, function: str, *, enqueue_many: bool) -> None:
        """Check the argument ``keep_input``.

        Raises:
            DTypeError: if it is not bool.
            ShapeError: if it is neither a scalar nor, with ``enqueue_many``, a vector.
        """
        self.value: Tensor = hr.convert_to_tensor(keep_input, hr.bool)
        rank = self.value.shape.rank
        if rank is None:
            raise ShapeError(
                f"{function}: the rank of keep_input must be known, got {shown(self.value)}"
            )
        if rank > 1 or (rank == 1 and not enqueue_many):
            raise ShapeError(
                f"{function}: keep_input must be a scalar, or a vector with enqueue_many=True, got "
                f"shape {self.value.spec.shape}"
            )

    def enqueue(self, queue: Any, components: Sequence[Tensor], *, enqueue_many: bool) -> Any:
        """Return the operation that puts into a queue what is to be kept."""
        add = queue.enqueue_many if enqueue_many else queue.enqueue
        if self.value.shape.rank == 1:
            return add([hr.boolean_mask(part, self.value) for part in components])
        return self.when_kept(lambda: add(components))

    def when_kept(self, build: Any) -> Operation | Tensor:
        """Return an operation that does what ``build`` builds if the example is to be kept."""
        known = self.value.spec.value
        if known is not None:
            operation: Operation = build() if known else hr.no_op()
            return operation
        conditional: Tensor = hr.cond(self.value, build, hr.no_op)
        return conditional


def _by_name(key: Any) -> str:
    return key if isinstance(key, str) else told(key)
