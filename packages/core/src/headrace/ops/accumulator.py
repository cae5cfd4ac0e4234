"""Accumulators: gradients of several steps, averaged when there are enough of them."""

from __future__ import annotations

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Resource
from headrace.shapes import SCALAR, Shape

_GATHERED = "what is accumulated belongs to other steps"
_REDUCTIONS = ("MEAN", "SUM")


def _handle(dtype: DType, reduction_type: str) -> TensorSpec:
    if dtype.kind not in ("float", "complex"):
        raise DTypeError(f"an accumulator takes gradients, which are floating, got {dtype}")
    if reduction_type not in _REDUCTIONS:
        raise AttributeValueError(
            f"reduction_type must be MEAN or SUM, got {shown(reduction_type)}"
        )
    return TensorSpec(dtypes.resource, SCALAR)


def _scalar(number: TensorSpec, label: str) -> None:
    if not number.shape.is_compatible_with(SCALAR):
        raise ShapeError(f"{label} must be a scalar, got shape {number.shape}")


def _rows(dtype: DType) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    rows = Shape([None])
    # Rows may have more axes than the shape of the accumulator.
    return (
        TensorSpec(dtypes.int64, rows),
        TensorSpec(dtype, Shape(None)),
        TensorSpec(dtypes.int64, rows),
    )


@op("ConditionalAccumulator", concurrent=True, effects="reads", public="", no_gradient=_GATHERED)
def conditional_accumulator(
    dtype: DType, shape: Shape, reduction_type: str, container: str, shared_name: str
) -> Spec:
    """A handle to an accumulator of gradients of a name in a container of the device.

    Args:
        dtype: The dtype of the gradients.
        shape: Their shape, as far as fixed.
        reduction_type: "MEAN" or "SUM".
        container: The container; empty for the default one.
        shared_name: The accumulator's name in the container.

    Returns:
        [], a resource handle.
    """
    return _handle(dtype, reduction_type)


@op(
    "SparseConditionalAccumulator",
    concurrent=True,
    effects="reads",
    public="",
    no_gradient=_GATHERED,
)
def sparse_conditional_accumulator(
    dtype: DType, shape: Shape, reduction_type: str, container: str, shared_name: str
) -> Spec:
    """A handle to an accumulator of row-sparse gradients; arguments as for a dense one.

    Args:
        dtype: The dtype of the gradients.
        shape: Their shape as dense tensors, as far as fixed.
        reduction_type: "MEAN" or "SUM".
        container: The container; empty for the default one.
        shared_name: The accumulator's name in the container.

    Returns:
        [], a resource handle.
    """
    return _handle(dtype, reduction_type)


@op("AccumulatorApplyGradient", effects="changes", public="", no_gradient=_GATHERED)
def accumulator_apply_gradient(handle: Resource, local_step: Index, gradient: Anything) -> None:
    """Add a gradient, unless its step is behind the accumulator's.

    Args:
        handle: [], the accumulator.
        local_step: [], the step for which the gradient was computed.
        gradient: The gradient.
    """
    _scalar(local_step, "local_step")


@op("SparseAccumulatorApplyGradient", effects="changes", public="", no_gradient=_GATHERED)
def sparse_accumulator_apply_gradient(
    handle: Resource, local_step: Index, indices: Index, values: Anything, shape: Index
) -> None:
    """Add a row-sparse gradient, unless its step is behind the accumulator's.

    Args:
        handle: [], the accumulator.
        local_step: [], the step for which the gradient was computed.
        indices: [n], which rows.
        values: [n, ...], the rows.
        shape: [rank], the shape of the gradient as a dense tensor; [0] where it is not known.
    """


@op("AccumulatorTakeGradient", effects="changes", blocking=True, public="", no_gradient=_GATHERED)
def accumulator_take_gradient(
    handle: Resource, num_required: Index, dtype: DType, shape: Shape
) -> Spec:
    """Take what was accumulated, and go on to the next step; waits for enough gradients.

    Args:
        handle: [], the accumulator.
        num_required: [], of how many gradients.
        dtype: Their dtype.
        shape: Their shape, as far as fixed.

    Returns:
        The mean or sum of all gradients that were added.
    """
    _scalar(num_required, "num_required")
    return TensorSpec(dtype, shape)


@op(
    "SparseAccumulatorTakeGradient",
    effects="changes",
    blocking=True,
    public="",
    no_gradient=_GATHERED,
)
def sparse_accumulator_take_gradient(
    handle: Resource, num_required: Index, dtype: DType, shape: Shape
) -> tuple[Spec, Spec, Spec]:
    """Take what was accumulated, and go on to the next step; waits for enough gradients.

    Args:
        handle: [], the accumulator.
        num_required: [], of how many gradients.
        dtype: Their dtype.
        shape: Their shape as dense tensors, as far as fixed.

    Returns:
        The rows that gradients had, int64 [n], their means or sums, [n, ...], and the shape as a
        dense tensor, int64 [rank], -1 where it is not known.
    """
    _scalar(num_required, "num_required")
    return _rows(dtype)


@op("AccumulatorNumAccumulated", effects="reads", public="", no_gradient=_GATHERED)
def accumulator_num_accumulated(handle: Resource) -> Spec:
    """How many gradients were added since some were last taken.

    Args:
        handle: [], the accumulator.

    Returns:
        [], int32.
    """
    return TensorSpec(dtypes.int32, SCALAR)


@op("AccumulatorSetGlobalStep", effects="changes", public="", no_gradient=_GATHERED)
def accumulator_set_global_step(handle: Resource, new_global_step: Index) -> None:
    """Set the step behind which gradients are dropped.

    Args:
        handle: [], the accumulator.
        new_global_step: [], the step.
    """
    _scalar(new_global_step, "new_global_step")


@op("AccumulatorPlaceGradient", effects="changes", public="", no_gradient=_GATHERED)
def accumulator_place_gradient(handle: Resource, place: Index, gradient: Anything) -> None:
    """Keep a gradient under a number, until it is taken by that number.

    Args:
        handle: [], the accumulator.
        place: [], the number; one below the largest that was taken is dropped.
        gradient: The gradient.
    """


@op("SparseAccumulatorPlaceGradient", effects="changes", public="", no_gradient=_GATHERED)
def sparse_accumulator_place_gradient(
    handle: Resource, place: Index, indices: Index, values: Anything, shape: Index
) -> None:
    """Keep a row-sparse gradient under a number, until it is taken by that number.

    Args:
        handle: [], the accumulator.
        place: [], the number; one below the largest that was taken is dropped.
        indices: [n], which rows.
        values: [n, ...], the rows.
        shape: [rank], the shape of the gradient as a dense tensor; [0] where it is not known.
    """


@op("AccumulatorTakePlaced", effects="changes", blocking=True, public="", no_gradient=_GATHERED)
def accumulator_take_placed(handle: Resource, places: Index, dtype: DType, shape: Shape) -> Spec:
    """Take the gradients of some numbers, added up in the order of these; waits for all of them.

    Args:
        handle: [], the accumulator.
        places: [n], the numbers, at least one.
        dtype: The dtype of the gradients.
        shape: Their shape, as far as fixed.

    Returns:
        Their mean or sum.
    """
    return TensorSpec(dtype, shape)


@op(
    "SparseAccumulatorTakePlaced",
    effects="changes",
    blocking=True,
    public="",
    no_gradient=_GATHERED,
)
def sparse_accumulator_take_placed(
    handle: Resource, places: Index, dtype: DType, shape: Shape
) -> tuple[Spec, Spec, Spec]:
    """Take the row-sparse gradients of some numbers, added up in the order of these.

    Args:
        handle: [], the accumulator.
        places: [n], the numbers, at least one; waits for all of them.
        dtype: The dtype of the gradients.
        shape: Their shape as dense tensors, as far as fixed.

    Returns:
        As ``SparseAccumulatorTakeGradient`` does.
    """
    return _rows(dtype)
