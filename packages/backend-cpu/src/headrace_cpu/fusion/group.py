"""Grouping: which operations become one kernel.

Operations get *levels*: what must wait for an operation that is not fused, or for a control edge,
is on a higher level than what that waits for. On one level, operations that share dimensions are
put together. A level never waits for a higher one, and within a level the groups are numbered so
that none waits for one of a higher number: so no two kernels wait for each other.
"""

from __future__ import annotations

import contextlib
import functools
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from math import prod
from typing import Protocol

from headrace import Operation, Tensor
from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.fusion_group import FusionGroup, built, is_view, reduces
from headrace_cpu.fusion.interpret import data_inputs, passes
from headrace_cpu.fusion.kernel import FusedKernel
from headrace_cpu.fusion.levels import Levels
from headrace_cpu.fusion.nodes import shape_of
from headrace_cpu.fusion.repeats import Structure, repeated, structure_of
from headrace_cpu.fusion.viewing import UPDATE_RULES
from headrace_cpu.native.compiler import give_up
from headrace_cpu.native_loops.transpose import moves_elements
from headrace_cpu.program.implementation import Implementation
from headrace_cpu.program.matches import Matches
from headrace_cpu.program.settings import CompileSettings

# What NumPy does slowly: worth a kernel by itself.
_SLOW_ALONE = frozenset({"Select", "OneHot"})
# Pieces of so many elements in all are worth a kernel that moves them.
_SEVERAL = 1 << 11
# So many kernels may differ in nothing but the numbers in them; further ones read theirs from
# memory, and are one: compiling takes about 50 ms for each.
_MOST_ALIKE = 16
# NumPy calls a function for each piece of neighbors that it moves: a kernel is quicker where they
# are no longer than this.
_PIECE_BYTES = 64
# Elements from which on one elementwise operation is worth a kernel.
_MANY = 1 << 14


class KernelMaker(Protocol):
    """Makes the kernels of groups."""

    def kernel(
        self,
        ops: Sequence[Operation],
        builder: Callable[[], Builder],
        wanted: Sequence[Tensor],
        settings: CompileSettings,
        name: str,
    ) -> Implementation:
        """Return the kernel of operations.

        Args:
            ops: The operations.
            builder: Returns their nodes.
            wanted: Which of their outputs others read.
            settings: What it goes by.
            name: What it is called.

        Raises:
            Unfit: if no kernel computes them together.
        """


def match_fused(
    matches: Matches, settings: CompileSettings, maker: KernelMaker | None = None
) -> None:
    """Let fused kernels compute what is left of a region, where that is worth it.

    Args:
        matches: The region; gets the instructions.
        settings: What the session asks for.
        maker: Makes the kernels; those of the CPU if None.
    """
    # In the rounds of a loop a call of Python costs more than the order of what is read, and on a
    # GPU every call does.
    levels = Levels(matches, turns=maker is None and not settings.keen)
    known = _Known() if maker is None else maker
    number = 0
    for ops in levels.fused():
        try:
            groups = _groups(ops, levels)
        except Exception as error:
            give_up((op.type for op in ops), error, settings.verify)
            continue
        for group in groups:
            kernel = _kernel(matches, group, settings, f"fused_{number}", known)
            if kernel is not None and matches.add(kernel):
                number += 1


class _Known:
    """The kernels that a region has so far.

    Attributes:
        kernels: Kernels, and the tensors of their structures, by structure.
    """

    def __init__(self) -> None:
        self.kernels: dict[Hashable, tuple[FusedKernel, tuple[Tensor, ...]]] = {}
        self._alike: Counter[Hashable] = Counter()

    def kernel(
        self,
        ops: Sequence[Operation],
        builder: Callable[[], Builder],
        wanted: Sequence[Tensor],
        settings: CompileSettings,
        name: str,
    ) -> FusedKernel:
        """Return the kernel of operations.

        Args:
            ops: The operations.
            builder: Returns their nodes.
            wanted: Which of their outputs others read.
            settings: What it goes by.
            name: What it is called.

        Raises:
            Unfit: if no kernel computes them together.
        """
        structure = structure_of(ops, wanted)
        if structure.key in self.kernels:
            return repeated(*self.kernels[structure.key], ops, structure, name)
        loose = structure_of(ops, wanted, literal=False)
        self._alike[loose.key] += 1
        if self._alike[loose.key] > _MOST_ALIKE:
            with contextlib.suppress(Unfit):
                if loose.key in self.kernels:
                    return repeated(*self.kernels[loose.key], ops, loose, name)
                nodes = built(ops, literal=False)
                return self._made(loose, ops, nodes, wanted, settings, name)
        return self._made(structure, ops, builder(), wanted, settings, name)

    def _made(
        self,
        structure: Structure,
        ops: Sequence[Operation],
        nodes: Builder,
        wanted: Sequence[Tensor],
        settings: CompileSettings,
        name: str,
    ) -> FusedKernel:
        kernel = FusedKernel(ops, nodes, wanted, settings.threads, name)
        self.kernels[structure.key] = (kernel, structure.tensors)
        return kernel


def _groups(ops: Sequence[Operation], levels: Levels) -> list[FusionGroup]:
    """Return the groups of one level."""
    component = _components(ops)
    here = set(ops)

    def held(tensor: Tensor) -> int:
        """Return the bytes of what a kernel before makes for one operation of this level."""
        maker, matches = tensor.op, levels.matches
        if maker not in matches or maker in here or maker.schema.stateful:
            return 0
        alone = len(matches.users(tensor)) == 1 and tensor not in matches.results
        return prod(shape_of(tensor)) * tensor.dtype.numpy.itemsize if alone else 0

    groups: list[FusionGroup] = []
    place: dict[Operation, int] = {}
    of: dict[Operation, list[int]] = {}
    for op in _scalars_first(_depth_first(ops)):
        least = 0
        for tensor in op.inputs:
            number = place.get(tensor.op, 0)
            if number > least:
                least = number
        mine = of.setdefault(component[op], [])
        # That of its producers, or one of the last: trying all would take long in large graphs.
        first = bisect_left(mine, least)
        tried = mine[first:]
        if len(tried) > 3:
            tried = [tried[0], *tried[-2:]]
        for number in tried:
            if groups[number].add(op):
                place[op] = number
                break
        else:
            group = FusionGroup(held)
            place[op] = len(groups)
            mine.append(len(groups))
            groups.append(group)
            # One that does not fit even alone stays by itself, and is not fused.
            if not group.add(op):
                mine.pop()
    return [group for group in groups if group.ops]


def _depth_first(ops: Sequence[Operation]) -> list[Operation]:
    """Put what one result needs together, in place of what many results need first of all.

    A group has room for so many operations: where many alike are computed side by side, such as the
    updates of variables, each is in one kernel, and what it computes on the way is not stored.
    """
    inside = set(ops)
    read = {t.op for op in ops for t in data_inputs(op)}
    order: dict[Operation, None] = {}
    for last in ops:
        if last in read:
            continue
        stack = [last]
        while stack:
            op = stack[-1]
            before = [t.op for t in data_inputs(op) if t.op in inside and t.op not in order]
            if before and op not in order:
                stack.extend(reversed(before))
            else:
                order[stack.pop()] = None
    return list(order)


def _scalars_first(ops: Sequence[Operation]) -> list[Operation]:
    """Put what is computed of scalars alone in front, in the order in which it was.

    Groups are numbered in the order of their first operations: where a rate that many elements
    share is computed late, what went before would not be in one kernel with what needs the rate.
    """
    late: dict[Operation, None] = {}
    for op in ops:
        if not _is_scalar(op) or any(t.op in late for t in op.inputs):
            late[op] = None
    if len(late) == len(ops):
        return list(ops)
    return [*(op for op in ops if op not in late), *late]


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
    # Which operations are scalar, before what is computed of sums of others joins the large ones.
    scalars = {op for op in ops if op not in large}
    for op in ops:
        given = data_inputs(op)
        if op in large and not all(t.op in parent for t in given):
            # Those that go through the same memory go through it together.
            for tensor in _widest(op):
                if tensor.op not in parent:
                    parent[find(op)] = find(readers.setdefault(tensor, op))
        makers = dict.fromkeys([t.op for t in given if t.op in parent])
        if not makers:
            continue
        if op in scalars:
            # Scalars go together, and with what they are computed from if that is one thing.
            roots = dict.fromkeys(find(maker) for maker in makers)
            many = [root for root in roots if root in large]
            for root in roots:
                if root not in large or len(many) == 1:
                    parent[find(op)] = find(root)
            large.update(find(root) for root in many if find(op) is find(root))
            continue
        for maker in makers:
            if maker not in scalars and not _yields_scalars(maker):
                parent[find(op)] = find(maker)
        large.add(find(op))
    return {op: find(op) for op in ops}


def _widest(op: Operation) -> list[Tensor]:
    """Return the inputs that are as large as anything that an operation works on."""
    sizes = {tensor: prod(shape_of(tensor)) for tensor in (*data_inputs(op), *op.outputs)}
    most = max(sizes.values())
    return [tensor for tensor in data_inputs(op) if sizes[tensor] == most]


def _is_scalar(op: Operation) -> bool:
    if not _yields_scalars(op):
        return False
    return all(prod(shape_of(tensor)) == 1 for tensor in data_inputs(op))


def _yields_scalars(op: Operation) -> bool:
    return all(prod(shape_of(tensor)) == 1 for tensor in op.outputs)


def _kernel(
    matches: Matches, group: FusionGroup, settings: CompileSettings, name: str, known: KernelMaker
) -> Implementation | None:
    """Return the kernel of operations, without those that would only copy; None if not worth it."""
    ops = _trimmed(matches, group.ops, keen=settings.keen)
    if not (_moves(ops) if settings.keen else _worth(ops)):
        return None
    # A read may be what others wait for that this kernel waits for.
    reads = [read for read in _reads_of_updated(matches, ops) if matches.can_join([read, *ops])]
    for attempt in ([*reads, *ops], ops, [op for op in ops if op.type not in UPDATE_RULES]):
        inside = set(attempt)
        wanted = [t for op in attempt for t in op.outputs if matches.needed_outside(t, inside)]
        try:
            nodes = functools.partial(_nodes, group, attempt)
            return known.kernel(attempt, nodes, wanted, settings, name)
        except Unfit:
            # Variables that cannot be updated in this order are left to others.
            continue
        except Exception as error:
            # A fault in here costs the kernel, not the step.
            give_up((op.type for op in attempt), error, settings.verify)
            break
    return None


def _nodes(group: FusionGroup, ops: list[Operation]) -> Builder:
    return group.builder if ops == group.ops else built(ops)


def _reads_of_updated(matches: Matches, ops: list[Operation]) -> list[Operation]:
    """Return reads of variables that nobody else needs and nobody else could change before.

    Such a value is read where it is updated: nobody holds it, so that it need not be copied.
    """
    inside = set(ops)
    found = []
    for op in ops:
        if op.type not in UPDATE_RULES:
            continue
        users = matches.users(op.inputs[0])
        reads = [user for user in users if user.type == "ReadVariable"]
        others = [user for user in users if user.type != "ReadVariable" and user is not op]
        if not all(map(matches.free, reads)) or not all(_comes_after(o, op) for o in others):
            continue
        for read in reads:
            alone = inside.issuperset(matches.users(read.outputs[0]))
            wanted = read.outputs[0] in matches.results
            if alone and not wanted and inside.isdisjoint(read.control_inputs):
                found.append(read)
    return found


def _comes_after(later: Operation, op: Operation) -> bool:
    """Whether an operation waits for another one."""
    seen: set[Operation] = set()
    waiting = [later]
    while waiting:
        for other in (*(t.op for t in waiting[-1].inputs), *waiting.pop().control_inputs):
            if other is op:
                return True
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def _trimmed(matches: Matches, ops: list[Operation], *, keen: bool) -> list[Operation]:
    """Leave out views that others need: they cost nothing where they are.

    Args:
        matches: What the region's operations are used for.
        ops: The operations of a group.
        keen: Whether views whose elements do not follow each other in memory stay, which are
            objects of Python.
    """
    kept = list(ops)
    free = [
        op for op in ops if is_view(op) and (op.schema.view or not keen) and not _turns_pieces(op)
    ]
    while True:
        inside = set(kept)
        made = {t for op in kept for t in op.outputs}
        left = [op for op in kept if op not in free or not _left_out(matches, op, inside, made)]
        if len(left) == len(kept):
            return kept
        kept = left


def _left_out(
    matches: Matches,
    op: Operation,
    inside: set[Operation],
    made: set[Tensor],
) -> bool:
    used = any(user in inside for t in op.outputs for user in matches.users(t))
    if not used:
        return True
    outside = any(matches.needed_outside(t, inside) for t in op.outputs)
    if not outside or any(t in made for t in data_inputs(op)):
        return False
    return not _is_copied(matches, op, inside)


def _is_copied(matches: Matches, op: Operation, inside: set[Operation]) -> bool:
    """Whether kernels outside read parts of rows, which they only can where these are copied."""
    if op.type != "Split":
        return False
    shape = shape_of(op.inputs[0])
    if prod(shape[: op.attrs["axis"] % len(shape)]) == 1:
        return False
    users = [user for t in op.outputs for user in matches.users(t)]
    return any(user in matches and user not in inside for user in users)


def _moves(ops: Sequence[Operation]) -> bool:
    """Whether operations make something that is not where it was."""
    return any(not op.schema.view for op in ops)


def _turns_pieces(op: Operation) -> bool:
    """Whether an operation moves pieces that NumPy would copy one by one."""
    if op.type == "Transpose":
        return moves_elements(op) and prod(shape_of(op.outputs[0])) >= _SEVERAL
    if op.type != "Reverse" or op.inputs[1].spec.value is None:
        return False
    shape, size = shape_of(op.outputs[0]), op.outputs[0].dtype.size
    axes = [int(axis) % len(shape) for axis in op.inputs[1].spec.value]
    piece = prod(shape[max(axes, default=-1) + 1 :])
    return bool(axes) and prod(shape) >= _SEVERAL and piece * size <= _PIECE_BYTES


def _worth(ops: Sequence[Operation]) -> bool:
    real = [op for op in ops if not is_view(op) and op.type not in ("Fill", "Cast")]
    if not real:
        return any(map(_turns_pieces, ops))
    if len(real) != 1 or passes(real[0]) > 1:
        return bool(real)
    op = real[0]
    if op.type == "AssignVariable" or op.type == "Concat":
        return False
    if op.type in _SLOW_ALONE or op.schema.changes or reduces(op) or _is_inexact(op):
        return True
    size = max(prod(shape_of(t)) for t in (*data_inputs(op), *op.outputs))
    return size >= _MANY


def _is_inexact(op: Operation) -> bool:
    """Whether its last bits depend on who computes it: they should not on what is beside it."""
    schema = op.schema
    rounds = any(t.dtype.is_floating or t.dtype.is_complex for t in op.outputs)
    return rounds and schema.elementwise and schema.expression is not None and not schema.exact
