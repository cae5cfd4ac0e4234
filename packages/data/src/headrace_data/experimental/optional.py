"""Values that may be missing, such as the next element of an iterator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

import headrace as hr
from headrace import Tensor
from headrace.errors import DTypeError, shown
from headrace.extend import TensorSpec
from headrace_data import structure
from headrace_data.components import Composed, OwnSpec
from headrace_data.iterators.iterator import Iterator
from headrace_data.ops.pipelines import iterator_get_next_as_optional


@final
class OptionalSpec(OwnSpec):
    """A component that is an ``Optional``."""

    __slots__ = ("_value_structure",)

    def __init__(self, value_structure: Any) -> None:
        """State the value.

        Args:
            value_structure: What the value is made of, specs in its structure.
        """
        self._value_structure = value_structure

    @staticmethod
    def from_value(value: Any) -> OptionalSpec:
        """Return the spec of an ``Optional``.

        Args:
            value: The optional.

        Raises:
            DTypeError: if it is none.
        """
        if not isinstance(value, Optional):
            raise DTypeError(f"expected an Optional, got {shown(value)}")
        return OptionalSpec(value.value_structure)

    @property
    def value_type(self) -> Any:
        """The class of the values."""
        return Optional

    @property
    def kind(self) -> str:
        """What it is, with the number of the tensors of its value."""
        return f"optional:{len(structure.flat_specs(self._value_structure))}"

    def facts(self) -> tuple[Any, ...]:
        """Return what this states, in the order of the arguments of its class."""
        return (self._value_structure,)

    def _key(self) -> tuple[Any, ...]:
        inside = self._value_structure
        return structure.describe(inside), tuple(structure.leaves(inside))

    def is_compatible_with(self, spec_or_value: Any) -> bool:
        """Return whether an optional, or one of another spec, may be of this one.

        Args:
            spec_or_value: A spec, or a value.
        """
        other = spec_or_value
        if isinstance(other, Optional):
            other = OptionalSpec.from_value(other)
        (inside,) = self.facts()
        return isinstance(other, OptionalSpec) and structure.compatible(inside, *other.facts())

    def told(self) -> OptionalSpec:
        """Return it as programs see it."""
        return OptionalSpec(structure.specs_of(self._value_structure))

    def as_component(self) -> OptionalSpec:
        """Return it as pipelines have it."""
        return OptionalSpec(structure.from_specs(self._value_structure))

    def common(self, other: Any, what: str) -> OptionalSpec:
        """Return what it has in common with another one."""
        (inside,) = other.facts()
        return OptionalSpec(structure.common(self._value_structure, inside, what))

    def batch(self, size: int | None) -> OptionalSpec:
        """Refuse: optionals make no batch.

        Raises:
            DTypeError: always.
        """
        raise DTypeError("elements that hold an Optional cannot be batched; get_value() it first")

    def row(self, what: str) -> OptionalSpec:
        """Refuse: an optional has no rows.

        Raises:
            DTypeError: always.
        """
        raise DTypeError(f"{what}: an Optional has no rows; get_value() it first")

    def specs(self) -> list[TensorSpec]:
        """Return the specs of the tensors that it is made of."""
        return [TensorSpec(hr.bool, hr.Shape([])), *structure.flat_specs(self._value_structure)]

    def pack(self, tensors: Sequence[Any]) -> Any:
        """Return the value that tensors make."""
        return Optional(tensors[0], list(tensors[1:]), self._value_structure)


@final
class Optional(Composed):
    """A structure of tensors that may have a value in a step, or have none."""

    def __init__(self, there: Tensor, tensors: list[Tensor], element: Any) -> None:
        """Take tensors; programs use ``from_value`` and the like.

        Args:
            there: [], bool, whether there is a value.
            tensors: The tensors of the value.
            element: Their structure.
        """
        self._there, self._tensors, self._element = there, tensors, element

    def component(self) -> OptionalSpec:
        """Return what it is as a component of elements."""
        return OptionalSpec(self._element)

    def flatten(self) -> list[Tensor]:
        """Return the tensors that it is made of: whether it has a value, and those of that."""
        return [self._there, *self._tensors]

    @staticmethod
    def from_value(value: Any) -> Optional:
        """Return one that has a value.

        Args:
            value: A structure of tensors, and what converts to them.
        """
        with hr.name_scope("optional"):
            element, tensors = structure.to_components(value)
            return Optional(hr.constant(True), tensors, element)

    @staticmethod
    def none_from_structure(value_structure: Any) -> Optional:
        """Return one that has no value.

        Args:
            value_structure: What the value would be made of, specs in its structure.
        """
        element = structure.from_specs(value_structure)
        with hr.name_scope("optional"):
            return Optional(
                hr.constant(False), [*map(_zeros, structure.flat_specs(element))], element
            )

    def has_value(self, name: str | None = None) -> Tensor:
        """Return whether there is a value, [], bool.

        Args:
            name: The name of the operation.
        """
        return hr.identity(self._there, name=name or "OptionalHasValue")

    def get_value(self, name: str | None = None) -> Any:
        """Return the value; a step that asks where there is none raises an InvalidArgumentError.

        Args:
            name: The name of the scope.
        """
        with hr.name_scope(name, "OptionalGetValue"):
            check = hr.Assert(self._there, ["The given optional does not have a value."])
            with hr.control_dependencies([check]):
                tensors = [hr.identity(tensor) for tensor in self._tensors]
        return structure.pack_tensors(self._element, tensors)

    @property
    def value_structure(self) -> Any:
        """What the value is made of, specs in its structure."""
        return structure.specs_of(self._element)


def _zeros(spec: Any) -> Any:
    if spec.dtype.kind in ("resource", "list"):
        raise DTypeError("an Optional of data sets or arrays cannot be made without a value")
    dims = [] if spec.shape.rank is None else [0 if d is None else d for d in spec.shape.as_list()]
    return hr.zeros(dims, spec.dtype)


def get_next_as_optional(iterator: Iterator) -> Optional:
    """Return the next element of an iterator, which has no value at the end.

    Args:
        iterator: The iterator.

    Raises:
        DTypeError: if it is something else, or its elements hold data sets.
    """
    if not isinstance(iterator, Iterator):
        raise DTypeError(f"get_next_as_optional takes an iterator, got {shown(iterator)}")
    if "dataset" in structure.kinds(iterator.spec):
        raise DTypeError("get_next_as_optional: elements that hold data sets are not taken")
    specs = structure.flat_specs(iterator.spec)
    there, *tensors = iterator_get_next_as_optional(
        iterator.resource,
        [s.dtype for s in specs],
        [s.shape for s in specs],
        structure.contents_of(specs),
        name="IteratorGetNextAsOptional",
    )
    return Optional(there, tensors, iterator.spec)
