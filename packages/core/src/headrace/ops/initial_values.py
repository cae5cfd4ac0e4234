"""What variables are initialized to: tensors of the right dtype and shape, in whatever order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.dtypes import DType
from headrace.errors import ShapeError
from headrace.graph.collections import GraphKeys
from headrace.graph.convert import convert_to_tensor
from headrace.graph.copying import copied
from headrace.graph.operation import Operation
from headrace.graph.scopes import get_default_graph, name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.conversion import cast
from headrace.shapes import Shape

if TYPE_CHECKING:
    from headrace.ops.variable import Variable


def initial(value: Any, wanted: DType | None) -> Tensor:
    """Return an initial value as a tensor, made under the name that says where it comes from.

    Args:
        value: Data, a tensor, or a function that returns one of these.
        wanted: The dtype that it must have, if any.

    Raises:
        DTypeError: if it cannot have the dtype.
    """
    if callable(value):
        with name_scope("Initializer"):
            return _converted(value(), wanted)
    return _converted(value, wanted)


def _converted(value: Any, wanted: DType | None) -> Tensor:
    start = convert_to_tensor(value, name="initial_value", preferred_dtype=wanted)
    if wanted is not None:
        start = cast(start, wanted) if isinstance(value, Tensor) else start
        start = convert_to_tensor(start, wanted)
    return start


def declared(start: Tensor, shape: Any, expected_shape: Any, lax: bool) -> Shape:
    """Return the shape of all values of a variable that starts with ``start``.

    Args:
        start: The initial value.
        shape: The shape that the program gave, if any.
        expected_shape: One that the initial value must have, if any.
        lax: Whether the initial value's shape may be unknown.

    Raises:
        ShapeError: if the initial value has another shape, or its shape is not known.
    """
    if not lax and not start.shape.is_fully_defined():
        raise ShapeError(
            f"the initial value {start.name!r} of a variable must have a known shape, got "
            f"{start.spec.shape}; give validate_shape=False for values of any shape"
        )
    for wanted in (shape, expected_shape):
        if wanted is not None and not start.shape.is_compatible_with(Shape(wanted)):
            raise ShapeError(
                f"the initial value has shape {start.spec.shape}, expected {Shape(wanted)}"
            )
    return start.spec.shape if shape is None else Shape(shape)


def in_any_order(start: Tensor) -> Tensor:
    """Return an initial value as it is right whether or not others are initialized before.

    Where it is computed from the values of other variables, a copy of what computes it takes their
    initial values for as long as they have none. Variables that are neither among the global nor
    among the local ones are read as they are.
    """
    if not start.op.inputs or start.graph is not get_default_graph():
        return start
    needed = _needed(start.op)
    reads = [op for op in needed if op.type == "ReadVariable"]
    if not reads:
        return start
    listed: dict[Tensor, Variable] = {
        v.handle: v
        for key in (GraphKeys.GLOBAL_VARIABLES, GraphKeys.LOCAL_VARIABLES)
        for v in start.graph.get_collection(key)
        if hasattr(v, "initialized_value")
    }
    values: dict[Variable, Tensor] = {}
    found: dict[Tensor, Tensor] = {}
    # Operations are in the order in which they were made, so that inputs come first.
    for op in sorted(needed, key=lambda op: op.index):
        variable = listed.get(op.inputs[0]) if op.type == "ReadVariable" else None
        if variable is not None:
            if variable not in values:
                values[variable] = variable.initialized_value()
            found[op.outputs[0]] = values[variable]
        elif any(t in found for t in op.inputs):
            made = copied(op, [found.get(t, t) for t in op.inputs])
            found.update(zip(op.outputs, made.outputs, strict=True))
    return found.get(start, start)


def _needed(op: Operation) -> set[Operation]:
    needed, waiting = {op}, [op]
    while waiting:
        for tensor in waiting.pop().inputs:
            if tensor.op not in needed:
                needed.add(tensor.op)
                waiting.append(tensor.op)
    return needed
