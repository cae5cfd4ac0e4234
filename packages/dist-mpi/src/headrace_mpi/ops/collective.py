"""Collectives: ops that all ranks of a group run together, each on a tensor of its own.

``place`` and ``plan`` are for the pass that prepares a step (``collectives/planning.py``): which of
the collectives of the step it is, and what all of them are, one line each.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace import Shape, float32, float64, int64
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.extend import Anything, Index, Numeric, Same, Spec, TensorSpec, op

REDUCTIONS = ("sum", "mean", "min", "max")
UNPLANNED = -1

_SIZES = "the number of rows of each rank is no number to differentiate"


def check_reduction(reduction: str, tensors: Sequence[TensorSpec]) -> None:
    """Refuse a reduction that there is not, or that the tensors' dtype does not have.

    Raises:
        AttributeValueError: if there is no such reduction.
        DTypeError: if elements of the dtype have no mean, or no order.
    """
    if reduction not in REDUCTIONS:
        raise AttributeValueError(
            f"op must be one of {', '.join(map(repr, REDUCTIONS))}, got {shown(reduction)}"
        )
    for tensor in tensors:
        dtype = tensor.dtype
        if reduction == "mean" and not (dtype.is_floating or dtype.is_complex):
            raise DTypeError(f"op='mean' takes floating or complex tensors, got {dtype}")
        if reduction in ("min", "max") and dtype.is_complex:
            raise DTypeError(f"op={reduction!r} takes real tensors, got {dtype}")


def _by_rows(x: TensorSpec, what: str) -> TensorSpec:
    """Return the spec of a tensor with as many rows as the ranks make of it."""
    dims = x.shape.dims
    if dims is None:
        return TensorSpec(x.dtype)
    if not dims:
        raise ShapeError(f"{what} takes tensors of at least one dimension, got a scalar")
    return TensorSpec(x.dtype, Shape([None, *x.shape[1:]]))


def _sizes() -> TensorSpec:
    return TensorSpec(int64, Shape([None]))


def _check_sizes(sizes: TensorSpec | None) -> None:
    if sizes is not None and not sizes.shape.is_compatible_with([None]):
        raise ShapeError(f"sizes must have one dimension, got {sizes.shape}")


def _check_root(root: int) -> None:
    if root < 0:
        raise AttributeValueError(f"root must be the number of a rank, got {root}")


@op("AllReduce", effects="changes", blocking=True, concerted=True, public="", aliases=["tensors"])
def all_reduce(
    tensors: Sequence[Numeric],
    reduction: str = "sum",
    bucket_bytes: int = 0,
    place: int = UNPLANNED,
    plan: tuple[str, ...] = (),
) -> list[Spec]:
    """What the tensors of all ranks make together, element by element, on every rank.

    Args:
        tensors: Numeric; of one shape on all ranks, each.
        reduction: ``"sum"``, ``"mean"``, ``"min"`` or ``"max"``.
        bucket_bytes: Up to how many bytes it may travel with others of the step.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        For each tensor one of its shape and dtype.
    """
    check_reduction(reduction, tensors)
    if bucket_bytes < 0:
        raise AttributeValueError(f"bucket_bytes must not be negative, got {bucket_bytes}")
    return [TensorSpec(t.dtype, t.shape) for t in tensors]


@op(
    "AllReduceProduct",
    effects="changes",
    blocking=True,
    concerted=True,
    public="",
    no_gradient="a pass makes it of what has been differentiated",
)
def all_reduce_product(
    a: Numeric,
    b: Numeric,
    transpose_a: bool = False,
    transpose_b: bool = False,
    reduction: str = "sum",
    place: int = UNPLANNED,
    plan: tuple[str, ...] = (),
) -> Spec:
    """The sum or mean over all ranks of the products of matrices that each has, on every rank.

    Args:
        a: [n, k] ([k, n] where transposed), float32 or float64; ranks may differ in ``k``.
        b: [k, m] ([m, k] where transposed), the dtype of ``a``.
        transpose_a: Swap the axes of ``a`` first.
        transpose_b: Swap the axes of ``b`` first.
        reduction: ``"sum"`` or ``"mean"``.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        [n, m], the dtype of ``a``.
    """
    if reduction not in ("sum", "mean"):
        raise AttributeValueError(f"op must be 'sum' or 'mean', got {shown(reduction)}")
    for part, label in ((a, "a"), (b, "b")):
        if part.dtype not in (float32, float64):
            raise DTypeError(f"{label} must be float32 or float64, got {part.dtype}")
        if part.rank not in (None, 2):
            raise ShapeError(f"{label} must be a matrix, got shape {part.shape}")
    rows = None if a.rank is None else a.shape[1 if transpose_a else 0]
    columns = None if b.rank is None else b.shape[0 if transpose_b else 1]
    return TensorSpec(a.dtype, Shape([rows, columns]))


@op("AllGather", effects="changes", blocking=True, concerted=True, public="", aliases=["x"])
def all_gather(x: Same, place: int = UNPLANNED, plan: tuple[str, ...] = ()) -> tuple[Spec, Spec]:
    """The rows of all ranks, one rank after the other, on every rank.

    Args:
        x: [rows, ...]; all but the number of rows as on the other ranks.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        [all rows, ...], and the number of rows of each rank, int64.
    """
    return _by_rows(x, "all_gather"), _sizes()


@op("ReduceScatter", effects="changes", blocking=True, concerted=True, public="", aliases=["x"])
def reduce_scatter(
    x: Numeric,
    sizes: Index | None = None,
    reduction: str = "sum",
    place: int = UNPLANNED,
    plan: tuple[str, ...] = (),
) -> Spec:
    """This rank's rows of what the tensors of all ranks make together.

    Args:
        x: [rows, ...], numeric; of one shape on all ranks.
        sizes: [ranks], how many rows each rank gets; as even as can be where not given.
        reduction: ``"sum"``, ``"mean"``, ``"min"`` or ``"max"``.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        [rows of this rank, ...]; where the rows are not a multiple of the ranks, the first ranks
        have one more.
    """
    check_reduction(reduction, [x])
    _check_sizes(sizes)
    return _by_rows(x, "reduce_scatter")


@op("AllToAll", effects="changes", blocking=True, concerted=True, public="", aliases=["x"])
def all_to_all(
    x: Same, sizes: Index | None = None, place: int = UNPLANNED, plan: tuple[str, ...] = ()
) -> tuple[Spec, Spec]:
    """Rows for every rank, from every rank.

    Args:
        x: [rows, ...]; all but the number of rows as on the other ranks.
        sizes: [ranks], how many rows go to each rank; the same number where not given.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        [rows for this rank, ...], one sender after the other, and the number of rows of each
        sender, int64.
    """
    _check_sizes(sizes)
    return _by_rows(x, "all_to_all"), _sizes()


@op("BroadcastFromRank", effects="changes", blocking=True, concerted=True, public="", aliases=["x"])
def broadcast(x: Same, root: int, place: int = UNPLANNED, plan: tuple[str, ...] = ()) -> Spec:
    """The tensor of one rank, on every rank.

    Args:
        x: Of one shape and dtype on all ranks.
        root: The rank whose tensor it is.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        [like ``x``].
    """
    _check_root(root)
    return TensorSpec(x.dtype, x.shape)


@op("ReduceToRank", effects="changes", blocking=True, concerted=True, public="", aliases=["x"])
def reduce_to_rank(
    x: Numeric, root: int, place: int = UNPLANNED, plan: tuple[str, ...] = ()
) -> Spec:
    """The sum of the tensors of all ranks on one of them, zeros on the others.

    Args:
        x: Numeric, of one shape on all ranks.
        root: The rank that gets the sum.
        place: Which collective of its step it is.
        plan: The collectives of its step.

    Returns:
        [like ``x``].
    """
    _check_root(root)
    return TensorSpec(x.dtype, x.shape)


@op(
    "RankBarrier",
    effects="changes",
    blocking=True,
    concerted=True,
    public="",
    no_gradient="it has neither inputs nor outputs",
)
def barrier(
    waits_for: Sequence[Anything] = (), place: int = UNPLANNED, plan: tuple[str, ...] = ()
) -> None:
    """Nothing, when every rank has come so far.

    Args:
        waits_for: What has to be computed on this rank before.
        place: Which collective of its step it is.
        plan: The collectives of its step.
    """


# The types of all of them.
COLLECTIVES = frozenset(
    function.schema.type
    for function in (
        *(all_reduce, all_reduce_product, all_gather, reduce_scatter),
        *(all_to_all, broadcast, reduce_to_rank, barrier),
    )
)
