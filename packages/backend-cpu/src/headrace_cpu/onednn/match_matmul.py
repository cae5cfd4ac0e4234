"""Matrix multiplications in a region, with what follows them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from headrace import Operation, Tensor
from headrace.extend.records import dataclass
from headrace_cpu.onednn.instruction import Operand, PrimitiveInstruction
from headrace_cpu.onednn.library import (
    BIAS,
    DST,
    SRC,
    WEIGHTS,
    Library,
)
from headrace_cpu.onednn.match import with_library
from headrace_cpu.onednn.matmul import (
    Matmul,
    SumOfMatmuls,
    Term,
    better_as_primitive,
    better_as_sgemm,
    matmul,
    multiplying,
)
from headrace_cpu.onednn.primitive import Plus, PostOp, Relu, post_op_argument
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.patterns import (
    all_float32,
    chains,
    only_user,
    other_operand,
    shape_of,
)

_CHANGES = {"AssignSubVariable": -1.0, "AssignAddVariable": 1.0}
_SUMS = ("Add", "AddN")


def wants_sum(candidate: Candidate) -> bool:
    """Whether an operation is a matrix multiplication that oneDNN's GEMM computes best."""
    shape = _shape(candidate.op)
    return shape is not None and not candidate.op.control_inputs and better_as_sgemm(shape)


@with_library
def make_sum(candidate: Candidate, library: Library) -> Instruction | None:
    """Return a matmul, or the largest sum of matmuls to which it belongs."""
    return _sum(candidate.matches, candidate.op, library, candidate.settings.threads)


def wants_matmul(candidate: Candidate) -> bool:
    """Whether an operation is a matrix multiplication that a primitive of oneDNN computes best."""
    shape = _shape(candidate.op)
    if shape is None or candidate.op.control_inputs:
        return False
    return better_as_primitive(shape) and not better_as_sgemm(shape)


@with_library
def make_matmul(candidate: Candidate, library: Library) -> Instruction | None:
    """Return a matmul with what follows it."""
    op, shape = candidate.op, _shape(candidate.op)
    assert shape is not None
    threads = shape.threads(candidate.settings.threads)
    return _with_followers(candidate.matches, op, shape, library, threads)


def _shape(op: Operation) -> Matmul | None:
    if op.type != "MatMul" or not all_float32(op.inputs):
        return None
    left, right = map(shape_of, op.inputs)
    out = shape_of(op.outputs[0])
    if not all(left + right + out):
        return None
    return matmul(left, right, out, op.attrs["transpose_a"], op.attrs["transpose_b"])


def _with_followers(
    matches: Matches, op: Operation, shape: Matmul, library: Library, threads: int
) -> PrimitiveInstruction | None:
    for chain in chains(matches, op, len(shape_of(op.outputs[0])) - 1):
        operands = [
            Operand(SRC, op.inputs[0], shape.left),
            Operand(WEIGHTS, op.inputs[1], shape.right),
        ]
        post_ops: list[PostOp] = []
        if chain.bias is not None:
            operands.append(Operand(BIAS, chain.bias, shape.bias))
        if chain.addend is not None:
            operands.append(Operand(post_op_argument(len(post_ops)), chain.addend, shape.out))
            post_ops.append(Plus(shape.out))
        if chain.relu:
            post_ops.append(Relu())
        prepare = partial(
            multiplying, library, shape, bias=chain.bias is not None, post_ops=tuple(post_ops)
        )
        primitive = prepare(threads)
        if primitive is None:
            continue
        operands.append(Operand(DST, chain.result, shape.out, written=True))
        return PrimitiveInstruction(
            library,
            primitive,
            prepare,
            chain.ops,
            operands,
            name="multiply",
            flops=shape.flops,
            threads=threads,
        )
    return None


# -- sums of matmuls: gradients of weights, and the steps of gradient descent made of them


def _sum(matches: Matches, op: Operation, library: Library, threads: int) -> SumOfMatmuls | None:
    gathered = _largest_sum(matches, op)
    for end in _ends(matches, gathered.ops):
        if matches.can_join(end.ops):
            return SumOfMatmuls(
                library,
                threads,
                end.ops,
                gathered.terms,
                end.target,
                in_place=end.in_place,
                scale=end.scale,
                factor=end.factor,
            )
    return None


@dataclass(frozen=True, slots=True)
class _Sum:
    """Matmuls, and what adds them up; ``ops`` ends with the operation that yields the sum."""

    ops: tuple[Operation, ...]
    terms: tuple[Term, ...]


def _largest_sum(matches: Matches, op: Operation) -> _Sum:
    """Return the largest sum of nothing but matmuls to which a matmul belongs."""
    found = _collect(matches, op)
    assert found is not None, "a matmul is a sum of itself"
    while True:
        user = only_user(matches, found.ops[-1].outputs[0])
        larger = _collect(matches, user) if user is not None and user.type in _SUMS else None
        if larger is None:
            return found
        found = larger


def _collect(matches: Matches, op: Operation) -> _Sum | None:
    """Return the matmuls that an operation adds up; None where it adds anything else."""
    if op not in matches or not matches.free(op) or op.control_inputs:
        return None
    if op.type not in _SUMS:
        shape = _shape(op)
        if shape is None or not better_as_sgemm(shape):
            return None
        return _Sum((op,), (Term(op.inputs[0], op.inputs[1], shape),))
    if len(set(op.inputs)) != len(op.inputs):
        return None
    parts = []
    for tensor in op.inputs:
        same = shape_of(tensor) == shape_of(op.outputs[0])
        part = None
        if same and only_user(matches, tensor) is op:
            part = _collect(matches, tensor.op)
        if part is None:
            return None
        parts.append(part)
    ops = tuple(each for part in parts for each in part.ops)
    return _Sum((*ops, op), tuple(term for part in parts for term in part.terms))


@dataclass(frozen=True, slots=True)
class _End:
    """Where a sum goes: into a tensor, or scaled into a variable."""

    ops: tuple[Operation, ...]
    target: Tensor
    in_place: bool = False
    scale: float = 1.0
    factor: Tensor | None = None


def _ends(matches: Matches, ops: tuple[Operation, ...]) -> Iterator[_End]:
    """Yield the ends that a sum may have, what changes a variable in place first."""
    total = ops[-1].outputs[0]
    user = _sole_reader(matches, total)
    factor = None
    if user is not None and user.type == "Mul" and not user.control_inputs:
        factor = other_operand(user, total)
        if factor is not None and shape_of(factor) == () and all_float32([factor]):
            last = _sole_reader(matches, user.outputs[0])
            if last is not None and _changes(matches, last, user.outputs[0]):
                yield _End((*ops, user, last), last.inputs[0], True, _CHANGES[last.type], factor)
    elif user is not None and _changes(matches, user, total):
        yield _End((*ops, user), user.inputs[0], True, _CHANGES[user.type])
    yield _End(ops, total)


def _sole_reader(matches: Matches, tensor: Tensor) -> Operation | None:
    """Return the one operation that reads a tensor, whatever it waits for besides."""
    users = matches.users(tensor)
    if len(users) != 1 or not matches.free(users[0]) or matches.needed_outside(tensor, users):
        return None
    return users[0]


def _changes(matches: Matches, op: Operation, change: Tensor) -> bool:
    """Whether an operation adds a tensor to a variable, and nobody reads what became of it."""
    if op.type not in _CHANGES or op.inputs[1] is not change:
        return False
    content = op.inputs[0].spec.content
    fits = content is not None and content.shape.dims == change.spec.shape.dims
    return fits and not matches.needed_outside(op.outputs[0], ())
