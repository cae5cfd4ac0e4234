"""What stands around an operation in a region: followers that can be computed with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headrace import Operation, Tensor, float32
from headrace.extend.records import dataclass
from headrace_cpu.program.matches import Matches


def shape_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the shape of a tensor of a specialised graph."""
    return tensor.spec.shape.known


def all_float32(tensors: Sequence[Tensor]) -> bool:
    """Whether tensors are all of float32."""
    return all(t.dtype is float32 for t in tensors)


def only_user(matches: Matches, tensor: Tensor) -> Operation | None:
    """Return the one operation that reads a tensor that nobody else wants; None otherwise."""
    users = matches.users(tensor)
    if len(users) != 1 or not matches.free(users[0]) or users[0].control_inputs:
        return None
    return None if matches.needed_outside(tensor, users) else users[0]


def other_operand(op: Operation, tensor: Tensor) -> Tensor | None:
    """Return the other of two operands; None where it is the same one."""
    others = [t for t in op.inputs if t is not tensor]
    return others[0] if len(op.inputs) == 2 and len(others) == 1 else None


def relu_after(matches: Matches, tensor: Tensor) -> Operation | None:
    """Return the rectifier that alone reads a tensor."""
    user = only_user(matches, tensor)
    return user if user is not None and user.type == "Relu" else None


def sum_after(matches: Matches, tensor: Tensor) -> tuple[Operation, Tensor] | None:
    """Return the sum that alone reads a tensor, and what is added, where the shape stays."""
    user = only_user(matches, tensor)
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


@dataclass(frozen=True, slots=True)
class Chain:
    """An operation with some of what follows it.

    Attributes:
        ops: All of them.
        bias: A tensor that is added, along one axis.
        addend: A tensor of the result's shape that is added.
        relu: Whether negative elements become 0.
    """

    ops: tuple[Operation, ...]
    bias: Tensor | None = None
    addend: Tensor | None = None
    relu: bool = False

    @property
    def result(self) -> Tensor:
        """What it yields."""
        return self.ops[-1].outputs[0]


def chains(matches: Matches, op: Operation, axis: int) -> Iterator[Chain]:
    """Yield what could be computed at once with an operation, the longest first.

    Args:
        matches: The region.
        op: The operation.
        axis: Along which a bias is added.
    """
    found = [Chain((op,))]
    while (longer := _with_sum(matches, found[-1], axis)) is not None:
        found.append(longer)
    for chain in reversed(found):
        relu = relu_after(matches, chain.result)
        if relu is not None:
            ops = (*chain.ops, relu)
            if matches.can_join(ops):
                yield Chain(ops, chain.bias, chain.addend, relu=True)
        if matches.can_join(chain.ops):
            yield chain


def _with_sum(matches: Matches, chain: Chain, axis: int) -> Chain | None:
    """Return a chain with the sum that follows it; a bias comes before an addend."""
    found = sum_after(matches, chain.result)
    if found is None or chain.addend is not None:
        return None
    user, other = found
    shape = shape_of(chain.result)
    ops = (*chain.ops, user)
    if chain.bias is None and along_axis(shape_of(other), len(shape), axis) == shape[axis]:
        return Chain(ops, bias=other)
    if shape_of(other) == shape:
        return Chain(ops, chain.bias, addend=other)
    return None
