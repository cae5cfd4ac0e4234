"""Static values: what follows from constants before a step runs, computed within limits.

While a graph is built, shapes depend on such values; before a step runs, what depends on constants
alone is computed ahead. Either way somebody else's document may hold constants that double from
operation to operation, or that a million operations compute: beyond the limits a value is unknown,
and the step computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np

from headrace.errors import HeadraceError
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec, constant_spec
from headrace.graph.tensor import Tensor
from headrace.records import dataclass

_NDArray = np.ndarray[Any, np.dtype[Any]]

# Computes an operation's outputs from its inputs on the host; None where it cannot.
Compute = Callable[[Operation, Sequence[_NDArray]], Sequence[Any] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """What computing ahead may cost.

    Attributes:
        elements: Of one value that is computed.
        total: Elements of all values that are read and computed.
        operations: Operations that are looked at.
    """

    elements: int
    total: int
    operations: int


@final
class StaticValues:
    """Computes operations on constants until its limits are reached."""

    def __init__(
        self, compute: Compute, limits: Limits, source: Callable[[Tensor], Tensor] | None = None
    ) -> None:
        """Start with nothing spent.

        Args:
            compute: Computes one operation.
            limits: What may be spent.
            source: Returns the tensor that has the value of another one; each has its own if None.
        """
        self._compute = compute
        self._source = source
        self._elements = limits.elements
        self._total = limits.total
        self._operations = limits.operations
        self._known: dict[Operation, list[_NDArray] | None] = {}

    def stated(self, specs: Sequence[TensorSpec]) -> list[_NDArray] | None:
        """Return the values of outputs as their specs state them, None where one does not."""
        values = [_frozen(np.asarray(spec.value)) for spec in specs if spec.value is not None]
        return values if specs and len(values) == len(specs) else None

    def outputs(
        self,
        op: Operation,
        given: Sequence[_NDArray],
        specs: Sequence[TensorSpec],
        elements: int | None = None,
    ) -> list[_NDArray] | None:
        """Return the values of an operation's outputs, which nobody may change.

        Args:
            op: The operation; a pure one.
            given: The values of its inputs, flat.
            specs: What is known of its outputs.
            elements: How many elements an output may have, where fewer than the limit.

        Returns:
            The values; None where they cannot be computed, are not what ``specs`` say, or cost more
            than the limits allow.
        """
        most = self._elements if elements is None else min(elements, self._elements)
        read = sum(value.size for value in given)
        sizes = _sizes(op, given, specs)
        if sizes is None or any((read if n is None else n) > most for n in sizes):
            return None
        made = sum(most if n is None else n for n in sizes)
        if self._operations <= 0 or read + made > self._total:
            return None
        self._operations -= 1
        self._total -= read + made
        found = self._compute(op, given)
        if found is None:
            return None
        values = [_frozen(np.asarray(value)) for value in found]
        fits = all(
            spec.dtype.numpy == value.dtype
            and spec.shape.is_compatible_with(value.shape)
            and value.size <= most
            for spec, value in zip(specs, values, strict=True)
        )
        return values if fits else None

    def value(self, tensor: Tensor, looks_at: Callable[[Operation], bool]) -> _NDArray | None:
        """Return the value of a tensor, going back from it to the constants it depends on.

        Args:
            tensor: The tensor.
            looks_at: Whether an operation may be computed; others are as good as unknown.
        """
        if tensor.spec.value is not None:
            return tensor.spec.value
        path = [tensor.op]
        while path:
            op = path[-1]
            if op not in self._known:
                if not looks_at(op) or self._operations <= 0 or self._too_large(op):
                    self._known[op] = None
                else:
                    waiting = self._step(op)
                    if waiting is not None:
                        path.append(waiting)
                        continue
            path.pop()
        values = self._known[tensor.op]
        return None if values is None else values[tensor.index]

    def _too_large(self, op: Operation) -> bool:
        sizes = [t.spec.shape.num_elements() for t in op.outputs]
        return any(n is None or n > self._elements for n in sizes)

    def _step(self, op: Operation) -> Operation | None:
        """Compute an operation whose inputs are known; return one to compute before it."""
        given: list[_NDArray] = []
        sources = op.inputs if self._source is None else map(self._source, op.inputs)
        for source in sources:
            if source.spec.value is not None:
                given.append(source.spec.value)
                continue
            if source.op not in self._known:
                self._operations -= 1
                return source.op
            values = self._known[source.op]
            if values is None:
                self._known[op] = None
                return None
            given.append(values[source.index])
        large = any(value.size > self._elements or value.dtype == object for value in given)
        specs = [t.spec for t in op.outputs]
        self._known[op] = None if large else self.outputs(op, given, specs)
        return None


def _sizes(
    op: Operation, given: Sequence[_NDArray], specs: Sequence[TensorSpec]
) -> list[int | None] | None:
    """Return the sizes of outputs, None for those that data decide; None if inputs do not fit."""
    sizes = [spec.shape.num_elements() for spec in specs]
    if None not in sizes:
        return sizes
    # The values of the inputs may tell: a shape that was computed is as good as a constant.
    inputs = [constant_spec(value, t.dtype) for value, t in zip(given, op.inputs, strict=True)]
    try:
        inferred, _ = op.schema.output_specs(inputs, op.arity, op.attrs)
    except HeadraceError:
        return None
    return [spec.shape.num_elements() for spec in inferred]


def _frozen(value: _NDArray) -> _NDArray:
    array = value if value.flags.c_contiguous and value.base is None else np.array(value)
    array.flags.writeable = False
    return array


# Axes, shapes and counts are small, and little arithmetic leads to them; more is data, which a
# step computes.
_LIMITS = Limits(elements=1 << 10, total=1 << 16, operations=1 << 9)


def static_value(tensor: Tensor) -> _NDArray | None:
    """Return the value of an integer tensor that depends on constants and static shapes alone.

    None where it is known in a step only, or takes more than a little integer arithmetic.
    """
    tensor = _captured(tensor)
    if tensor.spec.value is not None:
        return tensor.spec.value
    # Most tensors are not: nothing is set up for those.
    if not _may_be(tensor.op):
        return None
    return StaticValues(_computed, _LIMITS, _captured).value(tensor, _may_be)


def _captured(tensor: Tensor) -> Tensor:
    """Return what a parameter of a function stands for, where that is a tensor around it."""
    while tensor.op.type == "Parameter":
        # What was cut out of a function to be run has parameters, too, and tells nothing of them.
        source = getattr(tensor.op.graph, "source", None)
        outer = None if source is None else source(tensor)
        if outer is None:
            break
        tensor = outer
    return tensor


def _may_be(op: Operation) -> bool:
    """Whether an operation computes one integer array, and says how."""
    return op.schema.early is not None and len(op.outputs) == 1 and op.outputs[0].dtype.is_integer


def _computed(op: Operation, given: Sequence[_NDArray]) -> list[_NDArray] | None:
    assert op.schema.early is not None
    try:
        with np.errstate(all="raise"):
            found = op.schema.early(*given, **op.attrs)
    except Exception:
        # The step will say what is wrong with it.
        return None
    return None if found is None else [np.asarray(found).astype(op.outputs[0].dtype.numpy)]
