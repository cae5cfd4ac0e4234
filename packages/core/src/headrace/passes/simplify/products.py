"""A rule for products of many small matrices, which are a few sums of elements each."""

from __future__ import annotations

from functools import reduce
from math import prod

from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()

# A library calls a function for each matrix: that takes longer than computing so few elements of
# so few terms. With fewer matrices than these there is nothing to gain.
_FEWEST, _MOST_TERMS, _MOST_ROWS, _MOST_COLUMNS = 32, 4, 8, 8


@RULES.add(
    *("small-products", "MatMul"),
    reason="each element of a product of small matrices is a sum of a few products; the sum is "
    "that of the product, but for the sign of a zero, within rounding",
)
def _small_products(node: Node, replacement: Replacement) -> Value | None:
    (a, b), dims = node.inputs, Value(node, 0).dims
    if dims is None or a.dims is None or b.dims is None or len(dims) < 3:
        return None
    if node.specs[0].dtype.name not in ("float32", "float64"):
        return None
    down, across = node.attrs["transpose_a"], node.attrs["transpose_b"]
    terms = a.dims[-2] if down else a.dims[-1]
    rows, columns = dims[-2:]
    if prod(dims[:-2]) < _FEWEST or not 0 < terms <= _MOST_TERMS:
        return None
    if min(prod(a.dims[:-2]), prod(b.dims[:-2])) == 1:
        # One matrix times many is one product of larger ones.
        return None
    if not 0 < rows <= _MOST_ROWS or not 0 < columns <= _MOST_COLUMNS:
        return None
    left = [_part(replacement, a, i, -2 if down else -1, (rows, 1)) for i in range(terms)]
    right = [_part(replacement, b, i, -1 if across else -2, (1, columns)) for i in range(terms)]
    products = [replacement.add("Mul", x, y) for x, y in zip(left, right, strict=True)]
    return reduce(lambda x, y: replacement.add("Add", x, y), products)


def _part(
    replacement: Replacement, x: Value, index: int, axis: int, shape: tuple[int, int]
) -> Value:
    """Return one row or column of each matrix, as a matrix of another shape."""
    assert x.dims is not None
    begin, size = [0] * len(x.dims), list(x.dims)
    begin[axis], size[axis] = index, 1
    part = replacement.add(
        "Slice", x, replacement.shape_vector(begin), replacement.shape_vector(size)
    )
    return replacement.reshape(part, (*x.dims[:-2], *shape))
