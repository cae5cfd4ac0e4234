"""Fusion groups: operations that become one kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headrace import Operation, Tensor
from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.division import DIVISION_RULES, whole_divisor
from headrace_cpu.fusion.expressions import add_expression, computed_expression
from headrace_cpu.fusion.interpret import data_inputs
from headrace_cpu.fusion.nodes import Operand, Write, code_of, contiguous, element_code, shape_of
from headrace_cpu.fusion.reduce import PLACES, REDUCTION_RULES, finds_places
from headrace_cpu.fusion.viewing import COPY_RULES, READ_RULES, UPDATE_RULES, VIEW_RULES
from headrace_cpu.native.source import MAX_BUFFERS

# What no expression states; of several rules for an op, the first table's counts.
_RULES = {**REDUCTION_RULES, **READ_RULES, **UPDATE_RULES, **COPY_RULES, **VIEW_RULES}
# Larger groups are split: compiling takes as long as they are large.
_MOST_NODES = 160
# A group that many large tensors wait for, which nobody else reads, keeps all of them in memory
# until the last one is made: it is split where there are so many, of so many bytes.
_MANY_HELD = 4
_MUCH_HELD = 1 << 23


def fusible(op: Operation) -> bool:
    """Whether kernels compute an operation; all its shapes are known."""
    if op.type in UPDATE_RULES:
        value = op.inputs[1]
        content = op.inputs[0].spec.content
        return (
            content is not None
            and content.shape.dims == value.spec.shape.dims
            and element_code(op.inputs[0]) not in (None, "b8", "u8")
            and _usable(value)
        )
    if op.stateful or not op.outputs:
        return False
    for tensor in (*data_inputs(op), *op.outputs):
        if not _usable(tensor):
            return False
    if op.type in PLACES:
        return finds_places(op)
    if op.type in VIEW_RULES or op.type in COPY_RULES or op.type in REDUCTION_RULES:
        return True
    if whole_divisor(op):
        return True
    return computed_expression(op) is not None


def _usable(tensor: Tensor) -> bool:
    spec = tensor.spec
    dims = spec.shape.dims
    if dims is None or None in dims or 0 in dims:
        return False
    return code_of(spec.dtype) is not None


def is_view(op: Operation) -> bool:
    """Whether an operation only shows memory in another shape."""
    return op.type in VIEW_RULES


def reduces(op: Operation) -> bool:
    """Whether an operation reduces axes, or computes with sums and maxima along them."""
    return op.type in REDUCTION_RULES


class FusionGroup:
    """Operations that become one kernel.

    Attributes:
        ops: In an order in which they can run.
        builder: Their nodes.
    """

    def __init__(self, held: Callable[[Tensor], int] = lambda tensor: 0) -> None:
        """Begin with nothing.

        Args:
            held: Returns the bytes of a tensor that is made before and that nobody else reads.
        """
        self.ops: list[Operation] = []
        self.builder = Builder()
        self._buffers: set[Tensor] = set()
        self._held = held
        # What waits for the group in memory: how many tensors, and their bytes.
        self._waiting = self._waiting_bytes = 0

    def add(self, op: Operation) -> bool:
        """Add an operation, unless that is not possible."""
        if len(self.builder) > _MOST_NODES:
            return False
        values, buffers = self.builder.values, self._buffers
        outside = {t for t in data_inputs(op) if t not in values and t not in buffers}
        if len(buffers) + len(outside) + len(op.outputs) > MAX_BUFFERS // 2:
            return False
        waiting = [nbytes for nbytes in map(self._held, outside) if nbytes]
        count, nbytes = self._waiting + len(waiting), self._waiting_bytes + sum(waiting)
        if waiting and self.ops and count > _MANY_HELD and nbytes > _MUCH_HELD:
            return False
        try:
            _build(self.builder, op)
            # What a check refuses must not have changed variables.
            both = self.builder.checks and self.builder.updates
            fits = self.builder.domain.consistent and not both
        except Unfit:
            fits = False
        if not fits:
            # The builder may have united dimensions that are not the same.
            self.builder = built(self.ops)
            return False
        self.ops.append(op)
        self._buffers |= outside
        self._waiting, self._waiting_bytes = count, nbytes
        return True


def built(ops: Sequence[Operation], *, literal: bool = True) -> Builder:
    """Return the nodes of operations.

    Args:
        ops: The operations.
        literal: Whether numbers that are constants stand in the kernel, rather than in memory.

    Raises:
        Unfit: if they do not fit together.
    """
    builder = Builder(literal=literal)
    for op in ops:
        _build(builder, op)
    if not builder.domain.consistent:
        raise Unfit("dimensions in contrary orders")
    return builder


def _build(builder: Builder, op: Operation) -> None:
    rule = _RULES.get(op.type)
    if rule is not None:
        rule(builder, op)
    elif whole_divisor(op):
        DIVISION_RULES[op.type](builder, op)
    else:
        add_expression(builder, op)


def writes_of(builder: Builder, wanted: Sequence[Tensor]) -> list[Write]:
    """Return what stores the wanted tensors and the updated variables."""
    writes: list[Write] = []
    for tensor in wanted:
        parts = builder.parts.get(tensor)
        if parts is not None:
            writes += parts
            continue
        operand = builder.operand(tensor)
        assert isinstance(operand, Operand)
        writes.append(Write(operand, tensor, contiguous(shape_of(tensor))))
    return [*writes, *builder.updates.values()]
