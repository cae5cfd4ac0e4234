"""Building a loop of TensorFlow's primitives as one operation that holds functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import headrace as hr
from headrace import Shape, Tensor
from headrace.errors import DocumentError
from headrace.extend.graphs import Function, inside
from headrace.extend.ops import TensorSpec
from headrace_io.translation.frames import Loop
from headrace_io.translation.values import as_tensor

# What TensorFlow takes where a message does not say how many iterations may be under way.
ITERATIONS = 10
# More rounds than a shape has sizes that can be forgotten one by one.
_MAX_ROUNDS = 64


def build_loop(scope: Any, loop: Loop) -> None:
    """Build a loop, and let its ``Merge`` nodes stand for what comes out of it.

    Args:
        scope: The scope in which its results are used.
        loop: The loop.
    """
    if loop.merges and loop.merges[0] in scope.results:
        return
    body = scope.body
    start = [as_tensor(scope.value((name, "", 0))) for name in loop.starts]
    last = [body.nodes[name].inputs[0] for name in loop.nexts]
    going = body.nodes[loop.condition].inputs[0]
    merged = set(loop.merges) | set(loop.switches)
    before = body.needed_for([going[0]], loop.path)
    # What the next iteration waits for runs in this one.
    within = body.needed_for(loop.nexts, loop.path)

    def values_of(variables: Sequence[Tensor]) -> dict[str, list[Any]]:
        values = {m: [v, None] for m, v in zip(loop.merges, variables, strict=True)}
        for name, at in loop.switches.items():
            values[name] = [None, variables[at]]
        return values

    def condition(*variables: Tensor) -> Tensor:
        inner = scope.inside(loop.path, values_of(variables))
        inner.build(name for name in before if name not in merged)
        return as_tensor(inner.value(going))

    def iteration(*variables: Tensor) -> list[Tensor]:
        inner = scope.inside(loop.path, values_of(variables))
        inner.results[loop.condition] = [None]
        skipped = merged | set(loop.nexts)
        inner.build(name for name in within if name not in skipped)
        found = []
        for name, source in zip(loop.nexts, last, strict=True):
            waits = [op for other in body.nodes[name].controls for op in inner.operations(other)]
            with hr.control_dependencies(waits):
                value = as_tensor(inner.value(source))
                found.append(hr.identity(value) if waits else value)
        return found

    with hr.name_scope(f"{scope.prefix}{loop.path[-1]}/"):
        results = while_loop(condition, iteration, start, _iterations(body, loop))
    for name, result in zip(loop.merges, results, strict=True):
        scope.results[name] = [result, None]


def _iterations(body: Any, loop: Loop) -> int:
    """Return how many iterations may be under way at a time, which each ``Enter`` says."""
    found = body.nodes[loop.starts[0]].message.attr if loop.starts else {}
    return found["parallel_iterations"].i if "parallel_iterations" in found else ITERATIONS


def while_loop(
    condition: Callable[..., Tensor],
    iteration: Callable[..., list[Tensor]],
    start: Sequence[Tensor],
    parallel_iterations: int,
) -> list[Tensor]:
    """Return what comes out of a loop whose variables may change their shapes.

    TensorFlow's messages do not say which shapes stay the same, so that is found by building the
    body on what is known before, until nothing changes.
    """
    shapes = [tensor.spec.shape for tensor in start]
    for _ in range(_MAX_ROUNDS):
        after = _shapes_after(iteration, start, shapes)
        wider = [_common(a, b) for a, b in zip(shapes, after, strict=True)]
        if [s.dims for s in wider] == [s.dims for s in shapes]:
            break
        shapes = wider
    else:
        raise DocumentError("the shapes of its loop variables do not settle")
    found = hr.while_loop(
        condition,
        iteration,
        list(start),
        shape_invariants=shapes,
        parallel_iterations=parallel_iterations,
        return_same_structure=True,
    )
    return list(found)


def _shapes_after(
    iteration: Callable[..., list[Tensor]], start: Sequence[Tensor], shapes: Sequence[Shape]
) -> list[Shape]:
    function = Function("shapes", hr.get_default_graph())
    with inside(function):
        variables = [
            function.add_parameter(
                TensorSpec(tensor.dtype, shape, content=tensor.spec.content), "loop_var"
            )
            for tensor, shape in zip(start, shapes, strict=True)
        ]
        return [tensor.spec.shape for tensor in iteration(*variables)]


def _common(left: Shape, right: Shape) -> Shape:
    if left.dims is None or right.dims is None or len(left.dims) != len(right.dims):
        return Shape(None)
    return Shape([a if a == b else None for a, b in zip(left.dims, right.dims, strict=True)])
