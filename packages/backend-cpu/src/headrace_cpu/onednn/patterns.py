"""What stands around an operation in a segment: followers that can be computed with it."""

from __future__ import annotations

from collections.abc import Sequence

from headrace import dtypes
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.program.claims import Claims


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor of a specialised graph."""
    return tensor.shape.known


def all_float32(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors are all of float32."""
    return all(t.dtype is dtypes.float32 for t in tensors)


def only_user(claims: Claims, tensor: Tensor) -> Operation | None:
    """Return the one operation that reads a tensor that nobody else wants; None otherwise."""
    users = claims.users(tensor)
    if len(users) != 1 or not claims.free(users[0]) or users[0].control_inputs:
        return None
    return None if claims.needed_outside(tensor, users) else users[0]


def other_operand(op: Operation, tensor: Tensor) -> Tensor | None:
    """Return the other of two operands; None where it is the same one."""
    others = [t for t in op.inputs if t is not tensor]
    return others[0] if len(op.inputs) == 2 and len(others) == 1 else None


def relu_after(claims: Claims, tensor: Tensor) -> Operation | None:
    """Return the rectifier that alone reads a tensor."""
    user = only_user(claims, tensor)
    return user if user is not None and user.type == "Relu" else None


def sum_after(claims: Claims, tensor: Tensor) -> tuple[Operation, Tensor] | None:
    """Return the sum that alone reads a tensor, and what is added, where the shape stays."""
    user = only_user(claims, tensor)
    if user is None or user.type != "Add" or not all_float32(user.inputs):
        return None
    other = other_operand(user, tensor)
    if other is None or shape_of(user.outputs[0]) != shape_of(tensor):
        return None
    return user, other


def along_axis(shape: Sequence[int], rank: int, axis: int) -> int | None:
    """Return the size along an axis of what broadcasts to ``rank`` axes with all others of size 1.

    A size of 1 is none: such a tensor varies along no axis.
    """
    full = (1,) * (rank - len(shape)) + tuple(shape)
    if len(full) != rank or any(size != 1 for at, size in enumerate(full) if at != axis):
        return None
    return full[axis]
