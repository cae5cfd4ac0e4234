"""Values that may be missing, such as the next element of an iterator."""

from __future__ import annotations

from typing import Any, final

import headrace as hr
from headrace import Tensor
from headrace.errors import DTypeError, shown
from headrace_data import structure
from headrace_data.iterators.iterator import Iterator
from headrace_data.ops.pipelines import iterator_get_next_as_optional


@final
class Optional:
    """A structure of tensors that may have a value in a step, or have none."""

    def __init__(self, there: Tensor, tensors: list[Tensor], element: Any) -> None:
        """Take tensors; programs use ``from_value`` and the like.

        Args:
            there: [], bool, whether there is a value.
            tensors: The tensors of the value.
            element: Their structure.
        """
        self._there, self._tensors, self._element = there, tensors, element

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
