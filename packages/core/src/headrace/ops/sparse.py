"""The ops on the indices of sparse tensors, upon which the functions of ``hr.sparse`` are built.

Elements of sparse tensors move by ``gather`` and add up by segment, which are differentiable.
What these ops yield is where they come from and where they go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from headrace import dtypes
from headrace.errors import AttributeValueError, DTypeError, ShapeError
from headrace.graph.spec import TensorSpec, as_shape
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index, Numeric, Same
from headrace.shapes import Dim, Shape, normalize_axis

_PLACES = "it yields indices"


def _checked(indices: TensorSpec, dense_shape: TensorSpec) -> tuple[Dim, Dim]:
    """Return the number of elements and of dimensions, as far as known."""
    if indices.rank not in (None, 2):
        raise ShapeError(f"indices must have 2 dimensions, got shape {indices.shape}")
    if dense_shape.rank not in (None, 1):
        raise ShapeError(f"dense_shape must have 1 dimension, got shape {dense_shape.shape}")
    count, columns = indices.shape.dims if indices.shape.dims is not None else (None, None)
    rank = dense_shape.shape.dims[0] if dense_shape.shape.dims is not None else None
    if columns is not None and rank is not None and columns != rank:
        raise ShapeError(
            f"indices {indices.shape} have {columns} columns, dense_shape has {rank} dimensions"
        )
    return count, columns if rank is None else rank


def _whole(*dims: Dim, denoted: Shape | None = None) -> TensorSpec:
    return TensorSpec(dtypes.int64, Shape(dims), dims=denoted)


@op("SparseOrder", host_inputs=["dense_shape"], public="", no_gradient=_PLACES)
def sparse_order(indices: Index, dense_shape: Index) -> Spec:
    """The order in which elements are to be taken to be in row-major order.

    Args:
        indices: [n, rank].
        dense_shape: [rank].

    Returns:
        [n], int64; elements of equal indices stay in their order.
    """
    count, _ = _checked(indices, dense_shape)
    return _whole(count)


@op("SparseGroup", host_inputs=["dense_shape"], public="", no_gradient=_PLACES)
def sparse_group(
    indices: Index, dense_shape: Index, axes: tuple[int, ...] | None, keepdims: bool = False
) -> tuple[Spec, Spec, Spec]:
    """Groups of the elements that differ in their indices along some axes only.

    Args:
        indices: [n, rank].
        dense_shape: [rank].
        axes: The axes to leave out of account; all if None.
        keepdims: Whether indices and shape keep these axes, with size 1.

    Returns:
        [groups, rank of a group], int64, the index of each group, in row-major order; [n], int64,
        the group of each element; and [rank of a group], int64, the shape that is left.
    """
    count, rank = _checked(indices, dense_shape)
    known = as_shape(dense_shape)
    left: Dim = None
    denoted: Shape | None = None
    if rank is not None:
        chosen = set(range(rank)) if axes is None else {normalize_axis(a, rank) for a in axes}
        left = rank if keepdims else rank - len(chosen)
        if known.dims is not None:
            pairs = enumerate(known.dims)
            denoted = Shape(
                [1 if i in chosen else d for i, d in pairs if keepdims or i not in chosen]
            )
    return _whole(None, left), _whole(count), _whole(left, denoted=denoted)


@op("SparseUnion", host_inputs=["a_shape", "b_shape"], public="", no_gradient=_PLACES)
def sparse_union(
    a_indices: Index, a_shape: Index, b_indices: Index, b_shape: Index
) -> tuple[Spec, Spec]:
    """The places at which one of two sparse tensors of one shape has elements.

    Args:
        a_indices: [n, rank].
        a_shape: [rank].
        b_indices: [m, rank].
        b_shape: [rank], equal to ``a_shape``; raises when it runs otherwise.

    Returns:
        [places, rank], int64, in row-major order; and [n + m], int64, the place of each element
        of both.
    """
    first, rank = _checked(a_indices, a_shape)
    second, other = _checked(b_indices, b_shape)
    if not as_shape(a_shape).is_compatible_with(as_shape(b_shape)):
        raise ShapeError(f"shapes {as_shape(a_shape)} and {as_shape(b_shape)} differ")
    count = None if first is None or second is None else first + second
    return _whole(None, other if rank is None else rank), _whole(count)


@op("SparseReshape", host_inputs=["dense_shape", "new_shape"], public="", no_gradient=_PLACES)
def sparse_reshape_indices(
    indices: Index, dense_shape: Index, new_shape: Index
) -> tuple[Spec, Spec]:
    """Indices of the same elements in another shape.

    Args:
        indices: [n, rank], within the shape; others raise when it runs.
        dense_shape: [rank].
        new_shape: [new rank], of as many elements; one dimension may be -1 if none is 0.

    Returns:
        [n, new rank] and [new rank], int64.
    """
    count, _ = _checked(indices, dense_shape)
    if new_shape.rank not in (None, 1):
        raise ShapeError(f"shape must be a vector, got shape {new_shape.shape}")
    given = new_shape.value
    if given is not None and ((given < -1).any() or (given == -1).sum() > 1):
        raise ShapeError(f"shape must have dimensions >= 0, but for one -1, got {given.tolist()}")
    target = as_shape(new_shape)
    rank = target.rank
    old = as_shape(dense_shape)
    before, after = old.num_elements(), target.num_elements()
    if before is not None and after is not None and given is not None and before != after:
        raise ShapeError(f"cannot reshape {old} of {before} elements to {target} of {after}")
    if target.dims is not None and target.dims.count(None) == 1:
        rest = math.prod(dim for dim in target.dims if dim is not None)
        if rest == 0 and given is not None:
            raise ShapeError(f"{given.tolist()} leaves any size for the -1, as another one is 0")
        # A size that only a step knows follows from the others, too, be it given or -1.
        if rest and before is not None:
            if before % rest:
                raise ShapeError(f"cannot reshape {old} of {before} elements to {target}")
            target = Shape([before // rest if d is None else d for d in target.dims])
    return _whole(count, rank), _whole(rank, denoted=target)


@op("SparseConcat", public="", no_gradient=_PLACES)
def sparse_concat_indices(
    indices: Sequence[Index],
    dense_shapes: Sequence[Index],
    axis: int,
    expand_nonconcat_dims: bool = False,
) -> tuple[Spec, Spec, Spec]:
    """Indices of sparse tensors joined along an axis, in row-major order.

    Args:
        indices: [n, rank] of each.
        dense_shapes: [rank] of each; they differ in the axis only, or else raise when it runs.
        axis: The axis; negative from the end.
        expand_nonconcat_dims: Whether other dimensions may differ; the largest counts.

    Returns:
        [sum of n, rank], int64; [rank], int64, the shape; and [sum of n], int64, the position
        of each element in the joined values.
    """
    if len(indices) != len(dense_shapes):
        raise AttributeValueError(f"{len(indices)} indices and {len(dense_shapes)} shapes")
    total: Dim = 0
    rank: Dim = None
    for places, shape in zip(indices, dense_shapes, strict=True):
        count, mine = _checked(places, shape)
        total = None if total is None or count is None else total + count
        if rank is not None and mine is not None and mine != rank:
            raise ShapeError(f"sparse tensors of {rank} and {mine} dimensions cannot be joined")
        rank = mine if rank is None else rank
    shapes = [as_shape(s) for s in dense_shapes]
    denoted: Shape | None = None
    if rank is not None:
        at = normalize_axis(axis, rank)
        columns = [[s.dims[i] if s.dims is not None else None for s in shapes] for i in range(rank)]
        denoted = Shape(
            [_joined(c, i == at, expand_nonconcat_dims, shapes) for i, c in enumerate(columns)]
        )
    return _whole(total, rank), _whole(rank, denoted=denoted), _whole(total)


def _joined(sizes: list[Dim], along: bool, expand: bool, shapes: list[Shape]) -> Dim:
    """Return the size of one axis of joined tensors."""
    known = [s for s in sizes if s is not None]
    if along:
        return sum(known) if len(known) == len(sizes) else None
    if expand:
        return max(known) if len(known) == len(sizes) else None
    if len(set(known)) > 1:
        listed = ", ".join(map(str, shapes))
        raise ShapeError(
            f"shapes {listed} differ in other axes than the one to join along; pass "
            "expand_nonconcat_dims=True to take the largest"
        )
    return known[0] if known else None


@op("SparseSlice", host_inputs=["dense_shape", "start", "size"], public="", no_gradient=_PLACES)
def sparse_slice_indices(
    indices: Index, dense_shape: Index, start: Index, size: Index
) -> tuple[Spec, Spec, Spec]:
    """Indices of the elements in a block of a sparse tensor.

    Args:
        indices: [n, rank].
        dense_shape: [rank].
        start: [rank], where the block begins, not negative.
        size: [rank], its size; it is cut where the whole ends.

    Returns:
        [m, rank], int64, indices within the block; [m], int64, the positions of its elements;
        and [rank], int64, its shape.
    """
    _, rank = _checked(indices, dense_shape)
    for name, spec in (("start", start), ("size", size)):
        if not spec.shape.is_compatible_with([rank]):
            raise ShapeError(f"{name} must have one entry per dimension, got shape {spec.shape}")
        if spec.value is not None and (spec.value < 0).any():
            raise ShapeError(f"{name} must be >= 0, got {spec.value.tolist()}")
    denoted: Shape | None = None
    known = as_shape(dense_shape)
    if known.dims is not None and start.value is not None and size.value is not None:
        rows = zip(known.dims, start.value.tolist(), size.value.tolist(), strict=True)
        denoted = Shape([None if d is None else max(0, min(n, d - s)) for d, s, n in rows])
    return _whole(None, rank), _whole(None), _whole(rank, denoted=denoted)


@op("SparseFillEmptyRows", host_inputs=["dense_shape"], public="", no_gradient=_PLACES)
def sparse_fill_empty_rows_indices(
    indices: Index, dense_shape: Index
) -> tuple[Spec, Spec, Spec, Spec]:
    """Indices of a sparse tensor with an element at the start of each row that had none.

    Args:
        indices: [n, rank], whose rows are within the shape; others raise when it runs.
        dense_shape: [rank], one dimension at least.

    Returns:
        [m, rank], int64, indices by rows; [m], int64, the position of each element, n for those
        that are new; [rows], bool, which rows were empty; and [n], int64, where each element went.
    """
    count, rank = _checked(indices, dense_shape)
    if rank == 0:
        raise ShapeError("a sparse tensor without dimensions has no rows to fill")
    known = as_shape(dense_shape)
    rows = known.dims[0] if known.dims else None
    empty = TensorSpec(dtypes.bool_, Shape([rows]))
    return _whole(None, rank), _whole(None), empty, _whole(count)


@op("SparseToDense", host_inputs=["output_shape"], public="")
def sparse_to_dense_values(
    sparse_indices: Index,
    output_shape: Index,
    sparse_values: Same,
    default_value: Same,
    validate_indices: bool = True,
) -> Spec:
    """A dense tensor of elements at indices and one value elsewhere.

    Args:
        sparse_indices: [n, rank], or [n] for rank 1, or [] for one element; within the shape,
            others raise when it runs.
        output_shape: [rank].
        sparse_values: [n], or [] for all, any dtype.
        default_value: [], the dtype of ``sparse_values``.
        validate_indices: Whether indices that are out of order or repeated raise when it runs;
            otherwise the last of repeated ones counts.

    Returns:
        ``output_shape``, the dtype of ``sparse_values``.
    """
    if sparse_indices.rank is not None and sparse_indices.rank > 2:
        raise ShapeError(f"sparse_indices have 2 dimensions at most, got {sparse_indices.shape}")
    if output_shape.rank not in (None, 1):
        raise ShapeError(f"output_shape must be a vector, got shape {output_shape.shape}")
    if default_value.rank not in (None, 0):
        raise ShapeError(f"default_value must be a scalar, got shape {default_value.shape}")
    if sparse_values.rank is not None and sparse_values.rank > 1:
        raise ShapeError(f"sparse_values have 1 dimension at most, got {sparse_values.shape}")
    if output_shape.value is not None and (output_shape.value < 0).any():
        raise ShapeError(f"output_shape must be >= 0, got {output_shape.value.tolist()}")
    if sparse_indices.shape.dims is not None:
        dims = sparse_indices.shape.dims
        count = dims[0] if dims else 1
        columns = dims[1] if len(dims) == 2 else 1
        if columns is not None and not output_shape.shape.is_compatible_with([columns]):
            raise ShapeError(
                f"sparse_indices {sparse_indices.shape} have {columns} columns, output_shape has "
                f"{output_shape.shape[0]} dimensions"
            )
        if sparse_values.rank == 1 and not sparse_values.shape.is_compatible_with([count]):
            raise ShapeError(f"{count} indices, but sparse_values of shape {sparse_values.shape}")
    return TensorSpec(sparse_values.dtype, as_shape(output_shape))


@op("SparseTensorDenseMatMul", accumulates=True, host_inputs=["dense_shape"], public="")
def sparse_dense_matmul_values(
    indices: Index,
    values: Numeric,
    dense_shape: Index,
    b: Numeric,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
) -> Spec:
    """Product of a sparse matrix and a dense one.

    Args:
        indices: [n, 2], within the shape; others raise when it runs. Repeated ones add up.
        values: [n], numeric.
        dense_shape: [2].
        b: [k, columns], the dtype of ``values``; [columns, k] if ``adjoint_b``.
        adjoint_a: Whether to take the conjugate transpose of the sparse matrix.
        adjoint_b: Whether to take the conjugate transpose of ``b``.

    Returns:
        [rows, columns], the dtype of ``values``.
    """
    count, rank = _checked(indices, dense_shape)
    if rank not in (None, 2):
        raise ShapeError(f"the sparse matrix must have 2 dimensions, got {rank}")
    if b.rank not in (None, 2):
        raise ShapeError(f"b must have 2 dimensions, got shape {b.shape}")
    if not values.shape.is_compatible_with([count]):
        raise ShapeError(f"{count} indices, but values of shape {values.shape}")
    if values.dtype.is_bool:
        raise DTypeError("booleans have no products")
    outer, inner = as_shape(dense_shape).with_rank(2).dims or (None, None)
    rows, columns = b.shape.with_rank(2).dims or (None, None)
    if adjoint_a:
        outer, inner = inner, outer
    if adjoint_b:
        rows, columns = columns, rows
    if inner is not None and rows is not None and inner != rows:
        raise ShapeError(
            f"a sparse matrix of {inner} columns and a matrix of {rows} rows have no product"
        )
    return TensorSpec(values.dtype, Shape([outer, columns]))
