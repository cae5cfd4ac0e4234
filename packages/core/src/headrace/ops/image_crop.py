"""The functions that flip, turn, crop and pad images."""

from __future__ import annotations

import numbers
from typing import Any

from headrace import dtypes
from headrace.arguments import real
from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.graph.convert import convert_to_tensor
from headrace.graph.naming import names_result
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import identity, shape, transpose
from headrace.ops.array import rank as rank_of
from headrace.ops.cond import switch_case
from headrace.ops.conversion import cast, saturate_cast
from headrace.ops.elementwise import (
    floordiv,
    floormod,
    greater,
    greater_equal,
    less,
    maximum,
    minimum,
    select,
)
from headrace.ops.identity import ensure_shape
from headrace.ops.indexing import slice_
from headrace.ops.padding import pad
from headrace.ops.random import random_uniform
from headrace.ops.rearrange import reverse
from headrace.ops.report import holding


def image_tensor(
    image: Any, *, label: str = "image", least: int = 3, most: int = 4, unknown: bool = False
) -> Tensor:
    """Return images as a tensor; one of unknown rank is taken for a single image.

    Args:
        image: The images.
        label: What messages call them.
        least: The least rank.
        most: The largest rank.
        unknown: Whether the rank may stay unknown.

    Raises:
        ShapeError: if the rank is another one.
    """
    tensor = convert_to_tensor(image)
    rank = tensor.shape.rank
    if rank is None and unknown:
        few = [f"{label} must have {told(least)} dimensions at least, got shape", shape(tensor)]
        return holding(tensor, greater_equal(rank_of(tensor), least), few)
    if rank is None:
        return ensure_shape(tensor, [None] * least)
    if not least <= rank <= most:
        raise ShapeError(
            f"{label} must have {told(least)} to {told(most)} dimensions, got {tensor.spec.shape}"
        )
    return tensor


def dims_of(image: Tensor) -> tuple[Any, Any]:
    """Return height and width: numbers where they are known, else scalar tensors."""
    height, width = image.spec.shape[-3], image.spec.shape[-2]
    if height is not None and width is not None:
        return height, width
    sizes = shape(image)
    return (
        sizes[-3] if height is None else height,
        sizes[-2] if width is None else width,
    )


def _known(*values: Any) -> bool:
    return all(isinstance(value, numbers.Integral) for value in values)


def integer(value: Any, label: str) -> Any:
    """Return a number where it is known, else a scalar tensor."""
    if _known(value):
        return int(value)
    tensor = convert_to_tensor(value)
    if not tensor.dtype.is_integer or tensor.shape.rank not in (None, 0):
        raise ShapeError(f"{label} must be an integer, got {shown(tensor)}")
    found = tensor.spec.value
    return int(found) if found is not None else saturate_cast(tensor, dtypes.int32)


def _mirrored(image: Tensor, axis: int) -> Tensor:
    """Return images reversed along an axis counted from the end."""
    return reverse(image, [axis])


def flip_left_right(image: Any) -> Tensor:
    """Mirror images, left for right.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
    """
    with name_scope(None, "flip_left_right"):
        return _mirrored(image_tensor(image, unknown=True), -2)


def flip_up_down(image: Any) -> Tensor:
    """Mirror images, top for bottom.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
    """
    with name_scope(None, "flip_up_down"):
        return _mirrored(image_tensor(image, unknown=True), -3)


def _random_flip(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with name_scope(None, name):
        tensor = image_tensor(image)
        if tensor.shape.rank == 3:
            chance = random_uniform([], seed=seed)
        else:
            count = tensor.spec.shape[0]
            first = shape(tensor)[0] if count is None else count
            chance = random_uniform([first, 1, 1, 1], seed=seed)
        return select(less(chance, 0.5), _mirrored(tensor, axis), tensor)


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Mirror each image, left for right, with probability 1/2.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.
        seed: Seeds this op's stream, together with the graph's seed.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
    """
    return _random_flip(image, -2, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Mirror each image, top for bottom, with probability 1/2.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.
        seed: Seeds this op's stream, together with the graph's seed.

    Returns:
        The shape and dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
    """
    return _random_flip(image, -3, seed, "random_flip_up_down")


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Swap the height and the width of images.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.
        name: The name of the operations.

    Returns:
        [w, h, c] or [n, w, h, c], the dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
    """
    with name_scope(name, "transpose_image"):
        tensor = image_tensor(image)
        return transpose(tensor, [1, 0, 2] if tensor.shape.rank == 3 else [0, 2, 1, 3])


def rot90(image: Any, k: int = 1, name: str | None = None) -> Tensor:
    """Turn images by 90 degrees, counter-clockwise.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.
        k: How many times: a number or a scalar tensor.
        name: The name of the operations.

    Returns:
        Images with height and width swapped if ``k`` is odd, the dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
    """
    with name_scope(name, "rot90"):
        tensor = image_tensor(image)
        times = integer(k, "k")
        turns = [
            lambda: identity(tensor),
            lambda: _mirrored(transpose_image(tensor), -3),
            lambda: _mirrored(_mirrored(tensor, -2), -3),
            lambda: transpose_image(_mirrored(tensor, -3)),
        ]
        if _known(times):
            turned: Tensor = turns[times % 4]()
        else:
            turned = switch_case(floormod(times, 4), turns)
        return turned


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """Cut the border off images.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.
        central_fraction: In (0, 1]: the share of height and width that stays.

    Returns:
        The middle of ``image``.

    Raises:
        ShapeError: if the rank is another one.
        AttributeValueError: if the fraction is out of range.
    """
    if not 0.0 < real(central_fraction, "central_fraction") <= 1.0:
        raise AttributeValueError(
            f"central_fraction must be in (0, 1], got {told(central_fraction)}"
        )
    with name_scope(None, "central_crop"):
        tensor = image_tensor(image)
        if central_fraction == 1.0:
            return tensor
        starts, sizes = [], []
        for size in dims_of(tensor):
            if _known(size):
                start: Any = int((size - size * central_fraction) / 2)
            else:
                wide = cast(size, dtypes.float64)
                start = cast((wide - wide * central_fraction) / 2, dtypes.int32)
            starts.append(start)
            sizes.append(size - start * 2)
        return crop_to_bounding_box(tensor, *starts, *sizes)


def _check_sizes(**values: Any) -> None:
    for label, value in values.items():
        least = 1 if label.startswith("target") else 0
        if _known(value) and value < least:
            raise AttributeValueError(f"{label} must be >= {least}, got {shown(value)}")


def _positive(value: Any, label: str) -> Any:
    """Return a number that a step checks where it is not known."""
    if _known(value):
        return value
    return holding(value, greater(value, 0), [f"{label} must be >= 1, got", value])


def pad_to_bounding_box(
    image: Any,
    offset_height: Any,
    offset_width: Any,
    target_height: Any,
    target_width: Any,
) -> Tensor:
    """Put zeros around images.

    Args:
        image: [h, w, c] or [n, h, w, c], numeric.
        offset_height: Rows of zeros above: a number or a scalar tensor.
        offset_width: Columns of zeros to the left.
        target_height: The height of the result.
        target_width: The width of the result.

    Returns:
        Images of the new size, the dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
        AttributeValueError: if an offset is negative, or the result is too small.
    """
    with name_scope(None, "pad_to_bounding_box"):
        tensor = image_tensor(image)
        top, left = integer(offset_height, "offset_height"), integer(offset_width, "offset_width")
        tall, wide = (
            integer(target_height, "target_height"),
            integer(target_width, "target_width"),
        )
        _check_sizes(offset_height=top, offset_width=left)
        height, width = dims_of(tensor)
        bottom, right = tall - top - height, wide - left - width
        for value, label in ((bottom, "height"), (right, "width")):
            if _known(value) and value < 0:
                raise AttributeValueError(
                    f"pad_to_bounding_box: target_{label} must be {-value} larger, to hold the "
                    f"offset and image {tensor.spec.shape}"
                )
        paddings = [[top, bottom], [left, right], [0, 0]]
        if tensor.shape.rank == 4:
            paddings.insert(0, [0, 0])
        return _sized(pad(tensor, paddings), tensor, tall, wide)


def crop_to_bounding_box(
    image: Any,
    offset_height: Any,
    offset_width: Any,
    target_height: Any,
    target_width: Any,
) -> Tensor:
    """Cut a box out of images.

    Args:
        image: [h, w, c] or [n, h, w, c], any dtype.
        offset_height: The first row of the box: a number or a scalar tensor.
        offset_width: The first column of the box.
        target_height: The height of the box.
        target_width: The width of the box.

    Returns:
        Images of the new size, the dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
        AttributeValueError: if an offset is negative, a size is not positive, or the box reaches
            beyond the image.
    """
    with name_scope(None, "crop_to_bounding_box"):
        tensor = image_tensor(image)
        top, left = integer(offset_height, "offset_height"), integer(offset_width, "offset_width")
        tall, wide = (
            integer(target_height, "target_height"),
            integer(target_width, "target_width"),
        )
        _check_sizes(offset_height=top, offset_width=left, target_height=tall, target_width=wide)
        for size, start, count, label in zip(
            dims_of(tensor), (top, left), (tall, wide), ("height", "width"), strict=True
        ):
            if _known(size, start, count) and start + count > size:
                raise AttributeValueError(
                    f"crop_to_bounding_box: offset_{label} {told(start)} and "
                    f"target_{label} {told(count)} "
                    f"reach beyond the {label} {size} of image {tensor.spec.shape}"
                )
        front = [0] * ((tensor.shape.rank or 3) - 3)
        box = slice_(tensor, [*front, top, left, 0], [*([-1] * len(front)), tall, wide, -1])
        return _sized(box, tensor, tall, wide)


def _sized(found: Tensor, image: Tensor, height: Any, width: Any) -> Tensor:
    """State what is known of the shape of images that were brought to a size."""
    sizes = [size if _known(size) and size >= 0 else None for size in (height, width)]
    known = list(image.spec.shape)
    found.set_shape([*known[:-3], *sizes, known[-1]])
    return found


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """Cut images to a size around their middle, or put zeros around them.

    Args:
        image: [h, w, c] or [n, h, w, c], numeric.
        target_height: The height of the result: a number or a scalar tensor.
        target_width: The width of the result.

    Returns:
        Images of the new size, the dtype of ``image``.

    Raises:
        ShapeError: if the rank is another one.
        AttributeValueError: if a size is not positive.
    """
    with name_scope(None, "resize_image_with_crop_or_pad"):
        tensor = image_tensor(image)
        wanted = (
            integer(target_height, "target_height"),
            integer(target_width, "target_width"),
        )
        _check_sizes(target_height=wanted[0], target_width=wanted[1])
        wanted = (_positive(wanted[0], "target_height"), _positive(wanted[1], "target_width"))
        now = dims_of(tensor)

        def half(a: Any, b: Any) -> Any:
            """Return half of by how much ``b`` is larger, 0 if it is not."""
            if _known(a, b):
                return max(0, (b - a) // 2)
            return maximum(floordiv(b - a, 2), 0)

        def least(a: Any, b: Any) -> Any:
            return min(a, b) if _known(a, b) else minimum(a, b)

        pairs = list(zip(now, wanted, strict=True))
        cropped = crop_to_bounding_box(
            tensor, *(half(w, n) for n, w in pairs), *(least(n, w) for n, w in pairs)
        )
        top, left = (half(n, w) for n, w in pairs)
        return pad_to_bounding_box(cropped, top, left, *wanted)


@names_result
def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> Tensor:
    """Cut a box of a given size out of a tensor, at a random place.

    Args:
        value: [...], any dtype.
        size: [rank], the shape of the box, at most that of ``value``.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operations.

    Returns:
        [size], the dtype of ``value``.

    Raises:
        ShapeError: if ``size`` does not fit.
    """
    with name_scope(name, "random_crop"):
        tensor = convert_to_tensor(value)
        wanted = cast(convert_to_tensor(size, preferred_dtype=dtypes.int32), dtypes.int32)
        known, dims = wanted.spec.value, tensor.spec.shape.dims
        if known is not None and dims is not None:
            fits = known.shape == (len(dims),) and all(
                int(k) >= 0 and (d is None or int(k) <= d) for k, d in zip(known, dims, strict=True)
            )
            if not fits:
                raise ShapeError(
                    f"random_crop: size {known.tolist()} does not fit into {tensor.spec.shape}"
                )
        room = shape(tensor) - wanted + 1
        drawn = random_uniform(shape(wanted), maxval=2**31 - 1, dtype=dtypes.int32, seed=seed)
        start = drawn % room
        return slice_(tensor, start, size if known is None else known.tolist())
