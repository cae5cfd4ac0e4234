"""The walk back from the ys to the xs.

A graph lists each operation after all that it depends on, so that its order replaces recursion
and the counting of pending uses: read backwards, it meets an operation after all its users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from headrace.errors import DTypeError, GraphError, HeadraceError, ShapeError
from headrace.extend import IndexedSlices, Operation, Tensor, TensorSpec
from headrace.graph.convert import convert_to_tensor
from headrace.ops.control import tuple_
from headrace_autodiff.accumulate import Grad, accumulated, dense
from headrace_autodiff.liveness import Liveness
from headrace_autodiff.lookup import rule_of, stops

# Gradients that are row-sparse pass through these as they are; other rules get them dense.
_TAKES_ROWS = frozenset({"Identity", "ReadVariable"})

# The scopes for what is built on behalf of an operation.
Scopes = Callable[[Operation], AbstractContextManager[Any]]


class Walk:
    """One differentiation: which operations lie between xs and ys, and what has reached them."""

    def __init__(
        self, ys: Sequence[Tensor], xs: Sequence[Tensor], stop: Iterable[Tensor], scopes: Scopes
    ) -> None:
        self._stop = frozenset(stop)
        self._scopes = scopes
        order = _ancestors(ys)
        self.liveness = Liveness(order)
        self._reached, self._between = self._dependents(order, xs)
        self._partials: dict[Tensor, list[Tensor | IndexedSlices]] = {}
        self._sums: dict[Tensor, Grad] = {}

    def _dependents(
        self, order: Sequence[Operation], xs: Sequence[Tensor]
    ) -> tuple[set[Tensor], list[Operation]]:
        """Return what depends differentiably on the xs: tensors, and the operations in between."""
        reached = {x for x in xs if value_spec(x).dtype.is_differentiable}
        between = []
        for op in order:
            if any(t in reached for t in op.inputs) and not stops(op):
                between.append(op)
                reached.update(
                    t
                    for t in op.outputs
                    if value_spec(t).dtype.is_differentiable and t not in self._stop
                )
        return reached, between

    def start(self, y: Tensor, grad: Tensor | IndexedSlices) -> None:
        """Let a gradient arrive at a tensor."""
        if y in self._reached:
            self._partials.setdefault(y, []).append(grad)

    def run(self, gate: bool = False) -> None:
        """Carry the gradients back as far as they go.

        Args:
            gate: Let no gradient of an operation's inputs be used before all are there.
        """
        for op in reversed(self._between):
            if any(t in self._partials and t not in self._stop for t in op.outputs):
                with self._scopes(op):
                    self._pass(op, gate)

    def _pass(self, op: Operation, gate: bool) -> None:
        grads = [None if t in self._stop else self.gradient(t) for t in op.outputs]
        if op.type not in _TAKES_ROWS:
            grads = [dense(g) for g in grads]
        rule = rule_of(op)
        try:
            found = _checked(op, rule(op, *grads))
        except HeadraceError as error:
            error.add_note(f"  while differentiating {op.type} {op.name!r}, made at {op.site}")
            raise
        if gate:
            found = _gated(found)
        for tensor, grad in zip(op.inputs, found, strict=True):
            if grad is not None and tensor in self._reached:
                self.start(tensor, self._fitted(grad, tensor, op))

    def _fitted(self, grad: Tensor | IndexedSlices, tensor: Tensor, op: Operation) -> Any:
        """Return a gradient made for an operation, alive whenever its input ``tensor`` is."""
        have, want = self.liveness.of_operation(op), self.liveness.of(tensor)
        if have == want:
            return grad
        whole = convert_to_tensor(grad)
        if have - want:
            whole = self.liveness.widened(whole, tensor, have - want)
        return self.liveness.confined(whole, want - have)

    def gradient(self, tensor: Tensor) -> Grad:
        """Return the sum of what has arrived at a tensor, None if nothing has."""
        if tensor not in self._sums:
            self._sums[tensor] = accumulated(self._partials.get(tensor, ()))
        return self._sums[tensor]


def value_spec(tensor: Tensor) -> TensorSpec:
    """Return the spec of a tensor's gradient: its own or, for a handle, that of its content."""
    return tensor.spec if tensor.spec.content is None else tensor.spec.content


def _ancestors(ys: Iterable[Tensor]) -> list[Operation]:
    """Return all operations on which tensors depend, in the order of their graph."""
    seen: set[Operation] = set()
    stack = [y.op for y in ys]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(t.op for t in op.inputs)
            stack.extend(op.control_inputs)
    return sorted(seen, key=lambda op: op.index)


def _checked(op: Operation, result: Any) -> list[Grad]:
    """Return what a rule returned as one gradient per input, of the input's dtype and shape."""
    given = list(result) if isinstance(result, list | tuple) else [result]
    if len(given) != len(op.inputs):
        raise GraphError(
            f"the gradient rule of {op.type} returned {len(given)} gradients for "
            f"{len(op.inputs)} inputs; it returns one gradient or None for each"
        )
    return [_checked_one(op, t, g) for t, g in zip(op.inputs, given, strict=True)]


def _checked_one(op: Operation, tensor: Tensor, grad: Any) -> Grad:
    spec = value_spec(tensor)
    if grad is None or not spec.dtype.is_differentiable:
        return None
    if tensor.dtype.kind == "list":
        if not isinstance(grad, Tensor) or grad.dtype != tensor.dtype:
            raise DTypeError(
                f"the gradient rule of {op.type} returned {grad!r} for the list {tensor.name}"
            )
        return grad
    if isinstance(grad, IndexedSlices):
        if grad.dtype != spec.dtype:
            raise _wrong_dtype(op, tensor, grad)
        return grad
    found = convert_to_tensor(grad, preferred_dtype=spec.dtype)
    if found.dtype != spec.dtype:
        raise _wrong_dtype(op, tensor, found)
    if not found.shape.is_compatible_with(spec.shape):
        raise ShapeError(
            f"the gradient rule of {op.type} returned shape {found.shape} for the input "
            f"{tensor.name} of shape {spec.shape}"
        )
    return found


def _wrong_dtype(op: Operation, tensor: Tensor, grad: Tensor | IndexedSlices) -> DTypeError:
    return DTypeError(
        f"the gradient rule of {op.type} returned {grad.dtype} for the input {tensor.name} of "
        f"{value_spec(tensor)}"
    )


def _gated(grads: Sequence[Grad]) -> list[Grad]:
    """Return the gradients as tensors that are there only once all of them are."""
    present = [g for g in grads if g is not None]
    if len(present) < 2:
        return list(grads)
    gated = iter(tuple_([g.values if isinstance(g, IndexedSlices) else g for g in present]))
    return [
        None
        if g is None
        else IndexedSlices(next(gated), g.indices, g.dense_shape)
        if isinstance(g, IndexedSlices)
        else next(gated)
        for g in grads
    ]
