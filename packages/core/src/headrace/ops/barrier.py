"""Barriers: maps whose values come component by component, and leave when they are complete."""

from __future__ import annotations

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Resource
from headrace.shapes import SCALAR, Shape

_PASSED = "what passes through a barrier belongs to other steps"


@op("Barrier", concurrent=True, effects="reads", public="", no_gradient=_PASSED)
def barrier_handle(
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to the barrier of a name in a container of the device.

    Args:
        component_types: The dtype of each component of a value.
        shapes: The shape of each component, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The barrier's name in the container.

    Returns:
        [], a resource handle.
    """
    if not component_types or len(shapes) != len(component_types):
        raise AttributeValueError("a barrier needs one dtype and one shape for each component")
    return TensorSpec(dtypes.resource, SCALAR)


@op("BarrierInsertMany", effects="changes", public="", no_gradient=_PASSED)
def barrier_insert_many(
    handle: Resource, keys: Anything, values: Anything, component_index: int
) -> None:
    """Set one component of the values of some keys.

    Args:
        handle: [], the barrier.
        keys: [n], strings.
        values: [n, ...], the component of each.
        component_index: Which component.
    """


@op("BarrierTakeMany", effects="changes", blocking=True, public="", no_gradient=_PASSED)
def barrier_take_many(
    handle: Resource,
    num_elements: Index,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    allow_small_batch: bool,
) -> list[Spec]:
    """Take complete values, those first whose first component came first; waits for so many.

    Args:
        handle: [], the barrier.
        num_elements: [], how many.
        component_types: The dtype of each component.
        shapes: The shape of each component, which must be fixed.
        allow_small_batch: Take fewer, but at least one, where the barrier is closed.

    Returns:
        Of each value the number of the insertion in which its key was new, int64 [n], its key,
        string [n], and its components, [n, ...].
    """
    known = num_elements.value
    count = None if known is None or allow_small_batch else int(known)
    rows = Shape([count])
    parts = zip(component_types, shapes, strict=True)
    return [
        TensorSpec(dtypes.int64, rows),
        TensorSpec(dtypes.string, rows),
        *(TensorSpec(dtype, rows.concatenate(shape)) for dtype, shape in parts),
    ]


@op("BarrierReadySize", effects="reads", public="", no_gradient=_PASSED)
def barrier_ready_size(handle: Resource) -> Spec:
    """How many values of a barrier are complete, and were not taken.

    Args:
        handle: [], the barrier.

    Returns:
        [], int32.
    """
    return TensorSpec(dtypes.int32, SCALAR)


@op("BarrierIncompleteSize", effects="reads", public="", no_gradient=_PASSED)
def barrier_incomplete_size(handle: Resource) -> Spec:
    """How many values of a barrier lack components.

    Args:
        handle: [], the barrier.

    Returns:
        [], int32.
    """
    return TensorSpec(dtypes.int32, SCALAR)


@op("BarrierClose", effects="changes", public="", no_gradient=_PASSED)
def barrier_close(handle: Resource, cancel_pending_enqueues: bool = False) -> None:
    """Close a barrier: no keys are added to it, values that it has may still be completed.

    Args:
        handle: [], the barrier.
        cancel_pending_enqueues: Drop the values that lack components, too.
    """
