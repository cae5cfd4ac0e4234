"""What the classes of queues are made of: dtypes, shapes and names, in the forms they may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as hr
from headrace import DType, Shape, Tensor, TensorShape
from headrace.errors import ArgumentTypeError, AttributeValueError, ShapeError, shown, told
from headrace.extend.arguments import items, whole
from headrace.extend.graphs import current_scope

_MOST = 2**63 - 1


def dtype_list(dtypes: Any) -> list[DType]:
    """Return the dtype of each component, given as a list or as that of the only one."""
    given = list(dtypes) if isinstance(dtypes, list | tuple) else [dtypes]
    return [hr.as_dtype(dtype) for dtype in given]


def shape_list(shapes: Any, count: int, partial: bool = False) -> list[Shape]:
    """Return the shape of each component.

    Args:
        shapes: A list of shapes, one ``TensorShape``, a list of numbers for the shape of the only
            component, or None if none is fixed.
        count: How many components there are.
        partial: Whether dimensions may be unknown.

    Raises:
        AttributeValueError: if there are fewer or more shapes.
        ArgumentTypeError: if they are no list.
        ShapeError: if one is not fully known.
    """
    if shapes is None:
        return [Shape(None)] * count
    if not isinstance(shapes, list | tuple | Shape | TensorShape):
        raise ArgumentTypeError(
            f"the shapes of a queue must be a list of shapes, or a TensorShape, got {shown(shapes)}"
            "; the shape of vectors of 3 elements is [3]"
        )
    given = list(shapes) if isinstance(shapes, list | tuple) else [shapes]
    if given and all(type(size) is int for size in given):
        # These are the sizes of one shape.
        given = [shapes]
    # The shape of the only component may stand alone: [2, 3], or [] for a scalar.
    if count == 1 and not (len(given) == 1 and _is_shape(given[0])):
        given = [shapes]
    if len(given) != count:
        raise AttributeValueError(
            f"a queue of {told(count)} components needs as many shapes, got "
            f"{len(given)}: {shown(shapes)}"
        )
    forms = [Shape(shape) for shape in given]
    if not partial and not all(form.is_fully_defined() for form in forms):
        raise ShapeError(
            f"the shapes of a queue's components must be fully known, got {shown(shapes)}; leave "
            "shapes out where elements differ, or make a PaddingFIFOQueue"
        )
    return forms


def _is_shape(value: Any) -> bool:
    return value is None or isinstance(value, list | tuple | Shape | TensorShape)


def name_list(names: str | Sequence[str] | None, count: int) -> list[str] | None:
    """Return the name of each component, None where they have none.

    Raises:
        AttributeValueError: if there are not as many different names as components.
    """
    if names is None:
        return None
    given = [names] if isinstance(names, str) else items(names, "names")
    if len(given) != count or len(set(given)) != count:
        raise AttributeValueError(
            f"a queue of {told(count)} components needs as many different names, got {shown(given)}"
        )
    return given


def components(
    dtypes: Any, shapes: Any, names: str | Sequence[str] | None, partial: bool = False
) -> tuple[list[DType], list[Shape], list[str] | None]:
    """Return dtype, shape and name of each component, as the three functions above do."""
    kinds = dtype_list(dtypes)
    return kinds, shape_list(shapes, len(kinds), partial), name_list(names, len(kinds))


def room(capacity: Any) -> int:
    """Return the capacity of a queue; that of one without a limit is -1, or given as None.

    Raises:
        ArgumentTypeError: if it is no integer.
        AttributeValueError: if it is above 2^63 - 1.
    """
    if capacity is None:
        return -1
    number = max(whole_number(capacity, "capacity"), -1)
    if number > _MOST:
        raise AttributeValueError(
            f"capacity must be at most {_MOST}, got {told(number)}; -1 is a queue without a limit"
        )
    return number


def whole_number(value: Any, what: str) -> int:
    """Return an integer argument.

    Raises:
        ArgumentTypeError: if it is none.
        AttributeValueError: if it has thousands of digits.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise ArgumentTypeError(f"{what} must be a whole number, got {shown(value)}")
    return whole(value, what)


def handle(
    declared: Callable[..., Any], name: str, shared_name: str | None, **attributes: Any
) -> Tensor:
    """Add the handle of a resource to the default graph.

    Args:
        declared: Its op.
        name: The name of the operation; made unique.
        shared_name: The name in the container; that of the operation if None or empty.
        **attributes: What else the op has.
    """
    with hr.control_dependencies(None), hr.name_scope(name) as scope:
        made: Tensor = declared(
            **attributes,
            container=current_scope().container,
            shared_name=shared_name or scope[:-1],
            name=scope,
        )
        return made
