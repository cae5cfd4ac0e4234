"""Gradients of conditions: a condition on the same predicate, whose branches are the gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import IndexedSlices, Operation, Tensor, cond, convert_to_tensor, zeros
from headrace.extend import GradientTable
from headrace.extend.graphs import Function
from headrace.extend.primitives import call_function, list_pop
from headrace_autodiff.backward import Backward, Rows, backward_of, carries, view
from headrace_autodiff.liveness import dense_shape_of, popped_gradient, zeros_for

RULES = GradientTable()

Part = Tensor | tuple[Tensor, Tensor]


@RULES.add("If")
def _if(op: Operation, *grads: Any) -> list[Any]:
    pred, then_inputs, else_inputs = op.grouped_inputs
    count = len(op.attrs["then_branch"].results)
    sides = [
        _Side(op, "then_branch", "then_saves", then_inputs, grads[:count]),
        _Side(op, "else_branch", "else_saves", else_inputs, grads[:count]),
    ]
    # Each list that an earlier view yields holds at most one tensor, as its gradient does.
    saved = iter(grads[count:])
    for side in sides:
        side.arrive([next(saved) for _ in op.attrs[side.saves]])
    for side in sides:
        side.build()
    seen = view(op, **{side.saves: side.names for side in sides})
    lists = list(seen.outputs[count:])
    for side in sides:
        names = seen.attrs[side.saves]
        side.lists, lists = dict(zip(names, lists, strict=False)), lists[len(names) :]
    wanted = [side.kinds() for side in sides]
    if not any(kind is not None for kinds in wanted for kind in kinds):
        return [None] * len(op.inputs)

    def branch(taken: int) -> Callable[[], list[Tensor]]:
        def build() -> list[Tensor]:
            parts: list[Tensor] = []
            for i, side in enumerate(sides):
                parts += side.gradients() if i == taken else side.nothing()
            return parts

        return build

    flat = iter(cond(pred, branch(0), branch(1), strict=True, name="cond"))
    found: list[Any] = [None]
    for side, kinds in zip(sides, wanted, strict=True):
        for tensor, kind in zip(side.inputs, kinds, strict=True):
            if kind is None:
                found.append(None)
            elif kind == "rows":
                values, indices = next(flat), next(flat)
                found.append(IndexedSlices(values, indices, dense_shape_of(tensor)))
            else:
                found.append(next(flat))
    return found


class _Side:
    """One branch, and what its gradient needs."""

    def __init__(
        self,
        op: Operation,
        branch: str,
        saves: str,
        inputs: Sequence[Tensor],
        grads: Sequence[Tensor | None],
    ) -> None:
        self.op = op
        self.function: Function = op.attrs[branch]
        self.saves = saves
        self.inputs = inputs
        self.ys = [y for y, g in zip(self.function.results, grads, strict=True) if g is not None]
        self.grads: list[Tensor] = [g for g in grads if g is not None]
        self.listed: list[Tensor] = []
        self.parameters = [p for p in self.function.parameters if carries(p)]
        self.lists: dict[str, Tensor] = {}

    def arrive(self, grads: Sequence[Tensor | None]) -> None:
        """Take the gradients of the lists that the operation yields of this branch."""
        for name, grad in zip(self.op.attrs[self.saves], grads, strict=True):
            if grad is not None:
                self.ys.append(self.function.get_tensor_by_name(name))
                self.listed.append(grad)

    def build(self) -> None:
        self.backward: Backward = backward_of(self.function, self.ys, self.parameters)
        needed = [t for t in self.backward.wanted if self._is_saved(t)]
        needed += self.ys[len(self.grads) :]
        self.names = list(dict.fromkeys(t.name for t in needed if self._is_saved(t)))

    def _is_saved(self, tensor: Tensor) -> bool:
        return tensor.op.graph is self.function and tensor.op.type != "Parameter"

    def kinds(self) -> list[str | None]:
        """Return for each input how its gradient comes: "dense", as "rows", or not at all."""
        places = dict(zip(self.parameters, self.backward.found, strict=True))
        found = [places.get(p) for p in self.function.parameters]
        return [self._kind(t, place) for t, place in zip(self.inputs, found, strict=True)]

    @staticmethod
    def _kind(tensor: Tensor, place: int | Rows | None) -> str | None:
        if place is None:
            return None
        shape = tensor.spec.shape if tensor.spec.content is None else tensor.spec.content.shape
        known = shape.rank is not None and shape[1:].is_fully_defined()
        return "rows" if isinstance(place, Rows) and known else "dense"

    def gradients(self) -> list[Tensor]:
        """Build the gradients of the inputs, inside the backward branch."""
        arriving = [*self.grads, *map(self._only, self.listed, self.ys[len(self.grads) :])]
        arguments = [*arriving, *map(self._argument, self.backward.wanted)]
        results = call_function(arguments, function=self.backward.function)
        places = dict(zip(self.parameters, self.backward.found, strict=True))
        parts: list[Tensor] = []
        for p, t, kind in zip(self.function.parameters, self.inputs, self.kinds(), strict=True):
            place = places.get(p)
            if isinstance(place, Rows):
                rows = results[place.values], results[place.indices]
                whole = IndexedSlices(*rows, dense_shape_of(t))
                parts += rows if kind == "rows" else [convert_to_tensor(whole)]
            elif place is not None:
                parts.append(results[place])
        return parts

    def _argument(self, tensor: Tensor) -> Tensor:
        if tensor.op.graph is not self.function:
            return tensor
        if tensor.op.type == "Parameter":
            index: int = tensor.op.attrs["index"]
            return self.inputs[index]
        return list_pop(self.lists[tensor.name])[1]

    def _only(self, grads: Tensor, saved: Tensor) -> Tensor:
        """Return the only item of the list that is the gradient of a list with one item."""
        return popped_gradient(grads, self._argument(saved))[1]

    def nothing(self) -> list[Tensor]:
        """Build zeros in place of the gradients of the inputs, inside the other branch."""
        parts: list[Tensor] = []
        places = dict(zip(self.parameters, self.backward.found, strict=True))
        for p, t, kind in zip(self.function.parameters, self.inputs, self.kinds(), strict=True):
            place = places.get(p)
            if kind == "rows":
                assert isinstance(place, Rows)
                spec = t.spec if t.spec.content is None else t.spec.content
                indices = self.backward.function.results[place.indices]
                parts.append(zeros([0, *spec.shape[1:].known], spec.dtype))
                parts.append(zeros([0], indices.dtype))
            elif kind is not None:
                parts.append(zeros_for(t))
        return parts
