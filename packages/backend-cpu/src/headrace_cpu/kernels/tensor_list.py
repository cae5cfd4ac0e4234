"""Kernels of lists of tensors. Lists are immutable; their items are arrays of the device."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from headrace.errors import InvalidInputError
from headrace.extend import KernelTable
from headrace.extend.kernels import ListValue, MissingItems, StackedItems, TensorSpec
from headrace_cpu.kernels.numeric import Array

KERNELS = KernelTable()

# No list is longer: what asks for more is a mistake, and would only fill the memory.
MAX_LENGTH = 1 << 28
_ROWS_AT_ONCE = 1024


def _index(value: Any, length: int, what: str = "index") -> int:
    found = int(value)
    if not 0 <= found < length:
        raise InvalidInputError(f"{what} {found} is out of range for a list of {length} tensors")
    return found


def _shape(zeros: Any) -> tuple[int, ...]:
    return tuple(int(d) for d in np.asarray(zeros).tolist())


def _present(context: Any, op_items: ListValue, index: int, zeros: Any) -> Any:
    found = op_items.item(index, context.device)
    return _missing(context, index, zeros) if found is None else found


def _missing(context: Any, index: int, zeros: Any) -> Any:
    """Return what a missing item reads as."""
    if zeros is None:
        raise InvalidInputError(f"item {index} of the list was read before it was set")
    dtype = _dtype(context)
    if np.dtype(dtype).kind == "O":
        # Zeros of strings are empty ones.
        return np.full(_shape(zeros), b"", object)
    return context.xp.zeros(_shape(zeros), dtype)


def _dtype(context: Any) -> Any:
    """Return the NumPy dtype of the items of the list that a node reads."""
    return context.item_spec.dtype.numpy


@KERNELS.stateful("TensorListReserve")
def reserve(context: Any, size: Array, *, spec: TensorSpec) -> ListValue:
    """Return a list without items in it."""
    count = int(size)
    if not 0 <= count <= MAX_LENGTH:
        raise InvalidInputError(f"a list has between 0 and {MAX_LENGTH} tensors, got size {count}")
    return ListValue(MissingItems(count))


@KERNELS.stateful("TensorListZerosLike")
def zeros_like(context: Any, items: ListValue) -> ListValue:
    """Return a list of missing items."""
    return ListValue(MissingItems(len(items)))


@KERNELS.stateful("TensorListLength")
def length(context: Any, items: ListValue) -> Array:
    """Return the number of items."""
    return context.xp.asarray(np.int32(len(items)))


@KERNELS.stateful("TensorListPush")
def push(context: Any, items: ListValue, value: Any) -> ListValue:
    """Append an item."""
    return ListValue((*items.items, value))


@KERNELS.stateful("TensorListPop")
def pop(context: Any, items: ListValue, zeros: Any = None) -> tuple[ListValue, Any]:
    """Take the last item off."""
    try:
        rest, item = items.parted(context.device)
    except IndexError:
        raise InvalidInputError("an empty list has no last tensor") from None
    return rest, _missing(context, len(rest), zeros) if item is None else item


@KERNELS.stateful("TensorListGet")
def get(context: Any, items: ListValue, index: Array, zeros: Any = None) -> Any:
    """Read an item."""
    return _present(context, items, _index(index, len(items)), zeros)


@KERNELS.stateful("TensorListSet")
def set_(
    context: Any, items: ListValue, index: Array, value: Any, *, grows: bool, once: bool
) -> ListValue:
    """Replace an item."""
    at, made = int(index), list(items.items)
    if 0 <= at < len(made) and not (once and made[at] is not None):
        made[at] = value
        return ListValue(made)
    return _placed(items, [int(index)], [value], grows, once)


def _placed(
    items: ListValue, indices: Iterable[int], values: Iterable[Any], grows: bool, once: bool
) -> ListValue:
    made = list(items.items)
    for index, value in zip(indices, values, strict=True):
        if grows and 0 <= index <= MAX_LENGTH:
            made.extend([None] * (index + 1 - len(made)))
        _index(index, len(made))
        if once and made[index] is not None:
            raise InvalidInputError(
                f"item {index} of the list was written already; a TensorArray is written once"
            )
        made[index] = value
    return ListValue(made)


@KERNELS.stateful("TensorListClear")
def clear(context: Any, items: ListValue, index: Array) -> ListValue:
    """Let an item be missing."""
    at = _index(index, len(items))
    made = list(items.items)
    made[at] = None
    return ListValue(made)


@KERNELS.stateful("TensorListAdd")
def add(context: Any, left: ListValue, right: ListValue) -> ListValue:
    """Add item by item."""
    if len(left) != len(right):
        raise InvalidInputError(f"lists of {len(left)} and {len(right)} tensors cannot be added")
    return ListValue(map(_sum, left.arrays(context.device), right.arrays(context.device)))


def _sum(left: Any, right: Any) -> Any:
    if left is None or right is None:
        return right if left is None else left
    if isinstance(left, ListValue):
        return ListValue(map(_sum, left.items, right.items))
    return left + right


@KERNELS.stateful("TensorListStack")
def stack(context: Any, items: ListValue, zeros: Any = None) -> Array:
    """Join all items along a new axis."""
    stacked = items.stacked
    if stacked is not None and len(stacked):
        return context.xp.array(stacked)
    return _joined(context, items, range(len(items)), zeros)


def _joined(context: Any, items: ListValue, indices: Iterable[int], zeros: Any) -> Array:
    parts = [_present(context, items, i, zeros) for i in indices]
    if parts:
        _check_same_shape(parts)
        shape = parts[0].shape
        # As rows of one array, where there are rows: ``stack`` makes a view of each part first.
        if not shape:
            return context.xp.stack(parts)
        return context.xp.concatenate(parts).reshape(len(parts), *shape)
    return context.xp.zeros((0, *_shape_of_none(context, zeros)), _dtype(context))


def _check_same_shape(parts: list[Any]) -> None:
    for i, part in enumerate(parts):
        if part.shape != parts[0].shape:
            raise InvalidInputError(
                f"items of different shapes cannot be stacked: item 0 is {parts[0].shape}, item "
                f"{i} is {part.shape}"
            )


def _shape_of_none(context: Any, zeros: Any) -> tuple[int, ...]:
    if zeros is not None:
        return _shape(zeros)
    shape = context.item_spec.shape
    if not shape.is_fully_defined():
        raise InvalidInputError(
            f"an empty list has no shape: its items' shape is only known as {shape}; give the "
            "TensorArray an element_shape"
        )
    return tuple(shape.known)


@KERNELS.stateful("TensorListUnstack")
def unstack(context: Any, value: Array) -> ListValue:
    """Take an array apart."""
    if not value.ndim:
        raise InvalidInputError("a scalar has no axis along which to take it apart")
    return ListValue(StackedItems(value))


@KERNELS.stateful("TensorListGather")
def gather(context: Any, items: ListValue, indices: Array, zeros: Any = None) -> Array:
    """Join some items along a new axis."""
    chosen = [_index(i, len(items)) for i in np.asarray(indices.tolist(), np.int64)]
    return _joined(context, items, chosen, zeros)


@KERNELS.stateful("TensorListScatter")
def scatter(
    context: Any, items: ListValue, indices: Array, value: Array, *, grows: bool, once: bool
) -> ListValue:
    """Replace items by parts of an array."""
    if indices.shape != value.shape[:1]:
        raise InvalidInputError(
            f"{indices.size} indices for the parts of a tensor of shape {list(value.shape)}"
        )
    parts = [value[i, ...] for i in range(value.shape[0])]
    return _placed(items, [int(i) for i in indices.tolist()], parts, grows, once)


@KERNELS.stateful("TensorListAccumulate")
def accumulate(context: Any, items: ListValue, indices: Array, value: Array) -> ListValue:
    """Add parts of an array to items."""
    if indices.shape != value.shape[:1]:
        raise InvalidInputError(
            f"{indices.size} indices for the parts of a tensor of shape {list(value.shape)}"
        )
    made = items.arrays(context.device)
    for i, at in enumerate(indices.tolist()):
        made[at] = _sum(made[_index(at, len(made))], value[i, ...])
    return ListValue(made)


@KERNELS.stateful("TensorListResize")
def resize(context: Any, items: ListValue, size: Array) -> ListValue:
    """Cut the end off, or append missing items."""
    count = int(size)
    if not 0 <= count <= MAX_LENGTH:
        raise InvalidInputError(f"a list has between 0 and {MAX_LENGTH} tensors, got size {count}")
    return ListValue((*items.items[:count], *([None] * (count - len(items)))))


@KERNELS.stateful("TensorListConcat")
def concat(context: Any, items: ListValue, zeros: Any = None) -> tuple[Array, Array]:
    """Join all items along their first axis."""
    xp = context.xp
    parts = [_present(context, items, i, zeros) for i in range(len(items))]
    if any(not part.ndim for part in parts):
        raise InvalidInputError("scalars cannot be joined along an axis; stack them")
    if any(part.shape[1:] != parts[0].shape[1:] for part in parts):
        raise InvalidInputError("items that differ in more than their first axis cannot be joined")
    lengths = xp.asarray(np.array([part.shape[0] for part in parts], np.int64))
    if parts:
        return xp.concatenate(parts), lengths
    rest = _shape_of_none(context, zeros)[1:]
    return xp.zeros((0, *rest), _dtype(context)), lengths


@KERNELS.stateful("TensorListSplit")
def split(context: Any, value: Array, lengths: Array) -> ListValue:
    """Take an array apart into parts of given lengths."""
    counts = [int(n) for n in lengths.tolist()]
    if not value.ndim:
        raise InvalidInputError("a scalar has no axis along which to take it apart")
    if any(n < 0 for n in counts) or sum(counts) != value.shape[0]:
        raise InvalidInputError(
            f"lengths {counts[:10]} do not add up to the {value.shape[0]} rows of the tensor"
        )
    ends = np.cumsum([0, *counts])
    return ListValue([value[a:b] for a, b in itertools.pairwise(ends)])


@KERNELS.stateful("TensorListSumProducts")
def sum_products(context: Any, left: ListValue, right: ListValue) -> Array:
    """Add up the products of items."""
    total = None
    for one, other in factors(context, left, right):
        product = context.xp.matmul(one.T, other)
        total = product if total is None else context.xp.add(total, product, out=total)
    if total is not None:
        return total
    shape = [items.content.shape[1] for items in context.inputs]
    return context.xp.zeros(shape, _dtype(context))


def factors(context: Any, left: ListValue, right: ListValue) -> Iterator[tuple[Array, Array]]:
    """Yield the rows of two lists' items, of many items at once.

    A product of many rows is quicker than one for each item; so few are joined at once that the
    copies stay in near caches.
    """
    if len(left) != len(right):
        raise InvalidInputError(
            f"lists of {len(left)} and {len(right)} tensors cannot be multiplied item by item"
        )
    stacked, first = left.stacked, 0
    height = 0 if stacked is None else stacked.shape[1]
    while first < len(left):
        rows, last = 0, first
        while last < len(left) and rows < _ROWS_AT_ONCE:
            rows += height or _present(context, left, last, None).shape[0]
            last += 1
        yield _rows(context, left, first, last), _rows(context, right, first, last)
        first = last


def _rows(context: Any, items: ListValue, first: int, last: int) -> Array:
    """Return some items' rows, one item behind the other."""
    stacked = items.stacked
    if stacked is not None:
        return stacked[first:last].reshape(-1, stacked.shape[2])
    parts = [_present(context, items, i, None) for i in range(first, last)]
    return parts[0] if len(parts) == 1 else context.xp.concatenate(parts)
