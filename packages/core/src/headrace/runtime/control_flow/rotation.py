"""Loop rotation: a condition that must be asked in each iteration stands behind the body.

Body and condition are then one function that an iteration runs: it takes what the iteration before
has made, and says besides whether another one follows. Asked before each iteration the condition
would be a plan of its own, between two that could else run at one go.
"""

from __future__ import annotations

from typing import Any

from headrace.graph.function import Function
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.passes.effects import has_effect
from headrace.passes.function_copies import add_copies, unique_name
from headrace.records import dataclass
from headrace.runtime.control_flow.trip_count import trip_count_of


@dataclass(frozen=True, slots=True, eq=False)
class RotatedLoop:
    """The body of a loop with the condition behind it.

    Attributes:
        body: Takes all that the loop takes, in its order; returns the variables, and whether
            another iteration follows.
        saves: What is saved of it, by name.
    """

    body: Function
    saves: tuple[str, ...]


def rotated_loop(loop: Operation) -> RotatedLoop | None:
    """Return the body of a ``While`` with its condition; None where that is asked by itself.

    The condition moves where asking it is nothing but computing, and an iteration nothing that
    another order of failures would change.
    """
    cond: Function = loop.attrs["cond"]
    body: Function = loop.attrs["body"]
    # Loops that share a body and a condition share what becomes of them.
    key = ("asked", cond, tuple(loop.attrs["saves"]), loop.arity)
    if key not in body.derived:
        body.derived[key] = _behind(loop, cond, body)
    found: RotatedLoop | None = body.derived[key]
    return found


def _behind(loop: Operation, cond: Function, body: Function) -> RotatedLoop | None:
    if cond.is_part or body.is_part or cond.effects or body.effects or len(cond.results) != 1:
        return None
    if cond.results[0].spec.rank != 0 or not all(
        _is_computed(op) for op in cond.operations if op.type != "Parameter"
    ):
        return None
    if any(has_effect(op) for op in body.operations) or trip_count_of(loop) is not None:
        return None
    count = len(body.results)
    made = Function(body.name, body.outer, instead_of=body)
    tensors: dict[Tensor, Tensor] = {}
    for held in body.parameters[:count]:
        tensors[held] = made.add_parameter(held.spec, held.op.name)
    taken = {op.name for op in body.operations}
    captured = [
        made.add_parameter(held.spec, unique_name(f"{cond.name}/{held.op.name}", taken))
        for held in cond.parameters[count:]
    ]
    for held in body.parameters[count:]:
        tensors[held] = made.add_parameter(held.spec, held.op.name)
    _copy(body, made, tensors, None)
    results = [tensors[t] for t in body.results]
    saves = tuple(tensors[body.get_tensor_by_name(name)].name for name in loop.attrs["saves"])
    asked = dict(zip(cond.parameters, [*results, *captured], strict=True))
    _copy(cond, made, asked, taken)
    made.finish([*results, _own(made, asked[cond.results[0]], taken)])
    return RotatedLoop(made, saves)


def _is_computed(op: Operation) -> bool:
    """Whether an operation of a condition only computes, on any device."""
    schema = op.schema
    waits = schema.blocking or schema.calls_out or schema.may_be_dead
    bound = op.control_inputs or op.colocated_with
    return not (schema.stateful or schema.holds or waits or bound)


def _copy(
    function: Function, made: Function, tensors: dict[Tensor, Tensor], taken: set[str] | None
) -> None:
    """Add the operations of a function to another one, where tensors stand for its parameters."""
    copies = {old.op: new.op for old, new in tensors.items()}
    add_copies(made, function.operations, tensors, copies, taken)


def _own(made: Function, going: Tensor, taken: set[str]) -> Tensor:
    """Return a tensor of its own with the value of one that may be another result, too."""
    facts: dict[str, Any] = {"arity": (1,), "attrs": {}, "site": going.op.site}
    spec = TensorSpec(going.dtype, going.spec.shape)
    name = unique_name("going", taken)
    op = made.add_operation(OPS["Identity"], name=name, inputs=[going], specs=[spec], **facts)
    return op.outputs[0]
