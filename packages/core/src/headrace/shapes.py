"""Partially known static shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, SupportsIndex

from headrace.dimension import UNKNOWN_DIMENSION
from headrace.errors import NoDimensionError, ShapeError, shown, told

Dim = int | None


# Tensors have 64 axes at most; what is between is refused where one is made.
MOST_DIMENSIONS = 10_000
# Sizes are integers of 64 bits wherever a program computes with them.
MOST = 2**63 - 1


class Shape:
    """A static shape in plain numbers: unknown, or a tuple of integers and Nones.

    ``Shape(None)`` has an unknown rank; ``Shape([None, 3])`` has two dimensions of which the
    first is unknown. Indexing and iterating give integers and Nones. The rules of ops compute with
    these; ``Shape(tensor.shape)`` is one of what programs see. Values are immutable.
    """

    __slots__ = ("dims",)

    dims: tuple[Dim, ...] | None

    def __init__(self, dims: Any = None) -> None:
        # A shape as programs see it, which stands above this module, holds a plain one.
        dims = getattr(dims, "plain", dims)
        if isinstance(dims, Shape):
            checked = dims.dims
        elif dims is None:
            checked = None
        elif isinstance(dims, str | bytes):
            raise ShapeError(f"a shape is a sequence of dimensions, got {shown(dims)}")
        else:
            # NumPy's arrays without dimensions look as if they could be iterated over.
            several = isinstance(dims, Iterable) and getattr(dims, "ndim", 1) != 0
            items = dims if several else (dims,)
            if not isinstance(items, list | tuple):
                # A range, or whatever else a program made, may have no end.
                items = list(islice(items, MOST_DIMENSIONS + 1))
            if len(items) > MOST_DIMENSIONS:
                raise ShapeError(
                    f"a shape has at most {MOST_DIMENSIONS} dimensions, got {shown(dims)}"
                )
            checked = tuple(
                [item if type(item) is int and 0 <= item <= MOST else _dim(item) for item in items]
            )
        object.__setattr__(self, "dims", checked)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Shape is immutable")

    def __reduce__(self) -> tuple[type[Shape], tuple[Any]]:
        return Shape, (self.dims,)

    @property
    def rank(self) -> int | None:
        """Number of dimensions, None where unknown."""
        return None if self.dims is None else len(self.dims)

    @property
    def ndims(self) -> int | None:
        """Number of dimensions, None where unknown (TensorFlow's name for ``rank``)."""
        return self.rank

    def is_fully_defined(self) -> bool:
        """Return whether the rank and every dimension are known."""
        return self.dims is not None and None not in self.dims

    @property
    def known(self) -> tuple[int, ...]:
        """The dimensions of a fully defined shape.

        Raises:
            ShapeError: if the shape is not fully defined.
        """
        if self.dims is None or None in self.dims:
            raise ShapeError(f"shape {self} is not fully defined")
        return self.dims  # type: ignore[return-value]

    def num_elements(self) -> int | None:
        """Return the number of elements, None where unknown."""
        if self.dims is None:
            return None
        total = 1
        for dim in self.dims:
            if dim is None:
                return 0 if 0 in self.dims else None
            total *= dim
        return total

    def as_list(self) -> list[Dim]:
        """Return the dimensions as a list.

        Raises:
            ShapeError: if the rank is unknown.
        """
        if self.dims is None:
            raise ShapeError("a shape of unknown rank has no list of dimensions")
        return list(self.dims)

    def is_compatible_with(self, other: Any) -> bool:
        """Whether some concrete shape satisfies both."""
        that = other if isinstance(other, Shape) else Shape(other)
        if self.dims is None or that.dims is None:
            return True
        return len(self.dims) == len(that.dims) and all(
            a is None or b is None or a == b for a, b in zip(self.dims, that.dims, strict=True)
        )

    def merge_with(self, other: Any) -> Shape:
        """Return the shape that knows what both know.

        Raises:
            ShapeError: if they are incompatible.
        """
        that = other if isinstance(other, Shape) else Shape(other)
        if self.dims is None:
            return that
        if that.dims is None or self.dims == that.dims:
            return self
        if not self.is_compatible_with(that):
            raise ShapeError(f"shapes {self} and {that} are incompatible")
        return Shape([a if b is None else b for a, b in zip(self.dims, that.dims, strict=True)])

    def with_rank(self, rank: int) -> Shape:
        """Return this shape, or one of unknown dimensions where the rank was unknown.

        Raises:
            ShapeError: if the rank is another.
        """
        return self.merge_with([None] * rank)

    def with_rank_at_least(self, rank: int) -> Shape:
        """Return this shape.

        Raises:
            ShapeError: if it has fewer dimensions.
        """
        if self.dims is not None and len(self.dims) < rank:
            raise ShapeError(f"shape {self} must have rank {told(rank)} at least")
        return self

    def assert_has_rank(self, rank: int) -> None:
        """Do nothing where the rank is, or may be, ``rank``.

        Raises:
            ShapeError: otherwise.
        """
        self.with_rank(rank)

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
        assert self.known is not None

    def concatenate(self, other: Any) -> Shape:
        """Return the dimensions of this shape followed by those of ``other``."""
        that = other if isinstance(other, Shape) else Shape(other)
        if self.dims is None or that.dims is None:
            return Shape(None)
        return Shape(self.dims + that.dims)

    def __iter__(self) -> Iterator[Dim]:
        return iter(self.as_list())

    def __len__(self) -> int:
        return len(self.as_list())

    def __bool__(self) -> bool:
        return self.dims is not None

    def __getitem__(self, key: SupportsIndex | slice) -> Any:
        if self.dims is None:
            return Shape(None) if isinstance(key, slice) else None
        try:
            return Shape(self.dims[key]) if isinstance(key, slice) else self.dims[key]
        except IndexError:
            raise NoDimensionError(f"shape {self} has no dimension {told(key)}") from None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            return self.dims == other.dims
        if isinstance(other, list | tuple):
            return self.dims == tuple(other)
        if other is None:
            return self.dims is None
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.dims)

    def __repr__(self) -> str:
        return f"Shape({None if self.dims is None else told(list(self.dims))})"

    def __str__(self) -> str:
        if self.dims is None:
            return "[...]"
        sizes = ["?" if dim is None else told(dim) for dim in self.dims]
        if len(sizes) > _SHOWN:
            sizes[_SHOWN:] = [f"... and {len(sizes) - _SHOWN} more"]
        return f"[{', '.join(sizes)}]"


# More sizes than arrays have are no shape, and only told of.
_SHOWN = 64


def _dim(value: Any) -> Dim:
    if value is None or value is UNKNOWN_DIMENSION:
        return None
    try:
        dim = value.__index__()
    except (AttributeError, TypeError):
        raise ShapeError(f"a dimension is an integer >= 0 or None, got {shown(value)}") from None
    if dim < 0:
        raise ShapeError(f"a dimension is an integer >= 0 or None, got {shown(dim)}")
    if dim > MOST:
        raise ShapeError(f"a dimension is at most 2**63 - 1, got {shown(int(dim))}")
    return int(dim)


UNKNOWN = Shape(None)
SCALAR = Shape(())


def broadcast(left: Shape, right: Shape) -> Shape:
    """Return the shape to which both broadcast by NumPy's rules.

    Raises:
        ShapeError: if they do not broadcast.
    """
    if left.dims is None or right.dims is None:
        return UNKNOWN
    if left.dims == right.dims:
        return left
    rank = max(len(left.dims), len(right.dims))
    ours: Sequence[Dim] = (1,) * (rank - len(left.dims)) + left.dims
    theirs: Sequence[Dim] = (1,) * (rank - len(right.dims)) + right.dims
    dims: list[Dim] = []
    for a, b in zip(ours, theirs, strict=True):
        if a == b or b == 1:
            dims.append(a)
        elif a == 1:
            dims.append(b)
        elif a is None or b is None:
            dims.append(b if a is None else a)
        else:
            raise ShapeError(
                f"shapes {left} and {right} do not broadcast: {a} against {b}, expected equal "
                "sizes or 1, counted from the last axis; hr.expand_dims and hr.reshape add axes "
                "of size 1"
            )
    return Shape(dims)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> Shape:
    """Return the shape to which two static shapes broadcast.

    Args:
        shape_x: A shape, as far as known.
        shape_y: Another.

    Raises:
        ShapeError: if they do not broadcast.
    """
    return broadcast(Shape(shape_x), Shape(shape_y))


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """Return ``axis`` counted from the front.

    Raises:
        NoDimensionError: if it is not within ``[-rank, rank)``.
    """
    try:
        inside = -rank <= axis < rank
    except ArithmeticError:
        # A signalling NaN.
        inside = False
    if not inside:
        allowed = f"expected {-rank} to {rank - 1}" if rank else "a scalar has none"
        raise NoDimensionError(
            f"{what} {told(axis)} is out of range for a tensor of rank {told(rank)}; {allowed}"
        )
    return axis + rank if axis < 0 else axis
