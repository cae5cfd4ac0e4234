"""Rules for identities, shapes, and the same elements in another arrangement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.dtypes import DType, promote
from headrace.ops.indexing import decode
from headrace.passes.simplify.matching import (
    MAX_LOOKED_INTO,
    array_of,
    cannot_fail,
    inner,
    ints_of,
)
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.workgraph import Node, Value
from headrace.shapes import Shape

RULES = RuleTable()


@RULES.add("identity", "Identity", "StopGradient", "IdentityN", reason="it yields its inputs")
def _identity(node: Node, replacement: Replacement) -> Sequence[Value] | None:
    return node.inputs


@RULES.add("default-value", "PlaceholderWithDefault", reason="nothing is fed in its place")
def _default_value(node: Node, replacement: Replacement) -> Value | None:
    return node.inputs[0]


@RULES.add("ensured-shape", "EnsureShape", reason="the shape is known to be as it must")
def _ensured_shape(node: Node, replacement: Replacement) -> Value | None:
    x = node.inputs[0]
    wanted: Shape = node.attrs["shape"]
    return x if x.spec.shape.merge_with(wanted) == x.spec.shape else None


@RULES.add("known-shape", "Shape", "Size", "Rank", reason="the shape is known before the step")
def _known_shape(node: Node, replacement: Replacement) -> Value | None:
    value = node.specs[0].value
    if value is None:
        value = node.schema.output_specs([node.inputs[0].spec], node.arity, node.attrs)[0][0].value
    return None if value is None else replacement.constant(value, node.specs[0].dtype)


@RULES.add(
    *("known-shape-part", "StridedSlice", "Concat", "Stack"),
    reason="a part of a shape, or shapes joined, are known before the step",
)
def _known_shape_part(node: Node, replacement: Replacement) -> Value | None:
    out = node.specs[0]
    if out.value is not None and out.value.size <= MAX_LOOKED_INTO:
        return replacement.constant(out.value, out.dtype)
    # What else yields a shape, such as the joining of two, may fail when it runs.
    certain = all(value.node.type in ("Shape", "Const") for value in node.inputs)
    known = certain and out.dtype.is_integer and out.dims is not None
    if not known or out.dims is None or not out.dims.is_fully_defined():
        return None
    if out.rank != 1 or len(out.dims) != out.shape[0]:
        return None
    return replacement.constant(list(out.dims.known), out.dtype)


# -- casts


@RULES.add("cast-to-same", "Cast", reason="it has the dtype already")
def _cast_to_same(node: Node, replacement: Replacement) -> Value | None:
    x = node.inputs[0]
    return x if x.dtype == node.attrs["dtype"] else None


@RULES.add(
    *("cast-of-cast", "Cast"),
    reason="the first conversion keeps every value, so that the second one can start before it",
)
def _cast_of_cast(node: Node, replacement: Replacement) -> Value | None:
    first = inner(node.inputs[0], "Cast")
    if first is None:
        return None
    x, target = first.inputs[0], node.attrs["dtype"]
    if not _keeps_values(x.dtype, first.attrs["dtype"], target):
        return None
    return x if x.dtype == target else replacement.add("Cast", x, dtype=target)


def _keeps_values(source: DType, between: DType, target: DType) -> bool:
    if source.is_bool:
        return between.is_numeric or between.is_bool
    if not source.is_numeric or promote(source, between) != between:
        return False
    if not target.is_integer or target == source:
        return True
    # What a float beyond the range of an integer becomes depends on how wide the float is.
    return source.is_integer and (between.is_integer or promote(source, target) == target)


# -- reshapes


@RULES.add(
    *("reshape-nothing", "Reshape", "ExpandDims", "Squeeze"), reason="the shape stays as it is"
)
def _reshape_nothing(node: Node, replacement: Replacement) -> Value | None:
    x = node.inputs[0]
    dims = Value(node, 0).dims if cannot_fail(node) else None
    if dims is not None:
        return x if x.dims == dims else None
    if node.type != "Reshape" or x.spec.shape.dims is None:
        return None
    shape = inner(node.inputs[1], "Shape")
    if shape is not None and shape.inputs[0] == x:
        return x
    wanted = ints_of(node.inputs[1])
    if wanted is None or len(wanted) != x.rank or wanted.count(-1) > 1 or 0 in wanted:
        return None
    fits = all(w == -1 or w == d for w, d in zip(wanted, x.spec.shape.dims, strict=True))
    return x if fits else None


@RULES.add(
    *("reshape-of-reshape", "Reshape", "ExpandDims", "Squeeze"),
    reason="the last of several shapes counts: the order of the elements stays",
)
def _reshape_of_reshape(node: Node, replacement: Replacement) -> Value | None:
    first = inner(node.inputs[0], "Reshape", "ExpandDims", "Squeeze")
    if first is None or not cannot_fail(first) or not cannot_fail(node):
        return None
    x, dims = first.inputs[0], Value(node, 0).dims
    if dims is not None:
        return replacement.reshape(x, dims)
    if node.type != "Reshape":
        return None
    wanted = ints_of(node.inputs[1])
    # Of -1 beside 0 the elements alone do not tell what it is.
    if wanted is None or 0 in wanted:
        return None
    return replacement.add("Reshape", x, node.inputs[1])


@RULES.add("stack-of-one", "Stack", "Unstack", reason="of one tensor only the shape changes")
def _stack_of_one(node: Node, replacement: Replacement) -> Value | None:
    dims = Value(node, 0).dims if node.specs else None
    single = len(node.inputs) == 1 and len(node.specs) == 1
    return replacement.reshape(node.inputs[0], dims) if single and dims is not None else None


# -- joining, splitting, padding and indexing


@RULES.add("concat-of-one", "Concat", reason="tensors without elements add nothing to a join")
def _concat_of_one(node: Node, replacement: Replacement) -> Value | None:
    if len(node.inputs) == 1:
        return node.inputs[0]
    filled = [v for v in node.inputs if v.dims is None or 0 not in v.dims]
    if len(filled) == len(node.inputs) or any(v.dims is None for v in filled):
        return None
    kept = filled or [node.inputs[0]]
    if not filled and Value(node, 0).dims != node.inputs[0].dims:
        return None
    return kept[0] if len(kept) == 1 else replacement.add("Concat", kept, **node.attrs)


@RULES.add("concat-of-concat", "Concat", reason="joins along one axis are one join")
def _concat_of_concat(node: Node, replacement: Replacement) -> Value | None:
    rank = Value(node, 0).rank
    if rank is None:
        return None
    parts: list[Value] = []
    for value in node.inputs:
        joined = inner(value, "Concat")
        same = joined is not None and joined.attrs["axis"] % rank == node.attrs["axis"] % rank
        if joined is not None and same and len(joined.users) == 1 and not joined.fetched:
            parts.extend(joined.inputs)
        else:
            parts.append(value)
    return (
        None if len(parts) == len(node.inputs) else replacement.add("Concat", parts, **node.attrs)
    )


@RULES.add("split-into-one", "Split", "SplitBy", reason="the only part is the whole")
def _split_into_one(node: Node, replacement: Replacement) -> Value | None:
    x = node.inputs[0]
    return x if len(node.specs) == 1 and x.dims is not None and x.dims == node_dims(node) else None


def node_dims(node: Node) -> tuple[int, ...] | None:
    """Return the shape of a node's first output where it is known."""
    return Value(node, 0).dims


@RULES.add("pad-nothing", "Pad", "MirrorPad", reason="a border of no elements")
def _pad_nothing(node: Node, replacement: Replacement) -> Value | None:
    x, paddings = node.inputs[0], array_of(node.inputs[1])
    if paddings is None or paddings.any() or x.spec.shape.rank != len(paddings):
        return None
    return x


@RULES.add("slice-everything", "Slice", reason="the block is the whole tensor")
def _slice_everything(node: Node, replacement: Replacement) -> Value | None:
    x = node.inputs[0]
    begin, size = ints_of(node.inputs[1]), ints_of(node.inputs[2])
    dims = x.spec.shape.dims
    if begin is None or size is None or dims is None or any(begin):
        return None
    whole = all(s == -1 or s == d for s, d in zip(size, dims, strict=True))
    return x if whole else None


@RULES.add(
    *("index-everything", "StridedSlice"),
    reason="the index names every element, in order; at most the shape changes",
)
def _index_everything(node: Node, replacement: Replacement) -> Value | None:
    x = node.inputs[0]
    begin, end, strides = (ints_of(v) for v in node.inputs[1:])
    if begin is None or end is None or strides is None or x.spec.shape.dims is None:
        return None
    index = decode(begin, end, strides, **node.attrs)
    if sum(i is not None and i is not Ellipsis for i in index) > len(x.spec.shape.dims):
        return None
    if index in ((), (Ellipsis,)) or all(i == slice(None, None, 1) for i in index):
        return x
    dims = Value(node, 0).dims
    if dims is None or x.dims is None or not _names_all(index, x.dims):
        return None
    return replacement.reshape(x, dims)


def _names_all(index: tuple[Any, ...], dims: tuple[int, ...]) -> bool:
    """Whether an index with new axes, slices and elements leaves out nothing."""
    taken = [i for i in index if i is not None]
    if Ellipsis in taken:
        at = taken.index(Ellipsis)
        gap = len(dims) - len(taken) + 1
        taken[at : at + 1] = [slice(None)] * gap
    for entry, dim in zip(taken, dims, strict=False):
        if isinstance(entry, slice):
            start, stop, step = entry.indices(dim)
            if step != 1 or start != 0 or stop != dim:
                return False
        elif dim != 1 or entry not in (0, -1):
            return False
    return True


@RULES.add("tile-once", "Tile", reason="repeated once along each axis")
def _tile_once(node: Node, replacement: Replacement) -> Value | None:
    times = ints_of(node.inputs[1])
    return node.inputs[0] if times is not None and all(t == 1 for t in times) else None


@RULES.add("tile-units", "Tile", reason="axes of size 1 are repeated by broadcasting")
def _tile_units(node: Node, replacement: Replacement) -> Value | None:
    x, dims = node.inputs[0], Value(node, 0).dims
    if dims is None or x.dims is None:
        return None
    spread = all(a == b or a == 1 for a, b in zip(x.dims, dims, strict=True))
    return replacement.broadcast(x, dims) if spread else None


@RULES.add("reverse-nothing", "Reverse", reason="axes with one element, or none, are reversed")
def _reverse_nothing(node: Node, replacement: Replacement) -> Value | None:
    x, axes = node.inputs[0], ints_of(node.inputs[1])
    if axes is None or x.dims is None:
        return None
    # An axis that is not there is for the kernel to refuse.
    rank = len(x.dims)
    return x if all(-rank <= axis < rank and x.dims[axis] <= 1 for axis in axes) else None
