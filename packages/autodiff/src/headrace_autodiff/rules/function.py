"""Gradients of calls of functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from headrace import Operation, Tensor
from headrace.extend import GradientTable
from headrace.extend.graphs import Function, check_repeated, current_scope, graphs_around
from headrace.extend.primitives import call_function
from headrace_autodiff.backward import Backward, backward_of, carries, results_of, view
from headrace_autodiff.liveness import dense_shape_of

RULES = GradientTable()

# What a call computes inside is kept for its gradient, one tensor for each operation of each call.
_MOST_REPEATED = 10_000


@RULES.add("Call")
def _call(op: Operation, *grads: Any) -> list[Any]:
    function = op.attrs["function"]
    check_repeated(function, most=_MOST_REPEATED)
    wanted = [*function.results, *map(function.get_tensor_by_name, op.attrs["saves"])]
    arriving = [(y, g) for y, g in zip(wanted, grads, strict=True) if g is not None]
    parameters = [p for p in function.parameters if carries(p)]
    backward = _shared(function, [y for y, _ in arriving], parameters)
    inner = [t for t in backward.wanted if t.op.graph is function and t.op.type != "Parameter"]
    names = [t.name for t in inner]
    seen = view(op, saves=names)
    outputs = seen.outputs[len(function.results) :]
    given = dict(zip(seen.attrs["saves"], outputs, strict=True))

    def argument(tensor: Any) -> Any:
        if tensor.op.graph is not function:
            return tensor
        if tensor.op.type == "Parameter":
            return op.inputs[tensor.op.attrs["index"]]
        return given[tensor.name]

    arguments = [*(g for _, g in arriving), *map(argument, backward.wanted)]
    results = call_function(arguments, function=backward.function)
    places = dict(zip(parameters, backward.found, strict=True))
    return [
        results_of(results, places.get(p), lambda t=t: dense_shape_of(t))
        for p, t in zip(function.parameters, op.inputs, strict=True)
    ]


def _shared(function: Function, ys: Sequence[Tensor], parameters: Sequence[Tensor]) -> Backward:
    """Return the gradient of a function, one for all its calls that stand in the same scopes."""
    graph = current_scope().graph
    scope = replace(
        current_scope(), graph=graph.outermost, name="", control_inputs=(), colocated_with=()
    )
    key = ("gradient", tuple(ys), tuple(parameters), scope)
    made: list[Backward] = function.derived.setdefault(key, [])
    here = {graph, *graphs_around(graph)}
    found = next((b for b in made if b.function.outer in here), None)
    if found is None:
        found = backward_of(function, ys, parameters)
        made.append(found)
    return found
