"""Gradients of loops: a loop backwards over what the iterations left behind.

The forward loop stacks, iteration by iteration, the tensors of its body that the gradient needs.
The backward loop takes them off again, the last iteration first, carries the gradients of the
loop variables from iteration to iteration, and adds up those of what the body captured.

References:
    Y. Yu et al., Dynamic control flow in large-scale machine learning, EuroSys 2018, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import (
    IndexedSlices,
    Operation,
    Shape,
    Tensor,
    constant,
    convert_to_tensor,
    greater,
    subtract,
    while_loop,
    zeros,
)
from headrace.extend import GradientTable
from headrace.extend.graphs import Function
from headrace.extend.primitives import (
    call_function,
    list_concat,
    list_length,
    list_pop,
    list_push,
    list_reserve,
    list_zeros_like,
)
from headrace_autodiff.accumulate import total
from headrace_autodiff.backward import (
    Backward,
    Rows,
    backward_of,
    carries,
    gradient_spec,
    sources,
    view,
)
from headrace_autodiff.liveness import dense_shape_of, popped_gradient, zeros_for
from headrace_autodiff.walk import DEPENDED_ON

RULES = GradientTable()


@RULES.add("While")
def _while(op: Operation, *grads: Any) -> list[Any]:
    loop = _Forward(op, grads)
    return _gradients(loop) if loop.ys else [None] * len(op.inputs)


class _Forward:
    """A loop whose gradient is wanted.

    Attributes:
        variables: Indices of the loop variables through which gradients flow.
        constants: Indices of parameters of the body that are the same in every iteration, and
            through which gradients flow.
        saved: The gradients of lists that the loop yields, by the name of what they hold.
        ys: The tensors of the body at which gradients arrive in each iteration.
    """

    def __init__(self, op: Operation, grads: Sequence[Tensor | None]) -> None:
        self.op = op
        self.body: Function = op.attrs["body"]
        self.count, self.cond_count, _ = op.arity
        self.arriving = list(grads[: self.count])
        lists = zip(op.attrs["saves"], grads[self.count :], strict=True)
        self.saved = {name: grad for name, grad in lists if grad is not None}
        self.variables = self._flowing()
        parameters = self.body.parameters
        self.constants = [i for i in range(self.count, len(parameters)) if carries(parameters[i])]
        self.ys = [self.body.results[i] for i in self.variables]
        self.ys += map(self.body.get_tensor_by_name, self.saved)

    def _flowing(self) -> list[int]:
        """Return the loop variables that carry gradients once iterations have passed them on."""
        inside = [self.body.get_tensor_by_name(name) for name in self.saved]
        active = {i for i, grad in enumerate(self.arriving) if grad is not None}
        while True:
            reached = sources([*inside, *(self.body.results[i] for i in active)])
            more = {i for i in range(self.count) if self.body.parameters[i] in reached}
            if more <= active:
                return sorted(active)
            active |= more

    def stopped(self) -> list[int]:
        """Return the parameters of the body whose gradients are stopped in it: zeros, not None.

        The gradient of a loop variable is made of what arrives at its end, zeros where nothing
        does, if the loop is differentiated at all and the variable matters to it in any way.
        """
        depended_on = DEPENDED_ON.get()
        ends = enumerate(self.op.outputs[: self.count])
        active = {i for i, t in ends if carries(t) and depended_on(t)} | set(self.variables)
        while True:
            reached = sources([*self.ys, *(self.body.results[i] for i in active)], past_stops=True)
            more = {i for i in range(self.count) if self.body.parameters[i] in reached}
            if more <= active:
                break
            active |= more
        stopped = active.difference(self.variables)
        reached = sources([self.body.results[i] for i in stopped])
        return sorted(stopped) + [i for i in self.constants if self.body.parameters[i] in reached]

    def is_constant(self, tensor: Tensor) -> bool:
        """Whether a tensor is none of the body, or the same in every iteration."""
        op = tensor.op
        if op.graph is not self.body or op.type == "Const":
            return True
        return op.type == "Parameter" and op.attrs["index"] >= self.count

    def outside(self, tensor: Tensor) -> Tensor:
        """Return what a constant is in the graph of the loop; one with a value is made anew."""
        op = tensor.op
        if op.graph is not self.body:
            return tensor
        if op.type == "Const":
            return constant(op.attrs["value"], tensor.dtype)
        return self.source(op.attrs["index"])

    def source(self, index: int) -> Tensor:
        """Return what a constant parameter of the body stands for."""
        return self.op.inputs[index + self.cond_count]

    def start(self, index: int) -> Tensor:
        """Return the gradient with which a loop variable leaves the loop."""
        grad = self.arriving[index]
        if grad is None:
            return zeros_for(self.op.outputs[index])
        grad.set_shape(gradient_spec(self.op.outputs[index]).shape)
        return grad


class _Sum:
    """The gradient of a constant, added up over the iterations.

    Dense gradients are summed; of row-sparse ones the rows of all iterations are kept.
    """

    def __init__(self, source: Tensor, place: int | Rows, results: Sequence[Tensor]) -> None:
        self.source = source
        self.place = place
        if isinstance(place, Rows):
            parts = [results[place.values], results[place.indices]]
            self.start = [list_reserve(constant(0), spec=t.spec) for t in parts]
        else:
            self.start = [zeros_for(source)]
        self.shapes = [t.spec.shape for t in self.start]

    def added(self, held: Sequence[Tensor], results: Sequence[Tensor]) -> list[Tensor]:
        """Return the sum with the gradient of one more iteration."""
        if isinstance(self.place, Rows):
            parts = results[self.place.values], results[self.place.indices]
            return [list_push(kept, part) for kept, part in zip(held, parts, strict=True)]
        more = total([held[0], results[self.place]])
        assert more is not None
        more.set_shape(self.shapes[0])
        return [more]

    def gradient(self, held: Sequence[Tensor]) -> Tensor | IndexedSlices:
        """Return the gradient when all iterations were added."""
        if not isinstance(self.place, Rows):
            return held[0]
        values, indices = (list_concat(kept)[0] for kept in held)
        return IndexedSlices(values, indices, dense_shape_of(self.source))


def _gradients(loop: _Forward) -> list[Any]:
    body, variables = loop.body, loop.variables
    xs = [body.parameters[i] for i in (*variables, *loop.constants)]
    backward = backward_of(body, loop.ys, xs)
    of_variables = backward.found[: len(variables)]
    of_constants = zip(loop.constants, backward.found[len(variables) :], strict=True)
    sums = {
        i: _Sum(loop.source(i), place, backward.function.results)
        for i, place in of_constants
        if place is not None
    }
    names = _needed(loop, backward, of_variables)
    seen = view(loop.op, saves=names)
    lists = dict(zip(seen.attrs["saves"], seen.outputs[loop.count :], strict=True))
    stacks = [lists[name] for name in names]

    def once(left: Tensor, flow: Any, held: Any, stacks: Any, saved: Any) -> list[Any]:
        popped = [list_pop(stack) for stack in stacks]
        items = {name: item for name, (_, item) in zip(names, popped, strict=True)}

        def inner(tensor: Tensor) -> Tensor:
            return loop.outside(tensor) if loop.is_constant(tensor) else items[tensor.name]

        whole = [inner(body.get_tensor_by_name(name)) for name in loop.saved]
        off = [popped_gradient(g, t) for g, t in zip(saved, whole, strict=True)]
        arguments = [*flow, *(item for _, item in off), *map(inner, backward.wanted)]
        results = call_function(arguments, function=backward.function)
        passed = []
        for i, place, grad in zip(variables, of_variables, flow, strict=True):
            parameter = body.parameters[i]
            if place is None:
                passed.append(_none(grad, parameter, items))
            else:
                # What was not stacked has a known shape, which is all that is asked of it.
                like = items.get(parameter.name, parameter)
                passed.append(_whole(results, place, like))
            passed[-1].set_shape(gradient_spec(parameter).shape)
        added = [s.added(h, results) for s, h in zip(sums.values(), held, strict=True)]
        return [
            subtract(left, 1),
            passed,
            added,
            [stack for stack, _ in popped],
            [grads for grads, _ in off],
        ]

    found = while_loop(
        lambda left, *_: greater(left, 0),
        once,
        [
            list_length(stacks[0]),
            [loop.start(i) for i in variables],
            [s.start for s in sums.values()],
            stacks,
            list(loop.saved.values()),
        ],
        shape_invariants=[
            Shape(()),
            [gradient_spec(body.parameters[i]).shape for i in variables],
            [s.shapes for s in sums.values()],
            [Shape(())] * len(stacks),
            [Shape(())] * len(loop.saved),
        ],
        parallel_iterations=loop.op.attrs["parallel_iterations"],
        swap_memory=loop.op.attrs["swap_memory"],
        name="while",
    )
    flowed = dict(zip(variables, found[1], strict=True))
    summed = {i: s.gradient(h) for (i, s), h in zip(sums.items(), found[2], strict=True)}
    for i in loop.stopped():
        if i < loop.count:
            flowed[i] = zeros_for(loop.op.inputs[i])
        elif i not in summed:
            summed[i] = zeros_for(loop.source(i))
    return [
        *(flowed.get(i) for i in range(loop.count)),
        *([None] * loop.cond_count),
        *(summed.get(i) for i in range(loop.count, len(body.parameters))),
    ]


def _needed(
    loop: _Forward, backward: Backward, of_variables: Sequence[int | Rows | None]
) -> list[str]:
    """Return the names of what the backward loop needs of every iteration."""
    wanted = [*backward.wanted, *map(loop.body.get_tensor_by_name, loop.saved)]
    for i, place in zip(loop.variables, of_variables, strict=True):
        parameter = loop.body.parameters[i]
        if not isinstance(place, int) and not gradient_spec(parameter).shape.is_fully_defined():
            wanted.append(parameter)
    names = dict.fromkeys(t.name for t in wanted if not loop.is_constant(t))
    # The number of iterations is the length of what they left behind: at least one list.
    return list(names) or [loop.body.parameters[0].name]


def _none(grad: Tensor, parameter: Tensor, items: dict[str, Tensor]) -> Tensor:
    """Return zeros as the gradient of a loop variable that an iteration does not use."""
    if grad.dtype.kind == "list":
        return list_zeros_like(grad)
    spec = gradient_spec(parameter)
    if spec.shape.is_fully_defined():
        return zeros(list(spec.shape.known), spec.dtype)
    return zeros_for(items[parameter.name])


def _whole(results: Sequence[Tensor], place: int | Rows, like: Tensor) -> Tensor:
    if isinstance(place, Rows):
        rows = IndexedSlices(results[place.values], results[place.indices], dense_shape_of(like))
        return convert_to_tensor(rows)
    return results[place]
