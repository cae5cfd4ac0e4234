"""Blocks of images and sequences, moved into the channels or the batch, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.graph.attributes import as_text
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_int, as_ints, one_of
from headrace.ops.array import concat, pad, reshape, shape, stack, transpose
from headrace.ops.identity import ensure_shape
from headrace.ops.indexing import slice_
from headrace.ops.reduce import reduce_prod
from headrace.shapes import Shape


def sizes_of(x: Tensor) -> list[Any]:
    """Return the sizes of a tensor of known rank: numbers, and scalar tensors where unknown."""
    if None not in x.shape.as_list():
        return x.shape.as_list()
    dynamic = shape(x)
    return [dynamic[i] if d is None else d for i, d in enumerate(x.spec.shape)]


def product_of(sizes: Sequence[Any]) -> Any:
    """Return the product of sizes, each a number or a scalar tensor."""
    known = math.prod(s for s in sizes if isinstance(s, int))
    for part in sizes:
        known = known if isinstance(part, int) else part * known
    return known


def _divided(dim: Any, by: Any, what: str) -> Any:
    if isinstance(by, int) and by < 1:
        raise AttributeValueError(f"{what}: a block's size must be >= 1, got {told(by)}")
    if isinstance(dim, int) and isinstance(by, int):
        if dim % by:
            raise ShapeError(f"{what}: size {told(dim)} does not divide by {told(by)}")
        return dim // by
    # What is left over makes the elements not fit, which the step refuses.
    return dim // by


def _image(input: Any, block_size: Any, data_format: str, what: str) -> Tensor:
    if data_format not in ("NHWC", "NCHW"):
        raise AttributeValueError(
            f"{what}: data_format must be NHWC or NCHW, got {shown(data_format)}"
        )
    if not isinstance(block_size, int | np.integer) or block_size < 2:
        raise AttributeValueError(
            f"{what}: block_size must be an integer >= 2, got {told(block_size)}"
        )
    x = convert_to_tensor(input)
    if x.shape.rank is None:
        x = call_op("EnsureShape", x, Shape([None] * 4))
    x.shape.assert_has_rank(4)
    return x


@names_result
def space_to_depth(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Move blocks of each image into its channels.

    Args:
        input: [batch, height, width, channels], or [batch, channels, height, width] if
            ``data_format`` is "NCHW"; any dtype.
        block_size: The height and width of a block, 2 at least.
        name: The name of the operations.
        data_format: "NHWC" or "NCHW".

    Returns:
        Height and width divided by the block's, channels times the elements of a block.

    Raises:
        ShapeError: if height or width is known not to divide by the block's.
    """
    with name_scope(name, "SpaceToDepth"):
        data_format = as_text(data_format)
        x = _image(input, block_size, data_format, "space_to_depth")
        n = int(block_size)
        batch, *dims = sizes_of(x)
        if data_format == "NHWC":
            high, wide, deep = dims
            rows, columns = (_divided(d, n, "space_to_depth") for d in (high, wide))
            split = reshape(x, [batch, rows, n, columns, n, deep])
            moved = transpose(split, [0, 1, 3, 2, 4, 5])
            return reshape(moved, [batch, rows, columns, deep * (n * n)])
        deep, high, wide = dims
        rows, columns = (_divided(d, n, "space_to_depth") for d in (high, wide))
        split = reshape(x, [batch, deep, rows, n, columns, n])
        moved = transpose(split, [0, 3, 5, 1, 2, 4])
        return reshape(moved, [batch, deep * (n * n), rows, columns])


@names_result
def depth_to_space(
    input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC"
) -> Tensor:
    """Move channels of each image into blocks of it.

    Args:
        input: [batch, height, width, channels], or [batch, channels, height, width] if
            ``data_format`` is "NCHW"; any dtype.
        block_size: The height and width of a block, 2 at least.
        name: The name of the operations.
        data_format: "NHWC" or "NCHW".

    Returns:
        Height and width times the block's, channels divided by the elements of a block.

    Raises:
        ShapeError: if the channels are known not to divide so.
    """
    with name_scope(name, "DepthToSpace"):
        data_format = as_text(data_format)
        x = _image(input, block_size, data_format, "depth_to_space")
        n = int(block_size)
        batch, *dims = sizes_of(x)
        if data_format == "NHWC":
            high, wide, deep = dims
            rest = _divided(deep, n * n, "depth_to_space")
            split = reshape(x, [batch, high, wide, n, n, rest])
            moved = transpose(split, [0, 1, 3, 2, 4, 5])
            return reshape(moved, [batch, high * n, wide * n, rest])
        deep, high, wide = dims
        rest = _divided(deep, n * n, "depth_to_space")
        split = reshape(x, [batch, n, n, rest, high, wide])
        moved = transpose(split, [0, 3, 4, 1, 5, 2])
        return reshape(moved, [batch, rest, high * n, wide * n])


def _block_sizes(block_shape: Any, what: str) -> list[Any]:
    """Return the sizes of a block: numbers, or scalar tensors."""
    given = as_ints(block_shape, "block_shape")
    if isinstance(given, Tensor):
        if given.shape.rank != 1 or not given.shape.is_fully_defined():
            raise ShapeError(
                f"{what}: block_shape must be a vector of known length, got {shown(given)}"
            )
        return [given[i] for i in range(given.spec.shape[0])]
    sizes = [given] if isinstance(given, int) else given
    if any(not isinstance(s, int) or s < 1 for s in sizes):
        raise AttributeValueError(f"{what}: block_shape must hold integers >= 1, got {sizes}")
    return list(sizes)


def _pairs(value: Any, count: int, what: str) -> list[tuple[Any, Any]]:
    """Return paddings or crops as pairs of numbers, or of scalar tensors."""
    given = as_ints(value, what)
    if isinstance(given, Tensor):
        if not given.shape.is_compatible_with([count, 2]):
            raise ShapeError(f"{what} must have shape {[count, 2]}, got {given.spec.shape}")
        return [(given[i, 0], given[i, 1]) for i in range(count)]
    try:
        found = np.array(given, np.int64)
    except (ValueError, OverflowError):
        raise ShapeError(f"{what} must be pairs of integers, got {given}") from None
    if found.shape != (count, 2) and found.size:
        raise ShapeError(f"{what} must have shape {[count, 2]}, got {list(found.shape)}")
    if (found < 0).any():
        raise AttributeValueError(f"{what} must be >= 0, got {given}")
    return [(int(a), int(b)) for a, b in found.reshape(-1, 2)]


def _batched(input: Any, blocks: Sequence[Any], what: str) -> Tensor:
    x = convert_to_tensor(input)
    if x.shape.rank is not None and x.shape.rank <= len(blocks):
        raise ShapeError(
            f"{what}: {len(blocks)} block sizes need more axes than {x.spec.shape} has"
        )
    return x


def _in_one_axis(x: Tensor, lead: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Apply a function of known rank to a tensor of unknown rank, its last axes made one."""
    sizes = shape(x)
    rest = sizes[lead:]
    flat = reshape(x, concat([sizes[:lead], reduce_prod(rest, 0, keepdims=True)], 0))
    found = function(ensure_shape(flat, [None] * (lead + 1)))
    return reshape(found, concat([shape(found)[:lead], rest], 0))


@names_result
def space_to_batch_nd(
    input: Any, block_shape: Any, paddings: Any, name: str | None = None
) -> Tensor:
    """Move blocks of the spatial axes into the batch.

    Args:
        input: [batch, spatial..., ...], any dtype.
        block_shape: [m], the sizes of a block along the m spatial axes, a list or a tensor.
        paddings: [m, 2], how many zeros come before and after along each of them, first.
        name: The name of the operations.

    Returns:
        Batch times the elements of a block, padded sizes divided by the block's.

    Raises:
        ShapeError: if a padded size is known not to divide by the block's.
    """
    with name_scope(name, "SpaceToBatchND"):
        blocks = _block_sizes(block_shape, "space_to_batch_nd")
        x = _batched(input, blocks, "space_to_batch_nd")
        m = len(blocks)
        if x.shape.rank is None:
            return _in_one_axis(x, m + 1, lambda t: space_to_batch_nd(t, block_shape, paddings))
        pairs = _pairs(paddings, m, "paddings")
        borders = [(0, 0), *pairs, *[(0, 0)] * (x.shape.rank - m - 1)]
        padded = pad(x, [list(pair) for pair in borders])
        batch, *dims = sizes_of(x)
        whole = [d + (a + b) for d, (a, b) in zip(dims[:m], pairs, strict=True)]
        parts = [_divided(d, n, "space_to_batch_nd") for d, n in zip(whole, blocks, strict=True)]
        inner = [s for pair in zip(parts, blocks, strict=True) for s in pair]
        rest = dims[m:]
        split = reshape(padded, [batch, *inner, *rest])
        order = [
            *range(2, 2 * m + 2, 2),
            0,
            *range(1, 2 * m + 1, 2),
            *range(2 * m + 1, 2 * m + 1 + len(rest)),
        ]
        return reshape(transpose(split, order), [product_of([batch, *blocks]), *parts, *rest])


@names_result
def batch_to_space_nd(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Move parts of the batch into blocks of the spatial axes: undo ``space_to_batch_nd``.

    Args:
        input: [batch, spatial..., ...], any dtype.
        block_shape: [m], the sizes of a block along the m spatial axes, a list or a tensor.
        crops: [m, 2], how many elements are dropped before and after along each of them, last.
        name: The name of the operations.

    Returns:
        Batch divided by the elements of a block, sizes times the block's, less the crops.

    Raises:
        ShapeError: if the batch is known not to divide so, or to have less than is cropped.
    """
    with name_scope(name, "BatchToSpaceND"):
        blocks = _block_sizes(block_shape, "batch_to_space_nd")
        x = _batched(input, blocks, "batch_to_space_nd")
        m = len(blocks)
        if x.shape.rank is None:
            return _in_one_axis(x, m + 1, lambda t: batch_to_space_nd(t, block_shape, crops))
        pairs = _pairs(crops, m, "crops")
        batch, *dims = sizes_of(x)
        spatial, rest = dims[:m], dims[m:]
        images = _divided(batch, product_of(blocks), "batch_to_space_nd")
        split = reshape(x, [*blocks, images, *spatial, *rest])
        order = [m]
        for i in range(m):
            order += [m + 1 + i, i]
        order += list(range(2 * m + 1, 2 * m + 1 + len(rest)))
        whole = [d * n for d, n in zip(spatial, blocks, strict=True)]
        grown = reshape(transpose(split, order), [images, *whole, *rest])
        if all(pair == (0, 0) for pair in pairs):
            return grown
        begin = [0, *(a for a, _ in pairs), *[0] * len(rest)]
        left = [_cropped(d, a, b) for d, (a, b) in zip(whole, pairs, strict=True)]
        return slice_(grown, begin, [images, *left, *rest])


def _cropped(size: Any, before: Any, after: Any) -> Any:
    left = size - (before + after)
    if isinstance(left, int):
        if left < 0:
            raise ShapeError(
                f"batch_to_space_nd: crops {told(before)} and {told(after)} of "
                f"{told(size)} elements"
            )
        return left
    # Not -1, which would stand for all that is left.
    return call_op("Select", call_op("Less", left, 0), left - 1, left)


def _square(block_size: Any, block_shape: Any) -> Any:
    if block_shape is not None and block_size is None:
        given = as_ints(block_shape, "block_shape")
        return [given, given] if isinstance(given, int) else given
    edge = as_int(one_of(block_size=block_size, block_shape=block_shape), "block_size")
    return [edge, edge]


def space_to_batch(
    input: Any,
    paddings: Any,
    block_size: Any = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """Move square blocks of images into the batch.

    Args:
        input: [batch, height, width, channels], any dtype.
        paddings: [2, 2], how many zeros come before and after along height and width, first.
        block_size: The height and width of a block.
        name: The name of the operations.
        block_shape: In place of ``block_size``: the height and width of a block.

    Returns:
        Batch times the elements of a block, padded sizes divided by the block's.

    Raises:
        ShapeError: if a padded size is known not to divide by the block's.
    """
    return space_to_batch_nd(_images(input), _square(block_size, block_shape), paddings, name)


def _images(value: Any) -> Tensor:
    """Return a tensor of unknown rank as one of four axes, which it has if it runs."""
    x = convert_to_tensor(value)
    return ensure_shape(x, [None] * 4) if x.shape.rank is None else x


def batch_to_space(
    input: Any,
    crops: Any,
    block_size: Any = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """Move parts of the batch into square blocks of images: undo ``space_to_batch``.

    Args:
        input: [batch, height, width, channels], any dtype.
        crops: [2, 2], how many elements are dropped before and after along height and width.
        block_size: The height and width of a block.
        name: The name of the operations.
        block_shape: In place of ``block_size``: the height and width of a block.

    Returns:
        Batch divided by the elements of a block, sizes times the block's, less the crops.

    Raises:
        ShapeError: if the batch is known not to divide so, or to have less than is cropped.
    """
    return batch_to_space_nd(_images(input), _square(block_size, block_shape), crops, name)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the least paddings with which sizes divide by a block's, and the crops that undo them.

    Args:
        input_shape: [m], int32, the sizes.
        block_shape: [m], int32, the sizes of a block.
        base_paddings: [m, 2], int32, the least paddings; zeros if None.
        name: The name of the operations.

    Returns:
        Paddings and crops, both [m, 2], int32.
    """
    with name_scope(name, "required_space_to_batch_paddings"):
        sizes, blocks = (
            reshape(convert_to_tensor(v, preferred_dtype="int32"), [-1])
            for v in (input_shape, block_shape)
        )
        count = sizes.spec.shape.merge_with(blocks.spec.shape)[0]
        if base_paddings is None:
            base = convert_to_tensor(np.zeros((count or 0, 2), np.int32))
        else:
            base = convert_to_tensor(base_paddings, preferred_dtype="int32")
        before, after = base[:, 0], base[:, 1]
        extra = (blocks - (sizes + before + after) % blocks) % blocks
        paddings = stack([before, after + extra], 1)
        return paddings, stack([extra - extra, extra], 1)
