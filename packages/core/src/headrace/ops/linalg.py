"""Linear algebra."""

from __future__ import annotations

from headrace.errors import ShapeError
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Numeric
from headrace.shapes import Shape, broadcast


@op("MatMul")
def matmul(a: Numeric, b: Numeric, transpose_a: bool = False, transpose_b: bool = False) -> Spec:
    """Matrix product of the last two axes; leading axes broadcast.

    Args:
        a: [..., n, k] ([..., k, n] where transposed), numeric.
        b: [..., k, m] ([..., m, k] where transposed), the dtype of ``a``.
        transpose_a: Swap the last two axes of ``a`` first.
        transpose_b: Swap the last two axes of ``b`` first.

    Returns:
        [..., n, m], the dtype of ``a``.
    """
    for part, label in ((a, "a"), (b, "b")):
        if part.rank is not None and part.rank < 2:
            raise ShapeError(
                f"{label} must have at least 2 dimensions, got shape {part.shape}; give a vector "
                "an axis with hr.expand_dims or hr.reshape"
            )
    if a.shape.dims is None or b.shape.dims is None:
        return TensorSpec(a.dtype)
    rows, inner_a = a.shape[-2], a.shape[-1]
    inner_b, columns = b.shape[-2], b.shape[-1]
    if transpose_a:
        rows, inner_a = inner_a, rows
    if transpose_b:
        inner_b, columns = columns, inner_b
    if inner_a is not None and inner_b is not None and inner_a != inner_b:
        raise ShapeError(
            f"inner dimensions differ: {inner_a} of a {a.shape}"
            f"{' transposed' if transpose_a else ''} against {inner_b} of b {b.shape}"
            f"{' transposed' if transpose_b else ''}"
        )
    batch = broadcast(a.shape[:-2], b.shape[:-2])
    return TensorSpec(a.dtype, batch.concatenate(Shape([rows, columns])))
