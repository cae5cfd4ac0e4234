"""Assertions about ranks, shapes and dtypes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, ShapeError, told
from headrace.errors import shown as _shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.operation import Operation
from headrace.graph.scopes import control_dependencies, name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.ops.array import shape, size
from headrace.ops.assertions import Data, static_ok
from headrace.ops.constant import constant
from headrace.ops.control import group, no_op
from headrace.ops.conversion import cast
from headrace.ops.elementwise import equal, greater_equal
from headrace.ops.identity import identity
from headrace.ops.joining import concat, stack
from headrace.ops.reduce import reduce_any
from headrace.ops.report import assert_true


def _first(message: Any) -> str:
    """Return what a message begins with, whatever the program's own words are."""
    return f"{told(message)}: " if message else ""


def _ranks(ranks: Any) -> list[int] | list[Tensor]:
    """Return ranks as numbers where all are known, else as scalar tensors."""
    tensors = [convert_to_tensor(r) for r in ranks]
    for tensor in tensors:
        if not tensor.dtype.is_integer:
            raise DTypeError(f"a rank is an integer, got {tensor.dtype}")
        if tensor.shape.rank not in (None, 0):
            raise ShapeError(f"a rank is a scalar, got shape {tensor.spec.shape}")
    values = [t.spec.value for t in tensors]
    if all(value is not None for value in values):
        return [int(value) for value in values if value is not None]
    return [t if t.shape.rank == 0 else _checked_rank(t) for t in tensors]


def _checked_rank(rank: Tensor) -> Tensor:
    """Return a rank which only the step knows to be one number."""
    with control_dependencies([assert_rank(rank, 0, message="a rank is a scalar")]):
        return identity(rank)


def _ranked(
    x: Any,
    ranks: Any,
    what: str,
    holds: Callable[[int, list[int]], bool],
    compare: Callable[[Tensor, Any], Tensor],
    data: Data,
    summarize: int | None,
    message: str | None,
    name: str | None,
    default_name: str,
) -> Operation:
    with name_scope(name, default_name):
        tensor = x if isinstance(x, SparseTensor) else convert_to_tensor(x)
        wanted = _ranks(ranks)
        known = tensor.shape.rank
        numbers = [r for r in wanted if isinstance(r, int)]
        if known is not None and len(numbers) == len(wanted):
            if holds(known, numbers):
                return static_ok()
            listed = ", ".join(map(str, numbers))
            label = tensor.values.name if isinstance(tensor, SparseTensor) else tensor.name
            said = _first(message)
            raise ShapeError(
                f"{said}{label} must have rank {what}{listed}, got rank {known}, "
                f"{tensor.shape.plain}"
            )
        dims = tensor.dense_shape if isinstance(tensor, SparseTensor) else shape(tensor)
        own = cast(_length(dims), dtypes.int32)
        each = [compare(own, cast(convert_to_tensor(r), dtypes.int32)) for r in wanted]
        shown: list[Any] = items(data or (), "data")
        if data is None:
            title = f"the tensor must have rank {what}"
            shown = [message or "", title, *wanted, "its shape:", dims]
        return assert_true(reduce_any(stack(each)), shown, summarize)


def _length(vector: Tensor) -> Tensor:
    return size(vector)


def assert_rank(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that fails the step unless a tensor has as many axes.

    Args:
        x: A tensor.
        rank: [], the number of axes.
        data: What the error shows; the shape if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs.

    Raises:
        ShapeError: if it is known to have another number of axes.
        DTypeError: if ``rank`` is no integer.
    """
    return _ranked(
        x,
        [rank],
        "",
        lambda known, wanted: known in wanted,
        equal,
        data,
        summarize,
        message,
        name,
        "assert_rank",
    )


def assert_rank_at_least(
    x: Any,
    rank: Any,
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that fails the step unless a tensor has as many axes or more.

    Args:
        x: A tensor.
        rank: [], the least number of axes.
        data: What the error shows; the shape if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs.

    Raises:
        ShapeError: if it is known to have fewer axes.
        DTypeError: if ``rank`` is no integer.
    """
    return _ranked(
        x,
        [rank],
        "at least ",
        lambda known, wanted: known >= wanted[0],
        greater_equal,
        data,
        summarize,
        message,
        name,
        "assert_rank_at_least",
    )


def assert_rank_in(
    x: Any,
    ranks: Sequence[Any],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that fails the step unless a tensor has one of some numbers of axes.

    Args:
        x: A tensor.
        ranks: Numbers of axes.
        data: What the error shows; the shape if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs.

    Raises:
        ShapeError: if it is known to have another number of axes.
        DTypeError: if a rank is no integer.
        AttributeValueError: if there are no ranks.
    """
    if not items(ranks, "ranks"):
        raise AttributeValueError("assert_rank_in needs at least one rank")
    return _ranked(
        x,
        items(ranks, "ranks"),
        "in ",
        lambda known, wanted: known in wanted,
        equal,
        data,
        summarize,
        message,
        name,
        "assert_rank_in",
    )


def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Tensor:
    """Return a tensor that is known to have no axes.

    Args:
        tensor: A tensor, or what converts to one.
        name: The name of the scope.
        message: What the error says first.

    Returns:
        The tensor.

    Raises:
        ShapeError: if it is not known to be a scalar.
    """
    with name_scope(name, "assert_scalar"):
        found = convert_to_tensor(tensor)
        if found.shape.rank != 0:
            said = _first(message)
            raise ShapeError(f"{said}{found.name} must be a scalar, got shape {found.spec.shape}")
        return found


def assert_shapes(
    shapes: Mapping[Any, Any] | Sequence[tuple[Any, Any]],
    data: Sequence[Any] | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Operation:
    """Return an operation that fails the step unless tensors have the shapes that are stated.

    A scalar is taken for a vector of one element, and the shape of a scalar for that of one.

    Args:
        shapes: For each tensor its shape, as pairs or as a dict: a list, tuple, array or string of
            sizes, or None where any shape will do. A size is an integer, or a string that reads
            as one, a symbol (such as "N") that means the same in all shapes, or None or "." for
            any. "...", the object ``...`` or "*" in front stands for any number of axes.
        data: What the error shows; the shape if None.
        summarize: How many elements of each it shows; 3 if None.
        message: What it says first.
        name: The name of the scope.

    Returns:
        The operation, which raises ``InvalidArgumentError`` when it runs.

    Raises:
        ShapeError: if a shape is known to be another one.
    """
    pairs: list[Any] = items(shapes.items() if isinstance(shapes, Mapping) else shapes, "shapes")
    if not all(isinstance(pair, Sequence) and len(pair) == 2 for pair in pairs):
        raise ArgumentTypeError(
            "shapes must be a dict of shapes by tensor, or a list of pairs of a tensor and its "
            f"shape, got {_shown(shapes)}"
        )
    checks: list[Operation] = []
    sizes: dict[Any, Any] = {}
    with name_scope(name, "assert_shapes"):
        for given, stated in pairs:
            tensor = given if isinstance(given, SparseTensor) else convert_to_tensor(given)
            if stated is None:
                continue
            open_ended, symbols = _symbols(stated)
            ranked = _rank_check(tensor, open_ended, len(symbols), data, summarize, message)
            checks += ranked
            dims = tensor.shape.plain.dims
            dims = (1,) if dims == () else dims
            actual = cache(partial(_sizes, tensor, ranked))
            for i, symbol in enumerate(symbols):
                place = i - len(symbols)
                known = None if dims is None else dims[place]
                if symbol in (None, "."):
                    continue
                found: Any = actual()[place] if known is None else known
                wanted = symbol if isinstance(symbol, int) else sizes.setdefault(symbol, found)
                if wanted is found:
                    continue
                if isinstance(wanted, int) and isinstance(known, int):
                    if wanted != known:
                        said = _first(message)
                        raise ShapeError(
                            f"{said}axis {place} of shape {tensor.shape.plain} must have size "
                            f"{wanted}"
                            + ("" if isinstance(symbol, int) else f", as {symbol!r} has elsewhere")
                        )
                    continue
                title = f"axis {place} must have the size of {symbol!r}:"
                shown = [message or "", title, wanted, "the shape:", actual()]
                holds = equal(wanted, found)
                checks.append(assert_true(holds, shown if data is None else data, summarize))
        return group(*checks, name="all_checked") if checks else static_ok()


def _rank_check(
    x: Any, open_ended: bool, rank: int, data: Data, summarize: int | None, message: str | None
) -> list[Operation]:
    """Return what checks the number of axes; nothing where any will do."""
    if open_ended:
        if rank == 1:
            return []
        return [assert_rank_at_least(x, rank, data, summarize, message)]
    if rank == 1:
        return [assert_rank_in(x, [0, 1], data, summarize, message)]
    return [assert_rank(x, rank, data, summarize, message)]


def _sizes(x: Tensor | SparseTensor, checks: Sequence[Operation]) -> Tensor:
    """Return [rank], the sizes of a tensor once its rank is checked; [1] of a scalar."""
    with control_dependencies(checks):
        dims = cast(
            identity(x.dense_shape if isinstance(x, SparseTensor) else shape(x)), dtypes.int32
        )
    if x.shape.rank is None:
        one = constant([1], dtypes.int32)
        # What a scalar has too few, [1] fills up.
        return concat([one[_length(dims) :], dims], 0)
    return dims if x.shape.rank else constant([1], dtypes.int32)


def _symbols(stated: Any) -> tuple[bool, list[Any]]:
    """Return whether any number of axes comes first, and the sizes of the others."""
    if not isinstance(stated, Iterable):
        raise ShapeError(f"a shape is a list, a tuple or a string, got {_shown(stated)}")
    parts = list(stated.replace("...", "*") if isinstance(stated, str) else stated)
    marks = [i for i, part in enumerate(parts) if part is ... or part in ("...", "*")]
    if any(marks):
        raise ShapeError(
            f"what stands for any number of axes must come first in a shape, got {_shown(stated)}"
        )
    symbols = [_size(part) for part in parts[len(marks) :]]
    return bool(marks), symbols or [1]


def _size(part: Any) -> Any:
    """Return a size as an integer where it can be read as one, else as it is."""
    try:
        return int(part)
    except (TypeError, ValueError):
        return part


# -- dtypes


def assert_type(
    tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None
) -> Operation:
    """Check the dtype of a tensor, at once.

    Args:
        tensor: A tensor, sparse tensor or variable.
        tf_type: The dtype.
        message: What the error says first.
        name: The name of the scope.

    Returns:
        An operation that does nothing.

    Raises:
        DTypeError: if it has another dtype.
    """
    wanted = as_dtype(tf_type)
    with name_scope(name, "assert_type"):
        found = tensor if isinstance(tensor, SparseTensor) else convert_to_tensor(tensor)
        if found.dtype != wanted:
            said = _first(message)
            raise DTypeError(f"{said}{_shown(found)} must be of dtype {wanted}, got {found.dtype}")
        return no_op(name="statically_determined_correct_type")


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> Operation:
    """Check that the dtype of a tensor is one of integers, at once.

    Args:
        x: A tensor.
        message: What the error says first.
        name: The name of the scope.

    Returns:
        An operation that does nothing.

    Raises:
        DTypeError: if it has another dtype.
    """
    with name_scope(name, "assert_integer"):
        found = convert_to_tensor(x)
        if not found.dtype.is_integer:
            said = _first(message)
            raise DTypeError(
                f"{said}{_shown(found)} must be of an integer dtype, got {found.dtype}"
            )
        return no_op(name="statically_determined_was_integer")


def assert_same_float_dtype(tensors: Sequence[Any] | None = None, dtype: Any = None) -> DType:
    """Return the floating dtype that tensors share.

    Args:
        tensors: Tensors, of which some may be None.
        dtype: The dtype that they must have; theirs if None.

    Returns:
        The dtype; float32 if nothing states it.

    Raises:
        DTypeError: if they have different dtypes, or one that is not floating.
    """
    wanted = None if dtype is None else as_dtype(dtype)
    for tensor in items(tensors, "tensors") if tensors else ():
        if tensor is None:
            continue
        own = tensor if hasattr(tensor, "dtype") else convert_to_tensor(tensor)
        found = as_dtype(own.dtype)
        if wanted is not None and found != wanted:
            raise DTypeError(f"{_shown(tensor)} is {found}, expected {wanted} as before")
        wanted = found
    if wanted is None:
        return dtypes.float32
    if not wanted.is_floating:
        raise DTypeError(f"expected a floating dtype, got {wanted}")
    return wanted


def assert_proper_iterable(values: Any) -> None:
    """Check that a value is a list of values, and neither a tensor, an array nor a string.

    Args:
        values: The value.

    Raises:
        DTypeError: if it is not.
    """
    single = (Tensor, SparseTensor, np.ndarray, str, bytes)
    is_tensor = isinstance(values, single) or hasattr(values, "_as_tensor")
    if is_tensor or not hasattr(values, "__iter__"):
        raise DTypeError(f"expected a list of values, got {type(values).__name__}")


def is_numeric_tensor(tensor: Any) -> bool:
    """Return whether a value is a tensor of numbers (booleans and strings are none).

    Args:
        tensor: Anything.
    """
    return isinstance(tensor, Tensor | SparseTensor) and tensor.dtype.is_numeric
