"""Translations of control flow: branches by dead values, conditions, loops and calls."""

from __future__ import annotations

from typing import Any

from headrace import Tensor
from headrace.errors import DocumentError
from headrace.extend.ops import call_op
from headrace.extend.translations import TranslationTable
from headrace_io.translation.library import hr
from headrace_io.translation.loops import ITERATIONS, while_loop
from headrace_io.translation.values import Reference, as_tensor

ROWS = TranslationTable()


@ROWS.add("NoOp", "ControlTrigger")
def _no_op(node: Any) -> Any:
    return hr.no_op()


@ROWS.add("Switch", "RefSwitch", outputs="output_false output_true")
def _switch(node: Any) -> Any:
    data = node.value(0)
    if isinstance(data, Reference):
        return [Reference(t) for t in call_op("Switch", data.ordered(), node.tensor(1))]
    if not isinstance(data, Tensor):
        # Handles of arrays and queues are the same on both sides.
        return [data, data]
    return list(call_op("Switch", data, node.tensor(1)))


@ROWS.add("Merge", "RefMerge", outputs="output value_index")
def _merge(node: Any) -> Any:
    return list(call_op("Merge", node.tensors))


@ROWS.add("RefIdentity")
def _ref_identity(node: Any) -> Any:
    return node.value(0)


@ROWS.add("If", "StatelessIf", ignored="output_shapes")
def _if(node: Any) -> Any:
    arguments = node.inputs[1:]
    then_branch, else_branch = node.attr("then_branch"), node.attr("else_branch")

    def branch(function: Any) -> list[Tensor]:
        return [hr.identity(as_tensor(v)) for v in node.call(function, arguments)]

    predicate = _truth(node.tensor(0))
    if not _has_results(node):
        return hr.cond(
            predicate,
            lambda: _ran(node, then_branch, arguments),
            lambda: _ran(node, else_branch, arguments),
        ).op
    return list(
        hr.cond(predicate, lambda: branch(then_branch), lambda: branch(else_branch), strict=True)
    )


def _has_results(node: Any) -> bool:
    return bool(node.message.attr["Tout"].list.type)


def _ran(node: Any, function: Any, arguments: Any) -> Any:
    first = hr.get_default_graph().version
    node.call(function, arguments)
    made = hr.get_default_graph().operations[first:]
    with hr.control_dependencies([op for op in made if op.type != "Parameter"]):
        return hr.constant(True)


def _truth(value: Tensor) -> Any:
    """Return a condition as a bool: a number is true unless 0, other tensors unless empty."""
    if value.shape.rank not in (None, 0):
        return hr.size(value) > 0
    if value.dtype.is_bool:
        return value
    if value.dtype.name == "string":
        return hr.strings.length(value) > 0
    return hr.not_equal(value, hr.cast(0, value.dtype))


@ROWS.add("While", "StatelessWhile", ignored="output_shapes")
def _while(node: Any) -> Any:
    condition, body = node.attr("cond"), node.attr("body")
    start = node.inputs
    varying = [i for i, v in enumerate(start) if isinstance(v, Tensor) and not _is_handle(v)]

    def filled(variables: tuple[Tensor, ...]) -> list[Any]:
        values = list(start)
        for i, variable in zip(varying, variables, strict=True):
            values[i] = variable
        return values

    def going(*variables: Tensor) -> Any:
        (found,) = node.call(condition, filled(variables))
        return _truth(as_tensor(found))

    def iteration(*variables: Tensor) -> list[Tensor]:
        found = node.call(body, filled(variables))
        return [as_tensor(found[i]) for i in varying]

    many = node.attr("parallel_iterations", ITERATIONS)
    results = while_loop(going, iteration, [start[i] for i in varying], many)
    return filled(tuple(results))


def _is_handle(value: Tensor) -> bool:
    return value.dtype.kind == "resource"


@ROWS.add("PartitionedCall", "StatefulPartitionedCall", ignored="config config_proto executor_type")
def _call(node: Any) -> Any:
    found = node.call(node.attr("f"), node.inputs)
    return found or hr.no_op()


@ROWS.add("FakeParam")
def _fake_param(node: Any) -> Any:
    shape = node.attr("shape")
    return hr.zeros([size or 0 for size in shape.known], node.attr("dtype"))


@ROWS.add("Assert")
def _assert(node: Any) -> Any:
    condition, *data = node.tensors
    return hr.Assert(condition, data, summarize=node.attr("summarize", 3))


@ROWS.add("Print")
def _print(node: Any) -> Any:
    x, *data = node.tensors
    return hr.Print(
        x,
        data,
        message=node.text("message"),
        first_n=node.attr("first_n", -1),
        summarize=node.attr("summarize", 3),
    )


@ROWS.add("LoopCond", "NextIteration", "RefNextIteration", "Enter", "RefEnter", "Exit", "RefExit")
def _of_a_loop(node: Any) -> Any:
    # The reader builds loops as a whole: what is met alone belongs to none.
    raise DocumentError("it is a part of a loop that the graph does not hold")
