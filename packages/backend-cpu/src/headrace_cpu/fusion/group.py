"""Grouping: which operations become one kernel.

Operations get *levels*: what must wait for an operation that is not fused, or for a control edge,
is on a higher level than what that waits for. On one level, operations that share dimensions are
put together. A level never waits for a higher one, and within a level the groups are numbered so
that none waits for one of a higher number: so no two kernels wait for each other.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from math import prod
from typing import TypeAlias

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.fusion.build import Unfit
from headrace_cpu.fusion.interpret import data_inputs
from headrace_cpu.fusion.kernel import FusedKernel
from headrace_cpu.fusion.levels import Levels
from headrace_cpu.fusion.nodes import shape_of
from headrace_cpu.fusion.region import Region, built, folds, is_view
from headrace_cpu.fusion.repeats import repeated, structure_of
from headrace_cpu.fusion.viewing import UPDATES
from headrace_cpu.native.compiler import give_up
from headrace_cpu.program.claims import Claims
from headrace_cpu.program.settings import CompileSettings

# What NumPy does slowly: worth a kernel by itself.
_SLOW_ALONE = frozenset({"Select", "AssignAddVariable", "AssignSubVariable", "OneHot"})
# Kernels, and the tensors of their structures, by structure.
Known: TypeAlias = dict[Hashable, tuple[FusedKernel, tuple[Tensor, ...]]]
# Elements from which on one elementwise operation is worth a kernel.
_MANY = 1 << 14


def claim_fused(claims: Claims, settings: CompileSettings) -> None:
    """Let fused kernels compute what is left of a segment, where that is worth it."""
    levels = Levels(claims)
    known: Known = {}
    number = 0
    for ops in levels.fused():
        try:
            regions = _regions(ops, levels)
        except Exception as error:
            give_up((op.type for op in ops), error, settings.verify)
            continue
        for region in regions:
            kernel = _kernel(claims, region, settings, f"fused_{number}", known)
            if kernel is not None and claims.add(kernel):
                number += 1


def _regions(ops: Sequence[Operation], levels: Levels) -> list[Region]:
    """Return the regions of one level."""
    component = _components(ops)
    regions: list[Region] = []
    place: dict[Operation, int] = {}
    of: dict[Operation, list[int]] = {}
    for op in ops:
        least = max((place[t.op] for t in op.inputs if t.op in place), default=0)
        mine = of.setdefault(component[op], [])
        # That of its producers, or one of the last: trying all would take long in large graphs.
        later = mine[bisect_left(mine, least) :]
        for number in dict.fromkeys((*later[:1], *later[-2:])):
            if regions[number].add(op):
                place[op] = number
                break
        else:
            region = Region()
            place[op] = len(regions)
            mine.append(len(regions))
            regions.append(region)
            # One that does not fit even alone stays by itself, and is not fused.
            if not region.add(op):
                mine.pop()
    return [region for region in regions if region.ops]


def _components(ops: Sequence[Operation]) -> dict[Operation, Operation]:
    """Return for each operation one that stands for all that it shares dimensions with."""
    parent = {op: op for op in ops}
    large = {op for op in ops if not _is_scalar(op)}

    def find(op: Operation) -> Operation:
        while parent[op] is not op:
            parent[op] = parent[parent[op]]
            op = parent[op]
        return op

    readers: dict[Tensor, Operation] = {}
    for op in ops:
        if op in large:
            # Those that go through the same memory go through it together.
            for tensor in _widest(op):
                if tensor.op not in parent:
                    parent[find(op)] = find(readers.setdefault(tensor, op))
        makers = dict.fromkeys(t.op for t in data_inputs(op) if t.op in parent)
        if not makers:
            continue
        if _is_scalar(op):
            # Scalars go together, and with what they are computed from if that is one thing.
            roots = dict.fromkeys(find(maker) for maker in makers)
            many = [root for root in roots if root in large]
            for root in roots:
                if root not in large or len(many) == 1:
                    parent[find(op)] = find(root)
            large.update(find(root) for root in many if find(op) is find(root))
            continue
        for maker in makers:
            if not _is_scalar(maker) and not _folds_to_scalar(maker):
                parent[find(op)] = find(maker)
        large.add(find(op))
    return {op: find(op) for op in ops}


def _widest(op: Operation) -> list[Tensor]:
    """Return the inputs that are as large as anything that an operation works on."""
    sizes = {tensor: prod(shape_of(tensor)) for tensor in (*data_inputs(op), *op.outputs)}
    most = max(sizes.values())
    return [tensor for tensor in data_inputs(op) if sizes[tensor] == most]


def _is_scalar(op: Operation) -> bool:
    tensors = (*data_inputs(op), *op.outputs)
    return all(prod(shape_of(t)) == 1 for t in tensors)


def _folds_to_scalar(op: Operation) -> bool:
    return all(prod(shape_of(t)) == 1 for t in op.outputs)


def _kernel(
    claims: Claims, region: Region, settings: CompileSettings, name: str, known: Known
) -> FusedKernel | None:
    """Return the kernel of operations, without those that would only copy; None if not worth it."""
    ops = _trimmed(claims, region.ops)
    if not _worth(ops):
        return None
    reads = _reads_of_updated(claims, ops)
    for attempt in ([*reads, *ops], ops, [op for op in ops if op.type not in UPDATES]):
        wanted = [t for op in attempt for t in op.outputs if claims.needed_outside(t, attempt)]
        try:
            structure = structure_of(attempt, wanted)
            if structure.key in known:
                return repeated(*known[structure.key], attempt, structure, name)
            builder = region.builder if attempt == region.ops else built(attempt)
            kernel = FusedKernel(attempt, builder, wanted, settings.threads, name)
            known[structure.key] = (kernel, structure.tensors)
            return kernel
        except Unfit:
            # Variables that cannot be updated in this order are left to others.
            continue
        except Exception as error:
            # A fault in here costs the kernel, not the step.
            give_up((op.type for op in attempt), error, settings.verify)
            break
    return None


def _reads_of_updated(claims: Claims, ops: list[Operation]) -> list[Operation]:
    """Return reads of variables that nobody else needs and nobody else could change before.

    Such a value is read where it is updated: nobody holds it, so that it need not be copied.
    """
    inside = set(ops)
    found = []
    for op in ops:
        if op.type not in UPDATES:
            continue
        users = claims.users(op.inputs[0])
        reads = [user for user in users if user.type == "ReadVariable"]
        if len(reads) + 1 < len(users) or not all(map(claims.free, reads)):
            continue
        for read in reads:
            alone = inside.issuperset(claims.users(read.outputs[0]))
            wanted = read.outputs[0] in claims.results
            if alone and not wanted and inside.isdisjoint(read.control_inputs):
                found.append(read)
    return found


def _trimmed(claims: Claims, ops: list[Operation]) -> list[Operation]:
    """Leave out views that others need: they cost nothing where they are."""
    kept = list(ops)
    while True:
        inside = set(kept)
        made = {t for op in kept for t in op.outputs}
        left = [
            op for op in kept if not is_view(op) or not _left_out(claims, op, kept, inside, made)
        ]
        if len(left) == len(kept):
            return kept
        kept = left


def _left_out(
    claims: Claims,
    op: Operation,
    ops: list[Operation],
    inside: set[Operation],
    made: set[Tensor],
) -> bool:
    used = any(user in inside for t in op.outputs for user in claims.users(t))
    if not used:
        return True
    outside = any(claims.needed_outside(t, ops) for t in op.outputs)
    return outside and not any(t in made for t in data_inputs(op))


def _worth(ops: Sequence[Operation]) -> bool:
    real = [op for op in ops if not is_view(op) and op.type not in ("Fill", "Cast")]
    if len(real) != 1:
        return len(real) > 1
    op = real[0]
    if op.type == "AssignVariable" or op.type == "Concat":
        return False
    size = max(prod(shape_of(t)) for t in (*data_inputs(op), *op.outputs))
    return op.type in _SLOW_ALONE or folds(op) or size >= _MANY
