"""Collectives as programs call them: ``hr.dist.all_reduce`` and its like.

All ranks build and run them in the same order, each with a tensor of its own. They are ordinary
operations with gradients, and none of them may be in a branch of a condition, or in a loop.
"""

from __future__ import annotations

from typing import Any

from headrace import (
    IndexedSlices,
    Operation,
    SparseTensor,
    Tensor,
    cast,
    convert_to_tensor,
    name_scope,
    size,
)
from headrace.errors import ArgumentTypeError, AttributeValueError, GraphError, shown
from headrace.extend.graphs import Function, get_default_graph
from headrace_mpi.ops import collective as ops

# Sums that travel together hold up to so many bytes: few messages, and the first of them leaves
# while the last gradients are still computed.
DEFAULT_BUCKET_BYTES = 32 << 20


def all_reduce(x: Any, op: str = "sum", name: str | None = None) -> Any:
    """Return what the tensors of all ranks make together, element by element.

    Sums go in the order of the ranks: the result has the same bits on all ranks, and in every run.
    Floats of 16 bits are added up as float32, and rounded once. Small tensors that are reduced in
    one step travel together.

    The gradient is that of the sum over all ranks of what each differentiates: the gradients of
    all ranks are reduced in the same way; equal least or largest elements share.

    Args:
        x: Numeric, of one shape and dtype on all ranks. Of an ``IndexedSlices`` the slices of all
            ranks are gathered, for a sum or mean.
        op: ``"sum"``, ``"mean"`` (floating or complex), ``"min"`` or ``"max"`` (not complex).
        name: Name of the operation; the same on all ranks.

    Returns:
        [like ``x``].

    Raises:
        AttributeValueError: if there is no such ``op``.
        DTypeError: if the dtype does not have it.
        GraphError: inside a condition or a loop.
    """
    return bucketed_all_reduce(x, op, DEFAULT_BUCKET_BYTES, name)


def bucketed_all_reduce(x: Any, op: str, bucket_bytes: int, name: str | None = None) -> Any:
    """Return what ``all_reduce`` does, with a size of buckets of one's own."""
    if isinstance(x, IndexedSlices):
        _refuse_inside_functions()
        return _gathered_slices(x, op, name)
    tensor = _tensor(x)
    return ops.all_reduce([tensor], reduction=op, bucket_bytes=bucket_bytes, name=name)[0]


def _gathered_slices(x: IndexedSlices, op: str, name: str | None) -> IndexedSlices:
    if op not in ("sum", "mean"):
        raise AttributeValueError(f"IndexedSlices have op='sum' or 'mean', got {shown(op)}")
    with name_scope(name, "all_reduce_slices", [x.values, x.indices]):
        values, sizes = ops.all_gather(x.values)
        indices, _ = ops.all_gather(x.indices)
        if op == "mean":
            values = values / cast(size(sizes), values.dtype)
    return IndexedSlices(values, indices, x.dense_shape)


def all_gather(x: Any, name: str | None = None) -> Tensor:
    """Return the rows of all ranks, one rank after the other.

    The gradient of a rank's rows is the sum of all ranks' gradients of them.

    Args:
        x: [rows, ...]; ranks may have different numbers of rows, and must agree in the rest.
        name: Name of the operation; the same on all ranks.

    Returns:
        [rows of all ranks, ...], the dtype of ``x``.

    Raises:
        ShapeError: for a scalar.
        GraphError: inside a condition or a loop.
    """
    return ops.all_gather(_tensor(x), name=name)[0]


def reduce_scatter(x: Any, op: str = "sum", name: str | None = None) -> Tensor:
    """Return this rank's rows of what the tensors of all ranks make together.

    The same as the rank's part of ``all_reduce``, for less traffic. The gradient gathers those of
    all rows.

    Args:
        x: [rows, ...], numeric, of one shape and dtype on all ranks.
        op: As for ``all_reduce``.
        name: Name of the operation; the same on all ranks.

    Returns:
        [rows / ranks, ...]; where that is not whole, the first ranks have one row more.

    Raises:
        AttributeValueError: if there is no such ``op``.
        DTypeError: if the dtype does not have it.
        ShapeError: for a scalar.
        GraphError: inside a condition or a loop.
    """
    return ops.reduce_scatter(_tensor(x), reduction=op, name=name)


def broadcast(x: Any, root: int = 0, name: str | None = None) -> Tensor:
    """Return the tensor of one rank, on all ranks.

    The gradient of the root's tensor is the sum of all ranks' gradients, that of others is zero.

    Args:
        x: Of one shape and dtype on all ranks.
        root: Whose tensor it is.
        name: Name of the operation; the same on all ranks.

    Returns:
        [like ``x``].

    Raises:
        AttributeValueError: if ``root`` is negative. One beyond the ranks is an
            InvalidArgumentError of the step.
        GraphError: inside a condition or a loop.
    """
    return ops.broadcast(_tensor(x), root=root, name=name)


def all_to_all(x: Any, name: str | None = None) -> Tensor:
    """Return the rows that all ranks have for this one.

    The rows of each rank are dealt out in equal blocks, the first for rank 0. The gradient deals
    them back.

    Args:
        x: [rows, ...], a multiple of the number of ranks; all else as on the other ranks.
        name: Name of the operation; the same on all ranks.

    Returns:
        [rows for this rank, ...], one sender after the other.

    Raises:
        ShapeError: for a scalar.
        GraphError: inside a condition or a loop.
    """
    return ops.all_to_all(_tensor(x), name=name)[0]


def barrier(name: str | None = None) -> Operation:
    """Return an operation that has run when all ranks have come to it.

    What is to come before it is given by ``hr.control_dependencies``.

    Args:
        name: Name of the operation; the same on all ranks.

    Raises:
        GraphError: inside a condition or a loop.
    """
    _refuse_inside_functions()
    return ops.barrier((), name=name)


def _refuse_inside_functions() -> None:
    graph = get_default_graph()
    if isinstance(graph, Function):
        raise GraphError(
            f"a collective was built inside the function {graph.name!r}, as a condition, a loop or "
            "a data set has: other ranks may run it another number of times, and all would wait "
            "for each other; move it out, and reduce what the condition or loop yields"
        )


def _tensor(x: Any) -> Tensor:
    _refuse_inside_functions()
    if isinstance(x, IndexedSlices | SparseTensor):
        raise ArgumentTypeError(
            f"expected a dense tensor, got {type(x).__name__}; all_reduce takes IndexedSlices"
        )
    return convert_to_tensor(x)
