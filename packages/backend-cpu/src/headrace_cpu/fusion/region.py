"""Regions: operations that become one kernel."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace_cpu.fusion.build import Builder, Unfit
from headrace_cpu.fusion.folding import FOLDING, FOLDING_NEEDS
from headrace_cpu.fusion.interpret import data_inputs
from headrace_cpu.fusion.mapping import ELEMENTWISE, NEEDS, elementwise
from headrace_cpu.fusion.nodes import Operand, Write, code_of, contiguous, element_code, shape_of
from headrace_cpu.fusion.viewing import COPIES, READS, UPDATES, VIEWS
from headrace_cpu.fusion.words import ELEMENTARY, MAX_BUFFERS

# Larger regions are split: compiling takes as long as they are large.
_MOST_NODES = 160


def fusible(op: Operation) -> bool:
    """Whether kernels compute an operation; all its shapes are known."""
    if op.type in UPDATES:
        value = op.inputs[1]
        content = op.inputs[0].spec.content
        return (
            content is not None
            and content.shape.dims == value.shape.dims
            and element_code(op.inputs[0]) not in (None, "b8", "u8")
            and _usable(value)
        )
    if op.stateful or not op.outputs:
        return False
    tensors = (*data_inputs(op), *op.outputs)
    if not all(map(_usable, tensors)):
        return False
    if op.type in ELEMENTWISE:
        codes = ELEMENTWISE[op.type][0]
        return code_of(op.inputs[0].dtype) in codes and _has(NEEDS.get(op.type, ()))
    if op.type in FOLDING:
        return _has(FOLDING_NEEDS.get(op.type, ()))
    if op.type in ELEMENTARY:
        return code_of(op.inputs[0].dtype) in ("f32", "f64")
    return op.type == "Cast" or op.type in VIEWS or op.type in COPIES


def _usable(tensor: Tensor) -> bool:
    return (
        code_of(tensor.dtype) is not None
        and tensor.shape.is_fully_defined()
        and 0 not in tensor.shape.known
    )


def _has(functions: Iterable[str]) -> bool:
    return all(name in ELEMENTARY for name in functions)


def is_view(op: Operation) -> bool:
    """Whether an operation only shows memory in another shape."""
    return op.type in VIEWS


def folds(op: Operation) -> bool:
    """Whether an operation folds axes."""
    return op.type in FOLDING


class Region:
    """Operations that become one kernel.

    Attributes:
        ops: In an order in which they can run.
        builder: Their nodes.
    """

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self.builder = Builder()
        self._buffers: set[Tensor] = set()

    def add(self, op: Operation) -> bool:
        """Add an operation, unless that is not possible."""
        if len(self.builder) > _MOST_NODES:
            return False
        outside = {t for t in data_inputs(op) if t not in self.builder.values}
        if len(self._buffers | outside) + len(op.outputs) > MAX_BUFFERS // 2:
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
        return True


def built(ops: Sequence[Operation]) -> Builder:
    """Return the nodes of operations.

    Raises:
        Unfit: if they do not fit together.
    """
    builder = Builder()
    for op in ops:
        _build(builder, op)
    if not builder.domain.consistent:
        raise Unfit("dimensions in contrary orders")
    return builder


def _build(builder: Builder, op: Operation) -> None:
    for table in (VIEWS, COPIES, UPDATES, READS, FOLDING):
        rule = table.get(op.type)
        if rule is not None:
            rule(builder, op)
            return
    elementwise(builder, op)


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
