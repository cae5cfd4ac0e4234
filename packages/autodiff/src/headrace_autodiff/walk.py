"""The walk back from the ys to the xs.

A graph lists each operation after all that it depends on, so that its order replaces recursion
and the counting of pending uses: read backwards, it meets an operation after all its users.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import cached_property
from typing import Any

from headrace import Graph, IndexedSlices, Operation, Tensor, convert_to_tensor
from headrace.errors import (
    DTypeError,
    GraphError,
    HeadraceError,
    PluginError,
    ShapeError,
    shown,
)
from headrace.extend.graphs import Function
from headrace.extend.ops import TensorSpec
from headrace.extend.primitives import tuple_
from headrace_autodiff.accumulate import Grad, accumulated, dense
from headrace_autodiff.liveness import Liveness
from headrace_autodiff.lookup import origin_of, rule_of, stops, takes_rows

# Whether what is differentiated depends on a tensor in any way, also where no gradient flows; for
# the rule at hand.
DEPENDED_ON: ContextVar[Callable[[Tensor], bool]] = ContextVar("headrace_depended_on")

# The scopes for what is built on behalf of an operation.
Scopes = Callable[[Operation], AbstractContextManager[Any]]
# From a tensor and what has arrived at it to the sum of that.
Sums = Callable[[Tensor, Sequence[Tensor | IndexedSlices]], Grad]
# From an operation and the gradients of its outputs to those of its inputs.
Differentiate = Callable[[Operation, Sequence[Grad]], Sequence[Grad]]


class Walk:
    """One differentiation: which operations lie between xs and ys, and what has reached them."""

    def __init__(
        self,
        ys: Sequence[Tensor],
        xs: Sequence[Tensor],
        stop: Iterable[Tensor],
        scopes: Scopes,
        differentiate: Differentiate | None = None,
        across: bool = False,
        sums: Sums | None = None,
    ) -> None:
        """Find what lies in between.

        Args:
            ys: What to differentiate.
            xs: With respect to what.
            stop: Tensors to be taken as constant.
            scopes: The scopes for what is built on behalf of an operation.
            differentiate: Differentiates one operation; ``by_rule`` if None.
            across: Go on from what a function captured to the graphs around it.
            sums: Adds up what has arrived at a tensor; where it happens to be, if None.
        """
        self._add_up = sums
        self._stop = frozenset(stop)
        self._scopes = scopes
        self._differentiate = by_rule if differentiate is None else differentiate
        self._across = across
        self._ys = ys
        self._order = order = ancestors(ys, self._inputs)
        self.liveness = Liveness(order)
        self._reached, self._between = self._dependents(order, xs)
        self._partials: dict[Tensor, list[Tensor | IndexedSlices]] = {}
        self._sums: dict[Tensor, Grad] = {}

    @cached_property
    def _depended_on(self) -> set[Tensor]:
        """All tensors on which the ys depend, and they themselves."""
        return {*self._ys, *(t for op in self._order for t in self._inputs(op))}

    def _inputs(self, op: Operation) -> Sequence[Tensor]:
        """Return what an operation takes: for a captured tensor what stands for it outside."""
        captured = captured_by(op) if self._across else None
        return op.inputs if captured is None else (captured,)

    def _dependents(
        self, order: Sequence[Operation], xs: Sequence[Tensor]
    ) -> tuple[set[Tensor], list[Operation]]:
        """Return what depends differentiably on the xs: tensors, and the operations in between."""
        reached = {x for x in xs if value_spec(x).dtype.is_differentiable}
        between = []
        for op in order:
            inputs = self._inputs(op)
            if any(t in reached for t in inputs) and (inputs is not op.inputs or not stops(op)):
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
        inputs = self._inputs(op)
        sparse = any(isinstance(g, IndexedSlices) for g in grads)
        if sparse and inputs is op.inputs and not takes_rows(op):
            grads = [dense(g) for g in grads]
        token = DEPENDED_ON.set(lambda tensor: tensor in self._depended_on)
        try:
            found = self._differentiate(op, grads) if inputs is op.inputs else grads
        finally:
            DEPENDED_ON.reset(token)
        if gate:
            found = _gated(found)
        for tensor, grad in zip(inputs, found, strict=True):
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

    def flat(self) -> set[Tensor]:
        """Return what the ys depend on by where rectifiers bend, or windows have their maximum.

        Where nothing else leads to them, their derivatives are 0 rather than missing.
        """
        graphs = {op.graph for op in self._order}
        if not any(graph.piecewise_constant for graph in graphs):
            return set()
        live, found = set(self._ys), set()
        for op in reversed(self._order):
            bends = any(t in found for t in op.outputs)
            if stops(op) or not (bends or any(t in live for t in op.outputs)):
                continue
            inputs = {t for t in op.inputs if value_spec(t).dtype.is_differentiable} - self._stop
            if op.index in op.graph.piecewise_constant:
                # Of a choice what the condition compares, of a maximum the images.
                found.add(op.inputs[0].op.inputs[0] if op.type == "Select" else op.inputs[0])
            (found if bends else live).update(inputs)
        return found - self._stop

    def gradient(self, tensor: Tensor) -> Grad:
        """Return the sum of what has arrived at a tensor, None if nothing has."""
        if tensor not in self._sums:
            parts = self._partials.get(tensor, ())
            add_up = self._add_up
            self._sums[tensor] = accumulated(parts) if add_up is None else add_up(tensor, parts)
        return self._sums[tensor]


def value_spec(tensor: Tensor) -> TensorSpec:
    """Return the spec of a tensor's gradient: its own or, for a handle, that of its content."""
    return tensor.spec if tensor.spec.content is None else tensor.spec.content


def captured_by(op: Operation) -> Tensor | None:
    """Return the tensor of the graph around that a parameter of a function is, None otherwise."""
    if op.type != "Parameter" or not isinstance(op.graph, Function):
        return None
    return next((t for t, p in op.graph.captures.items() if p.op is op), None)


def _depth(graph: Graph) -> int:
    return 1 + _depth(graph.outer) if isinstance(graph, Function) else 0


def ancestors(
    ys: Iterable[Tensor], inputs: Callable[[Operation], Sequence[Tensor]] = lambda op: op.inputs
) -> list[Operation]:
    """Return all operations on which tensors depend, each after what it depends on.

    Args:
        ys: The tensors.
        inputs: Tells what an operation takes.
    """
    seen: set[Operation] = set()
    stack = [y.op for y in ys]
    while stack:
        op = stack.pop()
        if op not in seen:
            seen.add(op)
            stack.extend(t.op for t in inputs(op))
            stack.extend(op.control_inputs)
    depths = {graph: _depth(graph) for graph in {op.graph for op in seen}}
    return sorted(seen, key=lambda op: (depths[op.graph], op.index))


def by_rule(op: Operation, grads: Sequence[Grad]) -> list[Grad]:
    """Return the gradients of an operation's inputs, as its rule makes them.

    Raises:
        NoGradientError: if it has none.
        HeadraceError: what the rule raises; with the plugin and the line, where one brings it.
        PluginError: if the rule of a plugin raises anything else.
    """
    rule = rule_of(op)
    try:
        result = rule(op, *grads)
    except Exception as error:
        made = _made_at(op)
        whose = origin_of(op, rule, error)
        if whose and not isinstance(error, HeadraceError):
            what = f"the gradient rule of {op.type} failed: {type(error).__name__}: {error}"
            raise PluginError(f"{what}\n  {whose}\n{made}") from error
        for note in filter(None, (f"  {whose}" if whose else "", made)):
            error.add_note(note)
        raise
    try:
        return _checked(op, result)
    except HeadraceError as error:
        whose = origin_of(op, rule, PluginError())
        made = _made_at(op)
        named = type(error)(f"{error}\n  {whose}\n{made}" if whose else str(error))
        if not whose:
            named.add_note(made)
        raise named from None


def _made_at(op: Operation) -> str:
    return f"  while differentiating {op.type} {op.name!r}, made at {op.site}"


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
                f"the gradient rule of {op.type} returned {shown(grad)} for the list {tensor.name}"
            )
        return grad
    if isinstance(grad, IndexedSlices):
        if grad.dtype != spec.dtype:
            raise _wrong_dtype(op, tensor, grad)
        rows = grad.values.spec.shape
        if rows.rank and spec.shape.rank and not rows[1:].is_compatible_with(spec.shape[1:]):
            raise _wrong_shape(op, tensor, f"rows of shape {rows[1:]}")
        return grad
    try:
        found = convert_to_tensor(grad, preferred_dtype=spec.dtype)
    except HeadraceError as error:
        raise DTypeError(
            f"the gradient rule of {op.type} returned {shown(grad)} for the input {tensor.name}, "
            "which is no tensor; it returns a tensor, IndexedSlices or None for each input"
        ) from error
    if found.dtype != spec.dtype:
        raise _wrong_dtype(op, tensor, found)
    if found.spec.shape.dims != spec.shape.dims:
        if not found.spec.shape.is_compatible_with(spec.shape):
            raise _wrong_shape(op, tensor, f"shape {found.spec.shape}")
        found.set_shape(spec.shape)
    return found


def _wrong_shape(op: Operation, tensor: Tensor, returned: str) -> ShapeError:
    return ShapeError(
        f"the gradient rule of {op.type} returned {returned} for the input {tensor.name} of shape "
        f"{value_spec(tensor).shape}"
    )


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
