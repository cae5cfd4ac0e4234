"""The shapes of tensors as programs see them: made of dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any, SupportsIndex, overload

import numpy as np

from headrace.arguments import whole
from headrace.dimension import UNKNOWN_DIMENSION, Dimension, known_dimension
from headrace.errors import ArgumentTypeError, ShapeError, shown, told
from headrace.graph.rendering import renderer
from headrace.shapes import MOST_DIMENSIONS, Shape


class TensorShape:
    """The static shape of a tensor: unknown, or a list of dimensions each known or not.

    ``TensorShape(None)`` has an unknown rank; ``TensorShape([None, 3])`` has two dimensions of
    which the first is unknown. Indexing and iterating give ``Dimension``: ``shape[1].value`` is 3,
    and so is ``shape[1]``, which is a Python integer; ``shape[0].value`` is None. ``as_list()``
    gives integers and Nones. Values are immutable.
    """

    __slots__ = ("plain",)

    plain: Shape

    def __init__(self, dims: Any) -> None:
        """Make a shape.

        Args:
            dims: A shape, a sequence of dimensions, integers and Nones, one size, a
                ``TensorShapeProto``, or None where nothing is known.

        Raises:
            ShapeError: if a dimension is negative or a fraction.
            ArgumentTypeError: if it is a string.
        """
        if isinstance(dims, str | bytes):
            raise ArgumentTypeError(f"a shape is a list of sizes or one size, got {shown(dims)}")
        if hasattr(dims, "unknown_rank"):
            sizes = (part.size for part in dims.dim)
            dims = None if dims.unknown_rank else [None if s < 0 else s for s in sizes]
        elif not isinstance(dims, Shape | TensorShape) and dims is not None:
            try:
                parts = iter(dims)
            except TypeError:
                parts = iter((dims,))
            dims = [Dimension(part) for part in islice(parts, MOST_DIMENSIONS + 1)]
        object.__setattr__(self, "plain", Shape(dims))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("TensorShape is immutable")

    def __reduce__(self) -> tuple[type[TensorShape], tuple[Any]]:
        return TensorShape, (self.plain.dims,)

    # -- what is known

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return self.plain.rank

    @property
    def ndims(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return self.plain.rank

    @property
    def dims(self) -> list[Dimension] | None:
        """The dimensions, None where their number is unknown."""
        plain = self.plain.dims
        return None if plain is None else [_dimension(dim) for dim in plain]

    @property
    def known(self) -> tuple[int, ...]:
        """The dimensions of a fully defined shape, as integers.

        Raises:
            ShapeError: if the shape is not fully defined.
        """
        return self.plain.known

    def as_list(self) -> list[int | None]:
        """Return the dimensions as integers and Nones.

        Raises:
            ShapeError: if the rank is unknown.
        """
        return self.plain.as_list()

    def num_elements(self) -> int | None:
        """Return the number of elements, None where the shape is not fully defined."""
        return self.plain.num_elements() if self.is_fully_defined() else None

    def is_fully_defined(self) -> bool:
        """Return whether the rank and every dimension are known."""
        return self.plain.is_fully_defined()

    def as_proto(self) -> Any:
        """Return the shape as a ``TensorShapeProto``; needs the package headrace-io."""
        return renderer().shape_proto(self.plain)

    # -- beside others

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some concrete shape satisfies both."""
        return self.plain.is_compatible_with(TensorShape(other).plain)

    def merge_with(self, other: Any) -> TensorShape:
        """Return the shape that knows what either knows.

        Raises:
            ShapeError: if they are incompatible.
        """
        return TensorShape(self.plain.merge_with(TensorShape(other).plain))

    def concatenate(self, other: Any) -> TensorShape:
        """Return the dimensions of this shape followed by those of ``other``."""
        return TensorShape(self.plain.concatenate(TensorShape(other).plain))

    def most_specific_compatible_shape(self, other: Any) -> TensorShape:
        """Return the shape that knows only what both know alike."""
        mine, that = self.plain.dims, TensorShape(other).plain.dims
        if mine is None or that is None or len(mine) != len(that):
            return TensorShape(None)
        return TensorShape([a if a == b else None for a, b in zip(mine, that, strict=True)])

    def with_rank(self, rank: int) -> TensorShape:
        """Return this shape, or one of unknown dimensions where the rank was unknown.

        Raises:
            ShapeError: if the rank is another.
        """
        rank = whole(rank, "the rank of a shape")
        if self.rank not in (None, rank):
            raise ShapeError(f"shape {self} must have rank {told(rank)}")
        return self if self.rank is not None else TensorShape([None] * rank)

    def with_rank_at_least(self, rank: int) -> TensorShape:
        """Return this shape.

        Raises:
            ShapeError: if it has fewer dimensions.
        """
        self.plain.with_rank_at_least(whole(rank, "the rank of a shape"))
        return self

    def with_rank_at_most(self, rank: int) -> TensorShape:
        """Return this shape.

        Raises:
            ShapeError: if it has more dimensions.
        """
        rank = whole(rank, "the rank of a shape")
        if self.rank is not None and self.rank > rank:
            raise ShapeError(f"shape {self} must have rank {told(rank)} at most")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Do nothing where the rank is, or may be, ``rank``.

        Raises:
            ShapeError: otherwise.
        """
        self.with_rank(rank)

    def assert_same_rank(self, other: Any) -> None:
        """Do nothing where both have, or may have, the same rank.

        Raises:
            ShapeError: otherwise.
        """
        that = TensorShape(other)
        if None not in (self.rank, that.rank) and self.rank != that.rank:
            raise ShapeError(f"shapes {self} and {that} must have the same rank")

    def assert_is_compatible_with(self, other: Any) -> None:
        """Do nothing where some concrete shape satisfies both.

        Raises:
            ShapeError: otherwise.
        """
        self.merge_with(other)

    def assert_is_fully_defined(self) -> None:
        """Do nothing where every dimension is known.

        Raises:
            ShapeError: otherwise.
        """
        self.plain.assert_is_fully_defined()

    # -- as a sequence

    def __iter__(self) -> Iterator[Dimension]:
        return map(_dimension, self.plain)

    def __len__(self) -> int:
        return len(self.plain)

    def __bool__(self) -> bool:
        return self.plain.dims is not None

    def __contains__(self, size: Any) -> bool:
        value = size.value if isinstance(size, Dimension) else size
        return value in self.as_list()

    @overload
    def __getitem__(self, key: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, key: slice) -> TensorShape: ...
    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        dims = self.plain.dims
        if not isinstance(key, slice):
            return UNKNOWN_DIMENSION if dims is None else _dimension(self.plain[key])
        if dims is not None:
            return TensorShape(dims[key])
        # Of an unknown rank, as many dimensions as a slice from the front has for certain.
        start, stop = key.start or 0, key.stop
        if stop is None or start < 0 or stop < 0:
            return TensorShape(None)
        return TensorShape([None] * len(range(start, stop, key.step or 1)))

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> TensorShape:
        return TensorShape(other).concatenate(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple):
            other = tuple(d.value if isinstance(d, Dimension) else d for d in other)
        elif isinstance(other, TensorShape):
            other = other.plain
        elif isinstance(other, int | float | np.integer | Dimension):
            # A number is the shape of one dimension, as it is where a shape is made of it.
            other = (other.value if isinstance(other, Dimension) else other,)
        elif isinstance(other, np.ndarray):
            # NumPy would compare element by element, and raise where sizes differ.
            if other.ndim != 1:
                return False
            other = tuple(other.tolist())
        return self.plain == other

    def __hash__(self) -> int:
        return hash(self.plain)

    def __repr__(self) -> str:
        return f"TensorShape({told(self.dims)})"

    def __str__(self) -> str:
        dims = self.dims
        if dims is None:
            return "<unknown>"
        sizes = [told(dim) for dim in dims]
        return f"({sizes[0]},)" if len(sizes) == 1 else f"({', '.join(sizes)})"


def _dimension(size: int | None) -> Dimension:
    return UNKNOWN_DIMENSION if size is None else known_dimension(size)


def dimension_at_index(shape: TensorShape, index: int) -> Dimension:
    """Return a dimension of a shape, an unknown one where the rank is unknown.

    Args:
        shape: A shape.
        index: Which dimension.
    """
    found: Dimension = TensorShape(shape)[index]
    return found


def as_tensor_shape(plain: Shape) -> TensorShape:
    """Return the shape that shows a plain one: what is made often, and need not be checked."""
    made = object.__new__(TensorShape)
    object.__setattr__(made, "plain", plain)
    return made
