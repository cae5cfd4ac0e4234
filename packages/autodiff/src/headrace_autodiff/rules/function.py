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
from headrace_autodiff.called_again import argument, repeated, run_again
from headrace_autodiff.liveness import dense_shape_of

RULES = GradientTable()

# What reads, draws or changes state cannot run again. Where it is repeated so many times that the
# gradient would have to keep the tensors of more operations, it is refused.
_MOST_REPEATED = 10_000
# What can run again does so where more operations are repeated, unless few tensors are kept then.
_MOST_KEPT = 1_000
_FEW = 100


@RULES.add("Call")
def _call(op: Operation, *grads: Any) -> list[Any]:
    function = op.attrs["function"]
    if function.stateful:
        check_repeated(function, most=_MOST_REPEATED)
    else:
        check_repeated(function)
    wanted = [*function.results, *map(function.get_tensor_by_name, op.attrs["saves"])]
    arriving = [(y, g) for y, g in zip(wanted, grads, strict=True) if g is not None]
    parameters = [p for p in function.parameters if carries(p)]
    backward = _shared(function, [y for y, _ in arriving], parameters)
    inner = [t for t in backward.wanted if t.op.graph is function and t.op.type != "Parameter"]
    if len(inner) > _FEW and not function.stateful and repeated(function) > _MOST_KEPT:
        again = run_again(function, [y for y, _ in arriving], backward)
        taken = [*op.inputs, *(g for _, g in arriving), *again.inputs]
        results = call_function(taken, function=again)
    else:
        seen = view(op, saves=[t.name for t in inner])
        outputs = seen.outputs[len(function.results) :]
        given = dict(zip(seen.attrs["saves"], outputs, strict=True))
        arguments = [argument(t, function, op.inputs, given) for t in backward.wanted]
        results = call_function([*(g for _, g in arriving), *arguments], function=backward.function)
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
