"""What is in queues: elements of components, each an array of a dtype and shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from headrace import DType, Shape
from headrace.errors import DTypeError, ShapeError, told

# One entry of a queue: an array per component; of NumPy's, scalars stand for arrays without axes,
# which take much longer to make and to join.
Element: TypeAlias = tuple[Any, ...]
# Several entries as a queue holds them: a list of the above, or the numbers of their places in
# ``Slots``, [n], int64.
Held: TypeAlias = Any


class Elements:
    """The elements that some resource holds: what their components are.

    Attributes:
        label: What holds them, for errors, as in ``"queue 'q'"``.
        dtypes: The dtype of each component.
        shapes: The shape of each component, as far as fixed.
    """

    def __init__(self, label: str, dtypes: Sequence[DType], shapes: Sequence[Shape]) -> None:
        self.label = label
        self.dtypes = tuple(dtypes)
        self.shapes = tuple(shapes)
        # What most components are, found without comparing shapes dimension by dimension.
        self._usual = [
            (dtype.numpy, tuple(shape.known) if shape.is_fully_defined() else None)
            for dtype, shape in zip(self.dtypes, self.shapes, strict=True)
        ]

    def check_dtypes(self, dtypes: Sequence[DType]) -> None:
        """Refuse other component dtypes than these.

        Raises:
            DTypeError: if they differ.
        """
        if tuple(dtypes) != self.dtypes:
            raise DTypeError(
                f"{self.label} holds components of {_listed(self.dtypes)}, expected "
                f"{_listed(dtypes)}"
            )

    def check(self, components: Sequence[Any], *, many: bool) -> None:
        """Refuse components that are not those of elements.

        Args:
            components: An array per component.
            many: Whether they have a leading axis along which elements are stacked.

        Raises:
            DTypeError: if a dtype is another one.
            ShapeError: if the number of components or a shape is another one.
        """
        if len(components) != len(self.dtypes):
            raise ShapeError(
                f"{self.label} holds elements of {len(self.dtypes)} components, got "
                f"{len(components)}"
            )
        for i, component in enumerate(components):
            self.check_component(i, component, many=many)
        lengths = {component.shape[0] for component in components} if many else ()
        if len(lengths) > 1:
            raise ShapeError(
                f"components of elements that go into {self.label} must have one leading size, "
                f"got {sorted(lengths)}"
            )

    def check_component(self, index: int, component: Any, *, many: bool) -> None:
        """Refuse an array that is not one component, as ``check`` does."""
        kind, sizes = self._usual[index]
        given = component.shape
        usual = component.dtype == kind and sizes == (given[1:] if many else given)
        if usual and (given or not many):
            return
        dtype, shape = self.dtypes[index], self.shapes[index]
        if component.dtype != dtype.numpy:
            raise DTypeError(
                f"component {told(index)} of {self.label} is {dtype}, got {component.dtype}"
            )
        expected = Shape([None]).concatenate(shape) if many else shape
        fits = component.ndim > 0 or not many
        if not fits or not expected.is_compatible_with(component.shape):
            raise ShapeError(
                f"component {told(index)} of {self.label} must have shape {expected}, got "
                f"{list(component.shape)}"
            )

    def one(self, xp: Any, components: Sequence[Any]) -> Element:
        """Return components as an element, copied: what is fed belongs to the caller."""
        return tuple(_owned(xp, component) for component in components)

    def rows(self, xp: Any, components: Sequence[Any]) -> list[Element]:
        """Return an element for each row of components, copied.

        Each row is copied by itself, so that an element that stays long, as those of shuffling
        queues may, does not keep the memory of all others that came with it.
        """
        return list(zip(*(_rows(xp, part) for part in components), strict=True))

    def arrays(self, xp: Any, element: Element) -> Element:
        """Return the components of an element as arrays."""
        pairs = zip(element, self.dtypes, strict=True)
        return tuple(xp.asarray(part, dtype.numpy) for part, dtype in pairs)

    def check_joinable(self) -> None:
        """Refuse to join elements whose components may differ in shape.

        Raises:
            ShapeError: if the shape of a component is not fixed.
        """
        if any(sizes is None for _, sizes in self._usual):
            raise ShapeError(
                f"{self.label} has components of shapes {', '.join(map(str, self.shapes))}; "
                "elements are joined only where all dimensions are fixed: pass shapes= to it"
            )

    def stack(self, xp: Any, elements: Sequence[Element]) -> Element:
        """Join elements of equal shapes along a new first axis.

        Args:
            xp: The array module.
            elements: Any number.

        Returns:
            The components, [number, ...].
        """
        if elements:
            columns = zip(self.dtypes, zip(*elements, strict=True), strict=True)
            return tuple(_stacked(xp, dtype, parts) for dtype, parts in columns)
        return self.none(xp)

    def pad(self, xp: Any, elements: Sequence[Element]) -> Element:
        """Join elements along a new first axis, each padded at its ends to the largest.

        Numbers are padded with zeros, strings with empty ones.

        Args:
            xp: The array module.
            elements: Any number.

        Returns:
            The components, [number, ...].
        """
        if not elements:
            return self.none(xp)
        return tuple(
            _padded(xp, dtype, parts)
            for dtype, parts in zip(self.dtypes, zip(*elements, strict=True), strict=True)
        )

    def none(self, xp: Any) -> Element:
        """Return the components of no elements, joined; open dimensions are 0."""
        pairs = zip(self.dtypes, self.shapes, strict=True)
        return tuple(
            xp.empty((0, *(size or 0 for size in shape.dims or ())), dtype.numpy)
            for dtype, shape in pairs
        )


def _owned(xp: Any, component: Any) -> Any:
    """Return a copy of a component; of a scalar of NumPy's, which nobody changes, its value."""
    if xp is np:
        return component[()] if component.ndim == 0 else component.copy()
    return xp.array(component)


def _rows(xp: Any, component: Any) -> list[Any]:
    """Return the rows of a component, each a copy of its own."""
    if xp is not np:
        return [xp.array(component[row, ...]) for row in range(component.shape[0])]
    return list(component) if component.ndim == 1 else [row.copy() for row in component]


def _stacked(xp: Any, dtype: DType, parts: Sequence[Any]) -> Any:
    """Join parts of one shape along a new first axis."""
    if xp is not np:
        return xp.stack(parts)
    if not isinstance(parts[0], np.ndarray):
        return np.array(parts, dtype.numpy)
    # The same as stack, without making a view of each part.
    return np.concatenate(parts).reshape((len(parts), *parts[0].shape))


def _padded(xp: Any, dtype: DType, parts: Sequence[Any]) -> Any:
    # Strings of NumPy's are bytes, which have no shape.
    shapes = {getattr(part, "shape", ()) for part in parts}
    if len(shapes) == 1:
        return _stacked(xp, dtype, parts)
    largest = tuple(map(max, zip(*shapes, strict=True)))
    fill = b"" if dtype.kind == "string" else 0
    joined = xp.full((len(parts), *largest), fill, dtype.numpy)
    for row, part in enumerate(parts):
        joined[(row, *map(slice, part.shape))] = part
    return joined


def _listed(dtypes: Sequence[DType]) -> str:
    return ", ".join(map(str, dtypes))
