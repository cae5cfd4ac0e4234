"""Diagonals and bands of matrices, and their transposes."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.dtypes import DType
from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.naming import names_result
from headrace.graph.schema import call_op
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int, as_ints
from headrace.ops.array import broadcast_to, concat, expand_dims, rank, reshape, shape, transpose
from headrace.ops.blocks import product_of, sizes_of
from headrace.ops.constant import range as range_of
from headrace.ops.elementwise import equal, greater, less_equal
from headrace.ops.gather import gather
from headrace.ops.identity import ensure_shape
from headrace.ops.reduce import reduce_all, reduce_prod
from headrace.ops.report import assert_true, holding

# Where diagonals shorter than the longest stand in their rows: those above the main diagonal, and
# those below it.
_ALIGNMENTS = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


# No matrix has more rows or columns.
_MOST_DIAGONALS = 2**31 - 1


# Indices of larger matrices are computed in the step.
_MOST_ELEMENTS = 4096


class _Numbers:
    """Integer arithmetic on numbers and arrays where all is known, else on tensors.

    The same formulas then serve both, and indices that are known become constants.
    """

    @staticmethod
    def known(*values: Any) -> bool:
        return not any(isinstance(v, Tensor) for v in values)

    def maximum(self, x: Any, y: Any) -> Any:
        return np.maximum(x, y) if self.known(x, y) else call_op("Maximum", x, y)

    def minimum(self, x: Any, y: Any) -> Any:
        return np.minimum(x, y) if self.known(x, y) else call_op("Minimum", x, y)

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        if self.known(condition, x, y):
            return np.where(condition, x, y)
        return call_op("Select", condition, x, y)

    def grid(self, rows: Any, columns: Any) -> tuple[Any, Any]:
        """Return the row and the column of all elements of a matrix, to be broadcast.

        As tensors also where the sizes are known, but the matrix is too large for a constant.
        """
        if self.known(rows, columns) and rows * columns <= _MOST_ELEMENTS:
            whole = np.arange(rows, dtype=np.int32), np.arange(columns, dtype=np.int32)
            return whole[0][:, None], whole[1][None, :]
        return expand_dims(range_of(rows), 1), expand_dims(range_of(columns), 0)

    def both(self, x: Any, y: Any) -> Any:
        return x & y if self.known(x, y) else call_op("LogicalAnd", x, y)


_N = _Numbers()


def _matrix(input: Any, what: str) -> Tensor:
    x = convert_to_tensor(input)
    if x.shape.rank is not None and x.shape.rank < 2:
        raise ShapeError(f"{what}: matrices have 2 axes at least, got {shown(x)}")
    return x


def _as_batch(x: Tensor, own: int) -> tuple[Tensor, Tensor]:
    """Return a tensor of unknown rank with one axis before its ``own`` last ones, and the others.

    Raises, when it runs, where it has less than ``own`` axes.
    """
    sizes = shape(x)
    lead, last = sizes[:-own], [sizes[i - own] for i in range(own)]
    flat = reshape(x, [reduce_prod(lead), *last])
    return ensure_shape(flat, [None] * (own + 1)), lead


def _out_of_batch(found: Tensor, lead: Tensor) -> Tensor:
    """Return a tensor with other axes in place of its first one."""
    return reshape(found, concat([lead, shape(found)[1:]], 0))


def _zero(dtype: DType) -> Any:
    return np.array(b"", object) if dtype.kind == "string" else np.zeros((), dtype.as_numpy_dtype)


def _choose(condition: Any, x: Tensor, y: Any) -> Tensor:
    """Return ``x`` or ``y``, by a condition whose axes are the last ones."""
    chosen = convert_to_tensor(condition)
    missing = (x.shape.rank or 0) - (chosen.shape.rank or 0)
    for _ in range(missing if chosen.shape.rank == 1 else 0):
        chosen = expand_dims(chosen, 0)
    found: Tensor = call_op("Select", chosen, x, y)
    return found


@names_result
def matrix_band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Matrices with zeros outside a band about the main diagonal.

    Args:
        input: [..., rows, columns], any dtype.
        num_lower: How many diagonals below the main one are kept; all if negative.
        num_upper: How many above it are kept; all if negative.
        name: The name of the operations.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        ShapeError: if ``input`` has less than two axes, or more are to be kept than there are.
    """
    with name_scope(name, "MatrixBandPart"):
        x = _matrix(input, "matrix_band_part")
        if x.shape.rank is None:
            flat, lead = _as_batch(x, 2)
            return _out_of_batch(matrix_band_part(flat, num_lower, num_upper), lead)
        rows, columns = sizes_of(x)[-2:]
        lower, upper = as_int(num_lower, "num_lower"), as_int(num_upper, "num_upper")
        for count, size, label in ((lower, rows, "num_lower"), (upper, columns, "num_upper")):
            if isinstance(count, int) and isinstance(size, int) and count > size:
                raise ShapeError(f"matrix_band_part: {label} must be at most {size}, got {count}")
        lower, upper = _narrow(lower), _narrow(upper)
        for count, size, label in ((lower, rows, "num_lower"), (upper, columns, "num_upper")):
            counted = isinstance(count, int)
            if not ((counted and count <= 0) or (counted and isinstance(size, int))):
                most = [f"matrix_band_part: {label} must be at most", size, "got", count]
                x = holding(x, less_equal(count, size), most)
        down, across = _N.grid(rows, columns)
        offset = across - down
        # A negative count stands for all diagonals, and there are not more than that.
        lower = _N.where(lower < 0, rows, lower)
        upper = _N.where(upper < 0, columns, upper)
        inside = _N.both(-lower <= offset, offset <= upper)
        return _choose(inside, x, _zero(x.dtype))


def _narrow(count: Any) -> Any:
    return call_op("Cast", count, "int32") if isinstance(count, Tensor) else count


def _band(k: Any, what: str) -> tuple[int, int]:
    """Return the lowest and the highest diagonal of a band."""
    given = as_ints(k, "k")
    if isinstance(given, Tensor):
        raise AttributeValueError(f"{what}: k must be known while the graph is built")
    ends = [given, given] if isinstance(given, int) else list(given) * max(3 - len(given), 1)
    if len(ends) != 2 or not all(isinstance(e, int) for e in ends) or ends[0] > ends[1]:
        raise AttributeValueError(f"{what}: k must be a number or rising pair, got {given}")
    if max(map(abs, ends)) > _MOST_DIAGONALS:
        raise ShapeError(f"{what}: there are no diagonals as far out as {given}")
    return ends[0], ends[1]


def _aligned(align: str, what: str) -> tuple[bool, bool]:
    """Return whether diagonals above the main one, and below it, stand at the right."""
    if align not in _ALIGNMENTS:
        raise AttributeValueError(f"{what}: align must be one of {_ALIGNMENTS}, got {shown(align)}")
    upper, lower = align.split("_")
    return upper == "RIGHT", lower == "RIGHT"


def _length(rows: Any, columns: Any, offset: Any) -> Any:
    """Return how many elements a diagonal of a matrix has."""
    return _N.minimum(rows + _N.minimum(offset, 0), columns - _N.maximum(offset, 0))


def _shift(rows: Any, columns: Any, offset: Any, longest: Any, align: tuple[bool, bool]) -> Any:
    """Return by how much a diagonal stands to the right in its row."""
    moved = _N.where(offset >= 0, int(align[0]), int(align[1]))
    return (longest - _length(rows, columns, offset)) * moved


@dispatched()
@names_result
def matrix_diag_part(
    input: Any,
    name: str | None = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "LEFT_LEFT",
) -> Tensor:
    """Diagonals of matrices.

    Args:
        input: [..., rows, columns], any dtype.
        name: The name of the operations.
        k: Which diagonal: 0 the main one, above it positive; or the lowest and the highest of a
            band.
        padding_value: What fills up diagonals shorter than the longest.
        align: For diagonals above the main one, and for those below, at which end of its row of
            the result a shorter one stands: "LEFT_LEFT", "RIGHT_LEFT" and so on.

    Returns:
        [..., n], or of a band [..., diagonals, n], the highest first.

    Raises:
        ShapeError: if ``input`` has less than two axes, or no such diagonal.
    """
    with name_scope(name, "diag_part"):
        x = _matrix(input, "matrix_diag_part")
        if x.shape.rank is None:
            flat, lead = _as_batch(x, 2)
            part = matrix_diag_part(flat, k=k, padding_value=padding_value, align=align)
            return _out_of_batch(part, lead)
        low, high = _band(k, "matrix_diag_part")
        sides = _aligned(align, "matrix_diag_part")
        *batch, rows, columns = sizes_of(x)
        _check_band(rows, columns, low, high, "matrix_diag_part")
        longest = _longest(rows, columns, low, high)
        longest = int(longest) if _N.known(longest) else longest
        order, along = _N.grid(high - low + 1, longest)
        offset = high - order
        along = along - _shift(rows, columns, offset, longest, sides)
        down, across = along - _N.minimum(offset, 0), along + _N.maximum(offset, 0)
        inside = _N.both(along >= 0, along < _length(rows, columns, offset))
        places = _N.where(inside, down * columns + across, 0)
        flat = reshape(x, [*batch, product_of([rows, columns])])
        single = high == low
        if single:
            return gather(flat, reshape(convert_to_tensor(places), [-1]), axis=len(batch))
        if product_of([d for d in (rows, columns) if isinstance(d, int)]) == 0:
            return broadcast_to(_filler(padding_value, x.dtype), [*batch, high - low + 1, longest])
        found = gather(flat, places, axis=len(batch))
        return _choose(inside, found, _filler(padding_value, x.dtype))


def _check_band(rows: Any, columns: Any, low: int, high: int, what: str) -> None:
    # A matrix without elements still has its main diagonal, without elements.
    wrong = (isinstance(rows, int) and low != 0 and low <= -rows) or (
        isinstance(columns, int) and high != 0 and high >= columns
    )
    if wrong:
        raise ShapeError(
            f"{what}: no diagonals {told(low)} to {told(high)} in matrices "
            f"[{told(rows)}, {told(columns)}]"
        )


def _filler(value: Any, dtype: DType) -> Tensor:
    if isinstance(value, int | float) and value == 0:
        return convert_to_tensor(_zero(dtype))
    return convert_to_tensor(value, dtype)


@names_result
def matrix_diag(
    diagonal: Any,
    name: str | None = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "LEFT_LEFT",
) -> Tensor:
    """Matrices with given diagonals.

    Args:
        diagonal: [..., n], or of a band [..., diagonals, n], the highest first; any dtype.
        name: The name of the operations.
        k: Which diagonal it is: 0 the main one, above it positive; or the lowest and the highest
            of a band.
        num_rows: The number of rows; -1 for as few as there can be.
        num_cols: The number of columns; -1 for as few as there can be.
        padding_value: What stands elsewhere.
        align: For diagonals above the main one, and for those below, at which end of its row of
            ``diagonal`` a shorter one stands: "LEFT_LEFT", "RIGHT_LEFT" and so on.

    Returns:
        [..., rows, columns], the dtype of ``diagonal``.

    Raises:
        ShapeError: if ``diagonal`` is a scalar, or does not fit the matrix.
    """
    with name_scope(name, "diag"):
        x = convert_to_tensor(diagonal)
        low, high = _band(k, "matrix_diag")
        if x.shape.rank is None:
            flat, lead = _as_batch(x, 1 if low == high else 2)
            sizes = {"num_rows": num_rows, "num_cols": num_cols}
            whole = matrix_diag(flat, None, k, **sizes, padding_value=padding_value, align=align)
            return _out_of_batch(whole, lead)
        x.spec.shape.with_rank_at_least(1 if low == high else 2)
        dims = sizes_of(x)
        longest = dims[-1]
        if low != high and isinstance(dims[-2], int) and dims[-2] != high - low + 1:
            raise ShapeError(
                f"matrix_diag: k = ({low}, {high}) needs {high - low + 1} diagonals, got {dims[-2]}"
            )
        least = (longest - min(high, 0), longest + max(low, 0))
        rows, columns = as_int(num_rows, "num_rows"), as_int(num_cols, "num_cols")
        for count in (rows, columns):
            if isinstance(count, int) and not -1 <= count <= _MOST_DIAGONALS:
                raise ShapeError(f"matrix_diag: a matrix has no {count} rows or columns")
        if rows == -1 and columns == -1:
            square = _N.maximum(*least)
            rows = columns = int(square) if _N.known(square) else square
        elif rows == -1:
            rows = least[0]
        elif columns == -1:
            columns = least[1]
        fits = _longest(rows, columns, low, high)
        if _N.known(longest, fits) and fits != longest:
            raise ShapeError(
                f"matrix_diag: diagonals {low} to {high} of [{rows}, {columns}] do not have "
                f"{longest} elements"
            )
        found, inside = _spread(x, rows, columns, low, high, _aligned(align, "matrix_diag"))
        return _choose(inside, found, _filler(padding_value, x.dtype))


def _longest(rows: Any, columns: Any, low: int, high: int) -> Any:
    """Return how many elements the longest diagonal of a band has."""
    # Diagonals from 0 to the difference of the sizes are all as long as there is room.
    return _N.minimum(rows + min(high, 0), columns - max(low, 0))


def _spread(
    diagonal: Tensor, rows: Any, columns: Any, low: int, high: int, align: tuple[bool, bool]
) -> tuple[Tensor, Any]:
    """Return matrices with the diagonals in their places, and which elements those are."""
    dims = sizes_of(diagonal)
    batch, longest = dims[: -1 if low == high else -2], dims[-1]
    count = high - low + 1
    down, across = _N.grid(rows, columns)
    offset = across - down
    inside = _N.both(low <= offset, offset <= high)
    along = _N.minimum(down, across) + _shift(rows, columns, offset, longest, align)
    places = _N.where(inside, (high - offset) * longest + along, 0)
    flat = reshape(diagonal, [*batch, product_of([count, longest])])
    if isinstance(longest, int) and longest == 0:
        # Of nothing nothing can be taken, and the result depends on it all the same.
        flat = concat([flat, broadcast_to(_filler(0, diagonal.dtype), [*batch, 1])], -1)
    return gather(flat, places, axis=len(batch)), inside


@names_result
def matrix_set_diag(
    input: Any,
    diagonal: Any,
    name: str | None = "set_diag",
    k: Any = 0,
    align: str = "LEFT_LEFT",
) -> Tensor:
    """Matrices with diagonals replaced.

    Args:
        input: [..., rows, columns], any dtype.
        diagonal: [..., n], or of a band [..., diagonals, n], the highest first.
        name: The name of the operations.
        k: Which diagonal: 0 the main one, above it positive; or the lowest and the highest of a
            band.
        align: As for ``matrix_diag``.

    Returns:
        The shape and dtype of ``input``.

    Raises:
        ShapeError: if ``diagonal`` does not fit ``input``.
    """
    with name_scope(name, "set_diag"):
        x = _matrix(input, "matrix_set_diag")
        given = convert_to_tensor(diagonal, x.dtype)
        low, high = _band(k, "matrix_set_diag")
        own = 1 if low == high else 2
        if given.shape.rank is not None and given.shape.rank < own:
            raise ShapeError(
                f"matrix_set_diag: diagonal has {own} axes at least, got {shown(given)}"
            )
        if x.shape.rank is None and given.shape.rank is not None:
            x = ensure_shape(x, [*list(given.spec.shape)[:-own], None, None])
        if x.shape.rank is None:
            flat, lead = _as_batch(x, 2)
            rest = shape(given)
            last = [rest[i - own] for i in range(own)]
            part = reshape(given, [reduce_prod(rest[:-own]), *last])
            return _out_of_batch(matrix_set_diag(flat, part, k=k, align=align), lead)
        rows, columns = sizes_of(x)[-2:]
        _check_band(rows, columns, low, high, "matrix_set_diag")
        size = _longest(rows, columns, low, high)
        longest = int(size) if _N.known(size) else None
        around = list(x.spec.shape)[:-2]
        band = [] if low == high else [high - low + 1]
        merged = given.spec.shape.merge_with([*around, *band, longest])
        # What either says of the batch holds for both, and for their gradients.
        around = list(merged)[: len(around)]
        whole = x.spec.shape.merge_with([*around, None, None])
        x = x if whole == x.spec.shape else ensure_shape(x, whole)
        given = given if merged == given.spec.shape else ensure_shape(given, merged)
        if longest is None or given.spec.shape[-1] is None:
            length = shape(given)[-1]
            needed = ["matrix_set_diag: diagonal must have", size, "elements last, got", length]
            given = holding(given, equal(length, size), needed)
        leading = list(given.spec.shape)[: len(around)]
        if around and None in (*around, *leading):
            # What has one axis of matrices for many would be repeated.
            count = len(around)
            same = reduce_all(equal(shape(given)[:count], shape(x)[:count]))
            given = holding(given, same, ["matrix_set_diag: diagonal of shape", shape(given)])
        found, inside = _spread(given, rows, columns, low, high, _aligned(align, "matrix_set_diag"))
        return _choose(inside, found, x)


@names_result
def diag(diagonal: Any, name: str | None = None) -> Tensor:
    """A tensor whose diagonal is given: of a vector the matrix with zeros elsewhere.

    Args:
        diagonal: [dims...].
        name: The name of the operations.

    Returns:
        [dims..., dims...], the dtype of ``diagonal``.

    Raises:
        ShapeError: if the rank of ``diagonal`` is 0.
    """
    with name_scope(name, "Diag"):
        x = convert_to_tensor(diagonal)
        if x.shape.rank is None:
            whole = shape(x)
            with control_dependencies([assert_true(greater(rank(x), 0), ["diag: a scalar"])]):
                flat = reshape(x, [-1])
            return reshape(matrix_diag(flat), concat([whole, whole], 0))
        if not x.shape.rank:
            raise ShapeError(f"diag: the rank must be above 0, got {shown(x)}")
        dims = sizes_of(x)
        return reshape(matrix_diag(reshape(x, [product_of(dims)])), [*dims, *dims])


@names_result
def diag_part(input: Any, name: str | None = None) -> Tensor:
    """The diagonal of a tensor: the elements whose indices are twice the same.

    Args:
        input: [dims..., dims...].
        name: The name of the operations.

    Returns:
        [dims...], the dtype of ``input``.

    Raises:
        ShapeError: if the rank of ``input`` is 0 or odd, or its halves are known to differ.
    """
    with name_scope(name, "DiagPart"):
        x = convert_to_tensor(input)
        if x.shape.rank is None:
            return _diag_part_of_any(x)
        if not x.shape.rank or x.shape.rank % 2:
            raise ShapeError(f"diag_part: the rank must be even and above 0, got {shown(x)}")
        half = x.shape.rank // 2
        common = x.spec.shape[:half].merge_with(x.spec.shape[half:])
        if None in list(x.spec.shape):
            x = ensure_shape(x, common.concatenate(common))
        if None in list(common):
            return ensure_shape(_diag_part_of_any(x), common)
        dims = sizes_of(x)[:half]
        count = product_of(dims)
        return reshape(matrix_diag_part(reshape(x, [count, count])), dims)


def _diag_part_of_any(x: Tensor) -> Tensor:
    """Return the diagonal of a tensor whose rank, or some of whose sizes, a step knows."""
    # Two rows of sizes, which an odd rank does not make.
    halves = reshape(shape(x), [2, -1])
    same = reduce_all(equal(halves[0], halves[1]))
    data = ["diag_part: both halves of a shape must be the same, got", shape(x)]
    with control_dependencies([assert_true(same, data)]):
        square = reshape(x, reduce_prod(halves, 1))
    part: Tensor = reshape(matrix_diag_part(square), halves[0])
    return part


def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """Matrices with rows and columns exchanged.

    Args:
        a: [..., rows, columns], any dtype.
        name: The name of the operations.
        conjugate: Whether to conjugate complex elements, too.

    Returns:
        [..., columns, rows], the dtype of ``a``.

    Raises:
        ShapeError: if ``a`` has less than two axes.
    """
    with name_scope(name, "matrix_transpose"):
        x = convert_to_tensor(a)
        count = x.shape.rank
        if count is not None:
            x.spec.shape.with_rank_at_least(2)
            return transpose(x, [*range(count - 2), count - 1, count - 2], conjugate=conjugate)
        axes = rank(x)
        x = holding(x, greater(axes, 1), ["matrix_transpose: matrices have 2 axes, got", shape(x)])
        return transpose(
            x, concat([range_of(axes - 2), [axes - 1, axes - 2]], 0), conjugate=conjugate
        )
