"""Control flow: ordering, and branching by dead values."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from headrace import dtypes
from headrace.arguments import items
from headrace.errors import DTypeError, ShapeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import colocate_with, control_dependencies, in_graph_of, name_scope
from headrace.graph.spec import TensorSpec, like
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Bool, SameValue, Value
from headrace.shapes import UNKNOWN, Shape


@op("NoOp", builtin=True, no_gradient="it has no outputs")
def no_op() -> None:
    """Nothing: a node to order others by, or to group them."""


@op("Switch", may_be_dead=True, builtin=True)
def switch(data: Value, pred: Bool) -> tuple[Spec, Spec]:
    """Forward ``data`` to one of two outputs; the other one is dead.

    An operation with a dead input does not run, and all its outputs are dead.

    Args:
        data: [...], any dtype.
        pred: [], which output lives.

    Returns:
        The output that lives where ``pred`` is false, and the one that lives where it is true.
    """
    if pred.rank not in (None, 0):
        raise ShapeError(f"pred must be a scalar, got shape {pred.shape}")
    spec = like(data)
    return spec, spec


@op("Merge", builtin=True)
def merge(inputs: Sequence[SameValue]) -> tuple[Spec, Spec]:
    """Forward the input that is not dead.

    Args:
        inputs: Tensors of one dtype, of which at most one lives in a step.

    Returns:
        The living input, and its index as a scalar int32; both dead where all inputs are.
    """
    shape = inputs[0].shape
    for spec in inputs[1:]:
        shape = common_shape(shape, spec.shape)
    return TensorSpec(inputs[0].dtype, shape, content=inputs[0].content), TensorSpec(
        dtypes.int32, Shape(())
    )


def common_shape(left: Shape, right: Shape) -> Shape:
    """Return what is known of a tensor that has one of two shapes."""
    if left.dims is None or right.dims is None or len(left.dims) != len(right.dims):
        return UNKNOWN
    return Shape([a if a == b else None for a, b in zip(left.dims, right.dims, strict=True)])


def group(*inputs: Any, name: str | None = None) -> Operation:
    """Return an operation that has finished when all of ``inputs`` have.

    Args:
        inputs: Operations, tensors, variables, or lists, tuples and dicts of these; None is
            skipped.
        name: The name of the operation.
    """
    waited = [item for item in flatten(inputs) if item is not None]
    known = [item for item in waited if isinstance(item, Tensor | Operation)]
    with in_graph_of(known), control_dependencies(waited):
        return no_op(name=name if name is not None else "group_deps")


def tuple_(
    tensors: Sequence[Any], name: str | None = None, control_inputs: Sequence[Any] | None = None
) -> list[Any]:
    """Return tensors that are there only when all of ``tensors`` are.

    Args:
        tensors: What to wait for and return: tensors and ``IndexedSlices``; an operation gives
            one that has finished when all have, and None gives None.
        name: The name of the scope.
        control_inputs: More to wait for.

    Raises:
        DTypeError: if ``tensors`` holds nothing.
    """
    tensors = items(tensors, "tensors")
    more = items(control_inputs or (), "control_inputs")
    if all(t is None for t in tensors):
        raise DTypeError("tuple needs at least one tensor")
    with name_scope(name, "tuple", tensors):
        values = [_awaited(t) for t in tensors]
        gate = group(*values, *more, name="gate")
        with control_dependencies([gate]):
            return [_handed_on(v, gate) for v in values]


def _awaited(item: Any) -> Any:
    if item is None or isinstance(item, Operation) or hasattr(item, "unflatten"):
        return item
    return convert_to_tensor(item)


def _handed_on(item: Any, gate: Operation) -> Any:
    if item is None:
        return None
    if isinstance(item, Operation):
        return gate
    return pack(item, [identity(t, name="control_dependency") for t in flatten(item)])


def with_dependencies(
    dependencies: Sequence[Any], output_tensor: Any, name: str | None = None
) -> Any:
    """Return a tensor that is there, beside itself, only after ``dependencies`` have finished.

    Args:
        dependencies: Operations and tensors to wait for.
        output_tensor: A tensor, or ``IndexedSlices`` and others that are made of tensors.
        name: The name of the operation.
    """
    if hasattr(output_tensor, "unflatten"):
        with control_dependencies(dependencies):
            return pack(output_tensor, [identity(t, name=name) for t in flatten(output_tensor)])
    known = isinstance(output_tensor, Tensor) or hasattr(output_tensor, "op_name")
    beside = colocate_with(output_tensor) if known else nullcontext()
    with control_dependencies(dependencies), beside:
        return identity(convert_to_tensor(output_tensor), name=name)
