"""Rules for programs that take a tensor apart slice by slice, and that look rows up."""

from __future__ import annotations

from functools import reduce

from headrace.ops.indexing import decode
from headrace.passes.simplify.matching import inner, ints_of, only_user
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()


@RULES.add(
    *("picks-of-distinct", "Gather"),
    reason="rows of distinct indices, picked by the place of each, are the rows of the indices",
    after=("Gather",),
)
def _picks_of_distinct(node: Node, replacement: Replacement) -> Value | None:
    rows, places = node.inputs
    first, found = inner(rows, "Gather"), inner(places, "Unique")
    if first is None or found is None or places.slot != 1 or not only_user(first):
        return None
    if first.inputs[1] != Value(found, 0) or first.attrs["axis"] or first.attrs["batch_dims"]:
        return None
    if node.attrs["axis"] or node.attrs["batch_dims"]:
        return None
    return replacement.add("Gather", first.inputs[0], found.inputs[0], **node.attrs)


@RULES.add(
    *("gradients-of-all-slices", "Add"),
    reason="each slice's gradient is zero elsewhere: joined they are the sum",
    after=("StridedSliceGrad", "Add"),
)
def _gradients_of_all_slices(node: Node, replacement: Replacement) -> Value | None:
    dims = Value(node, 0).dims
    # Sums of sums are looked at as a whole, from the last one on.
    inside = only_user(node) and next(iter(node.users)).type == "Add"
    if dims is None or inside:
        return None
    terms = _terms(node, dims)
    # For each axis, which term is the gradient of the slice at an index.
    slices: dict[int, dict[int, int]] = {}
    for number, term in enumerate(terms):
        place = _place(term, dims)
        if place is not None:
            axis, index = place
            slices.setdefault(axis, {}).setdefault(index, number)
    for axis, found in slices.items():
        if len(found) == dims[axis] > 1:
            parts = [terms[found[i]].node.inputs[4] for i in range(dims[axis])]
            used = set(found.values())
            rest = [term for number, term in enumerate(terms) if number not in used]
            joined = replacement.add("Stack", parts, axis=axis)
            return reduce(lambda x, y: replacement.add("Add", x, y), rest, joined)
    return None


def _terms(node: Node, dims: tuple[int, ...]) -> list[Value]:
    """Return what a sum adds up, in order, looking through sums that only it uses."""
    terms: list[Value] = []
    left = list(reversed(node.inputs))
    while left:
        value = left.pop()
        inner = value.node
        if inner.type == "Add" and not inner.controls and only_user(inner) and value.dims == dims:
            left.extend(reversed(inner.inputs))
        else:
            terms.append(value)
    return terms


def _place(value: Value, dims: tuple[int, ...]) -> tuple[int, int] | None:
    """Return the axis and the index of the one slice of which a value is the gradient."""
    node = value.node
    if node.type != "StridedSliceGrad" or node.controls or value.dims != dims:
        return None
    begin, end, strides = (ints_of(bound) for bound in node.inputs[1:4])
    if begin is None or end is None or strides is None:
        return None
    attrs = node.attrs
    index = decode(begin, end, strides, attrs["entries"], attrs["open_begin"], attrs["open_end"])
    if Ellipsis in index:
        at = index.index(Ellipsis)
        missing = len(dims) - (len(index) - 1)
        index = (*index[:at], *[slice(None)] * missing, *index[at + 1 :])
    named = [axis for axis, entry in enumerate(index) if isinstance(entry, int)]
    whole = (slice(None), slice(None, None, 1))
    others = all(entry in whole for axis, entry in enumerate(index) if axis not in named)
    if len(named) != 1 or not others:
        return None
    axis, place = named[0], index[named[0]]
    # One that is out of range is refused when it runs.
    return (axis, place % dims[axis]) if -dims[axis] <= place < dims[axis] else None
