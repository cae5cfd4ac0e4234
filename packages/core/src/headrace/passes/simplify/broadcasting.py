"""Rules for repetition: elementwise ops broadcast by themselves, and come before it."""

from __future__ import annotations

from headrace.passes.simplify.matching import array_of, cannot_fail, inner, uniform
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import ELEMENTWISE, RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()


@RULES.add("broadcast-nothing", "BroadcastTo", reason="the shape stays as it is")
def _broadcast_nothing(node: Node, replacement: Replacement) -> Value | None:
    x, shape = node.inputs
    if x.dims is not None and x.dims == Value(node, 0).dims:
        return x
    source = inner(shape, "Shape")
    return x if source is not None and source.inputs[0] == x else None


@RULES.add("broadcast-of-broadcast", "BroadcastTo", reason="repeated once to the last shape")
def _broadcast_of_broadcast(node: Node, replacement: Replacement) -> Value | None:
    first = inner(node.inputs[0], "BroadcastTo", "Fill")
    if first is None:
        return None
    return replacement.add("BroadcastTo", first.inputs[first.type == "Fill"], node.inputs[1])


@RULES.add("broadcast-units", "BroadcastTo", reason="new axes of size 1 are another shape only")
def _broadcast_units(node: Node, replacement: Replacement) -> Value | None:
    x, dims = node.inputs[0], Value(node, 0).dims
    if dims is None or x.dims is None:
        return None
    return (
        replacement.reshape(x, dims) if dims == (1,) * (len(dims) - len(x.dims)) + x.dims else None
    )


@RULES.add(
    *("reshape-of-scalar", "Reshape", "ExpandDims", "Squeeze", "Transpose", "Tile"),
    after=("BroadcastTo", "Fill"),
    reason="one element repeated is the same in every arrangement",
)
def _reshape_of_scalar(node: Node, replacement: Replacement) -> Value | None:
    first = inner(node.inputs[0], "BroadcastTo", "Fill")
    dims = Value(node, 0).dims
    if first is None or dims is None or not cannot_fail(node):
        return None
    x = first.inputs[first.type == "Fill"]
    if x.dims is None or any(d != 1 for d in x.dims):
        return None
    return replacement.broadcast(replacement.reshape(x, ()), dims)


@RULES.add(
    *("hoist-broadcast", ELEMENTWISE),
    after=("BroadcastTo", "Fill"),
    reason="elementwise ops broadcast by themselves: what is repeated is computed once, and "
    "repeated afterwards where nothing else gives the shape",
)
def _hoist_broadcast(node: Node, replacement: Replacement) -> Value | None:
    dims = Value(node, 0).dims
    if dims is None:
        return None
    inputs = [_source(value) for value in node.inputs]
    if all(new == old for new, old in zip(inputs, node.inputs, strict=True)):
        return None
    made = replacement.again(inputs)
    if made.dims == dims:
        return made
    if made.dims is None:
        return None
    if len(node.inputs) > 1 and not _saves(made.dims, dims):
        return None
    return replacement.broadcast(made, dims)


def _source(value: Value) -> Value:
    """Return what is repeated to make a value, the value itself where nothing is."""
    found = inner(value, "BroadcastTo", "Fill")
    if found is None:
        return value
    source = found.inputs[found.type == "Fill"]
    return source if source.dims is not None else value


def _saves(made: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    size = 1
    for d in made:
        size *= d
    total = 1
    for d in wanted:
        total *= d
    return size < total


@RULES.add(
    *("scalar-constant", ELEMENTWISE),
    after=("Const",),
    reason="a constant of equal elements is one number: elementwise ops broadcast it",
)
def _scalar_constant(node: Node, replacement: Replacement) -> Value | None:
    dims = Value(node, 0).dims
    if dims is None or not any(_is_large_uniform(v) for v in node.inputs):
        return None
    inputs = [
        replacement.constant(uniform(v), v.dtype) if _is_large_uniform(v) else v
        for v in node.inputs
    ]
    made = replacement.again(inputs)
    return replacement.broadcast(made, dims) if made.dims is not None else None


def _is_large_uniform(value: Value) -> bool:
    if value.node.type != "Const" or value.rank == 0:
        return False
    return uniform(value) is not None


@RULES.add(
    *("uniform-constant", "BroadcastTo", "Transpose", "Reshape", "ExpandDims", "Squeeze", "Tile"),
    after=("Const",),
    reason="a constant of equal elements is one number repeated",
)
def _uniform_constant(node: Node, replacement: Replacement) -> Value | None:
    x, dims = node.inputs[0], Value(node, 0).dims
    if dims is None or x.node.type != "Const" or uniform(x) is None or not cannot_fail(node):
        return None
    if x.rank == 0 and node.type == "BroadcastTo":
        return None
    array = array_of(x)
    if array is not None and array.size <= 8 and node.type != "BroadcastTo":
        return None
    return replacement.broadcast(replacement.constant(uniform(x), x.dtype), dims)
