"""Staging areas: buffers between steps, limited by number and by bytes."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import AttributeValueError, told
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything, Index, Resource
from headrace.shapes import SCALAR, Shape

_STAGED = "what is staged belongs to other steps"


@op("StagingArea", concurrent=True, effects="reads", public="", no_gradient=_STAGED)
def staging_area_handle(
    capacity: int,
    memory_limit: int,
    component_types: tuple[DType, ...],
    shapes: tuple[Shape, ...],
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to the staging area of a name in a container of the device.

    Args:
        capacity: How many elements it holds at most; 0 for any number.
        memory_limit: How many bytes its elements have together at most; 0 for any number.
        component_types: The dtype of each component of an element.
        shapes: The shape of each component, as far as fixed.
        container: The container; empty for the default one.
        shared_name: The area's name in the container.

    Returns:
        [], a resource handle.
    """
    if capacity < 0 or memory_limit < 0:
        raise AttributeValueError(
            "capacity and memory_limit must be at least 0, which is for no limit, got "
            f"{told(capacity)} and {told(memory_limit)}"
        )
    if not component_types or len(shapes) != len(component_types):
        raise AttributeValueError("a staging area needs one dtype and shape for each component")
    return TensorSpec(dtypes.resource, SCALAR)


@op("Stage", effects="changes", blocking=True, public="", no_gradient=_STAGED)
def stage(handle: Resource, components: Sequence[Anything]) -> None:
    """Put an element in; waits while there is no room.

    Args:
        handle: [], the staging area.
        components: The components of the element.
    """


@op("Unstage", effects="changes", blocking=True, public="", no_gradient=_STAGED)
def unstage(
    handle: Resource, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Take the oldest element; waits while there is none.

    Args:
        handle: [], the staging area.
        component_types: The dtype of each component.
        shapes: The shape of each component, as far as fixed.

    Returns:
        The components.
    """
    return [TensorSpec(d, s) for d, s in zip(component_types, shapes, strict=True)]


@op("StagePeek", effects="reads", blocking=True, public="", no_gradient=_STAGED)
def stage_peek(
    handle: Resource, index: Index, component_types: tuple[DType, ...], shapes: tuple[Shape, ...]
) -> list[Spec]:
    """Look at an element, which stays; waits until there are so many.

    Args:
        handle: [], the staging area.
        index: [], which one, 0 for the oldest.
        component_types: The dtype of each component.
        shapes: The shape of each component, as far as fixed.

    Returns:
        The components.
    """
    return [TensorSpec(d, s) for d, s in zip(component_types, shapes, strict=True)]


@op("StageSize", effects="reads", public="", no_gradient=_STAGED)
def stage_size(handle: Resource) -> Spec:
    """How many elements a staging area holds.

    Args:
        handle: [], the staging area.

    Returns:
        [], int32.
    """
    return TensorSpec(dtypes.int32, SCALAR)


@op("StageClear", effects="changes", public="", no_gradient=_STAGED)
def stage_clear(handle: Resource) -> None:
    """Drop all elements of a staging area.

    Args:
        handle: [], the staging area.
    """
