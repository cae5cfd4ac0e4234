"""In which steps a tensor is alive, where switches decide, and how to fit a gradient to it.

A tensor behind a switch is alive if the predicate has a certain value. That is a *condition*; a
tensor has all the conditions of the tensors it is computed from, until a merge brings branches
together. The gradient of a tensor must be alive exactly when the tensor is: a missing gradient
would make sums dead, and one too many would reach a merge that has a living input already.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace import (
    Operation,
    Tensor,
    constant,
    int32,
    merge,
    shape,
    subtract,
    switch,
    zeros,
    zeros_like,
)
from headrace.extend.primitives import (
    list_add,
    list_length,
    list_pop,
    list_set,
    list_zeros_like,
    read_variable,
)

Condition = tuple[Tensor, int]
Conditions = frozenset[Condition]

ALWAYS: Conditions = frozenset()


class Liveness:
    """The conditions of tensors and operations of a graph."""

    def __init__(self, order: Sequence[Operation]) -> None:
        """Analyse operations that are listed after all that they depend on."""
        self._tensors: dict[Tensor, Conditions] = {}
        self._operations: dict[Operation, Conditions] = {}
        if any(op.type == "Switch" for op in order):
            for op in order:
                self._analyse(op)

    def _analyse(self, op: Operation) -> None:
        inputs = [self.of(t) for t in op.inputs]
        if op.type == "Merge":
            # Alive if one of the inputs is, whatever became of the operations it waits for.
            conditions = inputs[0].intersection(*inputs[1:])
        else:
            waited = [self.of_operation(c) for c in op.control_inputs]
            conditions = ALWAYS.union(*inputs, *waited)
        if op.type == "Switch":
            for branch, output in enumerate(op.outputs):
                self._tensors[output] = conditions | {(op.inputs[1], branch)}
        elif conditions:
            self._tensors.update(dict.fromkeys(op.outputs, conditions))
        if conditions:
            self._operations[op] = conditions

    def of(self, tensor: Tensor) -> Conditions:
        """Return the conditions under which a tensor is alive."""
        return self._tensors.get(tensor, ALWAYS)

    def of_operation(self, op: Operation) -> Conditions:
        """Return the conditions under which an operation runs."""
        return self._operations.get(op, ALWAYS)

    def confined(self, grad: Tensor, conditions: Conditions) -> Tensor:
        """Return ``grad``, alive only under further conditions."""
        for predicate, branch in self._outermost_first(conditions):
            grad = switch(grad, predicate)[branch]
        return grad

    def widened(self, grad: Tensor, like: Tensor, conditions: Conditions) -> Tensor:
        """Return ``grad``, and zeros in the steps in which only its conditions are not met.

        Args:
            grad: A gradient of ``like``.
            like: A tensor that is alive without the conditions.
            conditions: What ``grad`` needs and ``like`` does not.
        """
        inner = zeros_for(like)
        choices = [grad]
        for predicate, branch in self._outermost_first(conditions):
            sides = switch(inner, predicate)
            choices.append(sides[1 - branch])
            inner = sides[branch]
        return merge(choices)[0]

    def _outermost_first(self, conditions: Iterable[Condition]) -> list[Condition]:
        """Order conditions so that each predicate comes after those that it depends on."""
        return sorted(conditions, key=lambda c: (len(self.of(c[0])), c[0].op.index, c[1]))


def zeros_for(tensor: Tensor) -> Tensor:
    """Return zeros of the shape of a tensor or, for a handle, of its content."""
    content = tensor.spec.content
    if tensor.dtype.kind == "list":
        return list_zeros_like(tensor)
    if content is None:
        return zeros_like(tensor)
    if content.shape.is_fully_defined():
        return zeros(list(content.shape.known), content.dtype)
    return zeros_like(read_variable(tensor))


def dense_shape_of(tensor: Tensor) -> Tensor:
    """Return the shape of a tensor or, for a handle, of its content, as a vector."""
    content = tensor.spec.content
    if content is None:
        known = tensor.shape.is_fully_defined()
        return constant(list(tensor.shape.known), int32) if known else shape(tensor)
    if content.shape.is_fully_defined():
        return constant(list(content.shape.known), int32)
    return shape(read_variable(tensor))


def zeros_shape_of(tensor: Tensor) -> Tensor | None:
    """Return the shape of zeros that stand for a missing item like ``tensor``; lists need none."""
    return None if tensor.dtype.kind == "list" else dense_shape_of(tensor)


def popped_gradient(grads: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """Take the last item, the gradient of ``like``, off a list; zeros where it is missing."""
    if like.dtype.kind == "list":
        # Zeros of a list are a list as long, which no shape says: they are added, not read.
        last = subtract(list_length(grads), 1)
        grads = list_add(grads, list_set(list_zeros_like(grads), last, list_zeros_like(like)))
    rest, item = list_pop(grads, zeros_shape_of(like))
    return rest, item
