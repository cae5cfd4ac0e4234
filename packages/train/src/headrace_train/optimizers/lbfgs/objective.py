"""A loss as a function of the values of its variables.

A line search asks for the loss at several points within one step. The part of the graph that
depends on the variables is copied for each, with what is read of a variable replaced by other
values. Everything else, such as the data of the step, is computed once and used by all copies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import headrace as hr
from headrace import Operation, Tensor, Variable
from headrace.errors import DTypeError, GraphError, ShapeError
from headrace.extend.graphs import copied

_CONSTANT = frozenset({"Const", "VarHandle"})


@final
class Objective:
    """The loss of a graph, as a function of all its variables as one vector.

    Attributes:
        variables: The variables, in the order of the vector.
        dtype: Their common dtype.
        size: How many numbers they hold together.
        is_fixed: Whether the loss depends on nothing but the variables and constants, so that it
            is the same function in every step.
    """

    def __init__(self, loss: Tensor, variables: Sequence[Variable], owner: str) -> None:
        """Find how the loss depends on the variables.

        Args:
            loss: What to minimize; the sum of its elements where it has several.
            variables: The variables.
            owner: Who asks, for messages.

        Raises:
            DTypeError: if the variables have several dtypes.
            ShapeError: if the shape of a variable is not known.
            GraphError: if the loss does not depend on the variables, or not in a way that can be
                computed at several points.
        """
        self._loss = loss
        self._owner = owner
        self.variables = list(variables)
        self.dtype = _common_dtype(variables, owner)
        self._sizes = [_size(v, owner) for v in variables]
        self.size = sum(self._sizes)
        order = _ancestors(loss)
        handles = {v.handle: v for v in variables}
        self._reads = {
            op.outputs[0]: handles[op.inputs[0]]
            for op in order
            if op.type == "ReadVariable" and op.inputs[0] in handles
        }
        self._path = self._dependent(order, set(handles))
        if not self._path and loss not in self._reads:
            raise GraphError(
                f"{owner}: the loss {loss.name!r} depends on none of the variables by operations "
                "that can be computed at other values of them"
            )
        reads = {t.op for t in self._reads}
        others = [op for op in order if op not in self._path and op not in reads]
        self.is_fixed = all(
            op.type in _CONSTANT or (op.inputs and not op.stateful) for op in others
        )

    def _dependent(self, order: Sequence[Operation], handles: set[Tensor]) -> dict[Operation, None]:
        """Return the operations to copy: those on the way from what is read to the loss."""
        reached = set(self._reads)
        path: dict[Operation, None] = {}
        for op in order:
            if any(t in handles for t in op.inputs) and op.type != "ReadVariable":
                raise self._refused(
                    op, "uses a variable itself, not only its value; read it before"
                )
            if not any(t in reached for t in op.inputs):
                continue
            if op.schema.no_gradient and op.stateful and not op.schema.changes:
                # Such as noise of the shape of something: drawn once, the same at all points.
                continue
            if op.stateful:
                raise self._refused(op, "has an effect or holds state, which must not be repeated")
            if op.gradient_rule and op.gradient_rule in op.graph.gradient_rules:
                raise self._refused(op, "has a gradient of its own, which belongs to one point")
            path[op] = None
            reached.update(op.outputs)
        return path

    def _refused(self, op: Operation, why: str) -> GraphError:
        return GraphError(
            f"{self._owner} computes the loss at several points in each step; {op.type} "
            f"{op.name!r} lies between the variables and the loss, and {why}\n  at {op.site}"
        )

    # -- vectors

    def packed(self, values: Sequence[Tensor]) -> Tensor:
        """Return tensors, one for each variable, as one vector."""
        flat = [hr.reshape(v, [-1]) for v in values]
        joined: Tensor = hr.concat(flat, 0) if len(flat) > 1 else flat[0]
        return joined

    def unpacked(self, point: Tensor) -> list[Tensor]:
        """Return a vector as tensors, one for each variable."""
        parts = hr.split(point, self._sizes) if len(self._sizes) > 1 else [point]
        return [
            hr.reshape(part, list(v.shape.known))
            for part, v in zip(parts, self.variables, strict=True)
        ]

    def at(self, point: Tensor) -> tuple[Tensor, Tensor]:
        """Add nodes that compute the loss at a point, and its gradient there.

        Args:
            point: [size], the values of the variables.

        Returns:
            The loss, [], and the gradient, [size].
        """
        with hr.name_scope("evaluate"):
            pieces = self.unpacked(point)
            of = dict(zip(self.variables, pieces, strict=True))
            stands = {read: of[variable] for read, variable in self._reads.items()}
            for op in self._path:
                attrs = {"run": ""} if "run" in op.attrs else None
                inputs = [stands.get(t, t) for t in op.inputs]
                made = copied(op, inputs, attrs=attrs, origin="the loss at another point")
                stands.update(zip(op.outputs, made.outputs, strict=True))
            loss = hr.reduce_sum(hr.cast(stands[self._loss], self.dtype))
            found = hr.gradients(loss, pieces, unconnected_gradients="zero")
            gradient = self.packed([hr.convert_to_tensor(g) for g in found])
            gradient.set_shape([self.size])
            return loss, gradient


def _common_dtype(variables: Sequence[Variable], owner: str) -> hr.DType:
    first = variables[0].dtype
    for v in variables:
        if v.dtype != first or v.dtype not in (hr.float32, hr.float64):
            raise DTypeError(
                f"{owner} changes variables that are all float32, or all float64; "
                f"{variables[0].op_name!r} is {first} and {v.op_name!r} is {v.dtype}"
            )
    return first


def _size(variable: Variable, owner: str) -> int:
    if not variable.shape.is_fully_defined():
        raise ShapeError(
            f"{owner} needs the shapes of all variables before the step; that of "
            f"{variable.op_name!r} is {variable.shape.plain}"
        )
    return math.prod(variable.shape.known)


def _ancestors(tensor: Tensor) -> list[Operation]:
    """Return the operations from which a tensor is computed, in order.

    What they wait for besides is not computed again at other points, and belongs to none.
    """
    seen: set[Operation] = set()
    waiting = [tensor.op]
    while waiting:
        op = waiting.pop()
        if op not in seen:
            seen.add(op)
            waiting.extend(t.op for t in op.inputs)
    return sorted(seen, key=lambda op: op.index)
