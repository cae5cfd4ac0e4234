"""The functions that resample images."""

from __future__ import annotations

import math
from typing import Any

from headrace import dtypes
from headrace.arguments import real
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown, told
from headrace.graph.attributes import as_text
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.spec import as_shape
from headrace.graph.tensor import Tensor
from headrace.ops.array import expand_dims, reshape, shape, squeeze
from headrace.ops.constant import range as range_of
from headrace.ops.control import with_dependencies
from headrace.ops.conversion import cast
from headrace.ops.convolution import given
from headrace.ops.elementwise import (
    ceil,
    floor,
    greater,
    greater_equal,
    less_equal,
    logical_and,
    maximum,
    minimum,
    select,
)
from headrace.ops.elementwise import round as round_op
from headrace.ops.gather import gather
from headrace.ops.identity import ensure_shape
from headrace.ops.image import METHODS, resize_op
from headrace.ops.image_crop import image_tensor, integer, pad_to_bounding_box
from headrace.ops.joining import stack
from headrace.ops.reduce import reduce_all, reduce_max, reduce_min
from headrace.ops.report import holding

# More elements than this in a result are taken for a mistake.
_MOST_ELEMENTS = 1 << 30


class ResizeMethod:
    """The methods of resizing, by TensorFlow's numbers."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def _resize(
    method: str,
    images: Any,
    size: Any,
    align_corners: bool,
    half_pixel_centers: bool,
    name: str | None,
) -> Tensor:
    tensor = convert_to_tensor(images)
    if tensor.dtype.is_bool or not tensor.dtype.is_numeric or tensor.dtype.is_complex:
        raise DTypeError(f"images must be real numbers, got {tensor.dtype}")
    if method != "nearest":
        tensor = cast(tensor, dtypes.float32)
    wanted = convert_to_tensor(size)
    return resize_op(
        tensor, wanted, method, bool(align_corners), bool(half_pixel_centers), name=name
    )


def resize_bilinear(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resize images, each pixel a mean of the four around its place, weighted by nearness.

    Args:
        images: [n, h, w, c], a real number.
        size: [2], int32: the new height and width.
        align_corners: Whether the centers of the corner pixels stay where they are.
        name: The name of the operation.
        half_pixel_centers: Whether pixels are points at half-integer coordinates.

    Returns:
        ``[n, *size, c]``, float32.

    Raises:
        ShapeError: if ranks or sizes do not fit.
        AttributeValueError: if both flags are set.
    """
    return _resize("bilinear", images, size, align_corners, half_pixel_centers, name)


def resize_nearest_neighbor(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resize images, each pixel the one nearest to its place.

    Args:
        images: [n, h, w, c], a real number.
        size: [2], int32: the new height and width.
        align_corners: Whether the centers of the corner pixels stay where they are.
        name: The name of the operation.
        half_pixel_centers: Whether pixels are points at half-integer coordinates.

    Returns:
        ``[n, *size, c]``, the dtype of ``images``.

    Raises:
        ShapeError: if ranks or sizes do not fit.
        AttributeValueError: if both flags are set.
    """
    return _resize("nearest", images, size, align_corners, half_pixel_centers, name)


def resize_bicubic(
    images: Any,
    size: Any,
    align_corners: bool = False,
    name: str | None = None,
    half_pixel_centers: bool = False,
) -> Tensor:
    """Resize images by cubic convolution of the sixteen pixels around each place.

    Args:
        images: [n, h, w, c], a real number.
        size: [2], int32: the new height and width.
        align_corners: Whether the centers of the corner pixels stay where they are.
        name: The name of the operation.
        half_pixel_centers: Whether pixels are points at half-integer coordinates. Keys' kernel then
            has the parameter -0.5, otherwise -0.75.

    Returns:
        ``[n, *size, c]``, float32.

    Raises:
        ShapeError: if ranks or sizes do not fit.
        AttributeValueError: if both flags are set.
    """
    return _resize("bicubic", images, size, align_corners, half_pixel_centers, name)


def resize_area(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None
) -> Tensor:
    """Resize images, each pixel the mean over the area that it covers.

    Args:
        images: [n, h, w, c], a real number.
        size: [2], int32: the new height and width.
        align_corners: Whether the centers of the corner pixels stay where they are.
        name: The name of the operation.

    Returns:
        ``[n, *size, c]``, float32.

    Raises:
        ShapeError: if ranks or sizes do not fit.
    """
    return _resize("area", images, size, align_corners, False, name)


def _method_name(method: Any) -> str:
    if isinstance(method, str):
        if method in METHODS:
            return method
    elif isinstance(method, int) and 0 <= method < len(METHODS):
        return METHODS[method]
    raise AttributeValueError(
        f"method must be one of hr.image.ResizeMethod, or of {list(METHODS)}, got {shown(method)}"
    )


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resize images by one of four methods.

    Args:
        images: [n, h, w, c] or [h, w, c], a real number.
        size: [2], int32: the new height and width.
        method: One of ``hr.image.ResizeMethod``, or "bilinear", "nearest", "bicubic", "area".
        align_corners: Whether the centers of the corner pixels stay where they are.
        preserve_aspect_ratio: Whether the ratio of height to width stays as it is; the result is
            then the largest that fits into ``size``.
        name: The name of the operations.

    Returns:
        Images of the new size: float32, but of the dtype of ``images`` for "nearest", and where it
        is known that the size stays as it is.

    Raises:
        ShapeError: if ranks or sizes do not fit.
        AttributeValueError: for a method that does not exist.
    """
    wanted_method = _method_name(method)
    with name_scope(name, "resize"):
        tensor = convert_to_tensor(images)
        rank = tensor.shape.rank
        if rank not in (3, 4):
            raise ShapeError(f"images must have 3 or 4 dimensions, got shape {tensor.spec.shape}")
        batch = tensor if rank == 4 else expand_dims(tensor, 0)
        target = convert_to_tensor(size, preferred_dtype=dtypes.int32)
        if not target.dtype.is_integer:
            raise DTypeError(f"size must be integers, got {target.dtype}")
        if not target.shape.is_compatible_with([2]):
            raise ShapeError(f"size must be a vector of height and width, got {target.spec.shape}")
        if preserve_aspect_ratio:
            target = _fitted(batch, target)
        known, now = as_shape(target.spec), batch.spec.shape[1:3]
        if known.is_fully_defined() and now.is_fully_defined() and known == now:
            return tensor
        resized = _resize(wanted_method, batch, target, align_corners, False, None)
        return resized if rank == 4 else squeeze(resized, [0])


def _fitted(images: Tensor, size: Tensor) -> Tensor:
    """Return the largest size of the images' aspect ratio that fits into a size."""
    dims = images.spec.shape[1:3]
    wanted = size.spec.value
    if dims.is_fully_defined() and wanted is not None and 0 not in dims.known:
        share = min(int(w) / d for w, d in zip(wanted, dims.known, strict=True))
        return convert_to_tensor([round(share * d) for d in dims.known], dtypes.int32)
    now = cast(shape(images)[1:3], dtypes.float32)
    least = reduce_min(cast(size, dtypes.float32) / now)
    found: Tensor = cast(round_op(least * now), dtypes.int32)
    return found


def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """Resize images, keeping their aspect ratio, and pad them with zeros to a size.

    Args:
        image: [n, h, w, c] or [h, w, c], a real number.
        target_height: The new height, which may be a tensor.
        target_width: The new width, which may be a tensor.
        method: As for ``resize_images``.
        align_corners: As for ``resize_images``.

    Returns:
        Images of the new size, float32 (of the dtype of ``image`` for "nearest").

    Raises:
        ShapeError: if the rank is not 3 or 4, or a size is not positive.
        AttributeValueError: for a method that does not exist.
    """
    with name_scope(None, "resize_image_with_pad"):
        target_height = _target(target_height, "target_height")
        target_width = _target(target_width, "target_width")
        known = isinstance(target_height, int) and isinstance(target_width, int)
        if known and target_height * target_width > _MOST_ELEMENTS:
            raise ShapeError(
                f"a new size of {told(target_height)} x {told(target_width)} is too large"
            )
        tensor = image_tensor(image)
        height, width = tensor.spec.shape[-3], tensor.spec.shape[-2]
        if height == 0 or width == 0:
            raise ShapeError(f"image must have a positive size, got {tensor.spec.shape}")
        inner: Any
        top: Any
        left: Any
        if height is None or width is None or not known:
            inner, (top, left) = _within(tensor, target_height, target_width)
        else:
            share = max(width / target_width, height / target_height)
            inner = [int(height / share), int(width / share)]
            top = max(0, int((target_height - height / share) / 2))
            left = max(0, int((target_width - width / share) / 2))
        resized = resize_images(tensor, inner, method, align_corners)
        return pad_to_bounding_box(resized, top, left, target_height, target_width)


def _target(size: Any, label: str) -> Any:
    """Return a new size as a number, or a scalar tensor where a step brings it."""
    number = integer(size, label)
    if isinstance(number, int) and not 0 < number < 1 << 31:
        raise ShapeError(f"the new size must be positive, got {told(number)} for {label}")
    return number


def _within(tensor: Tensor, target_height: Any, target_width: Any) -> tuple[Tensor, list[Tensor]]:
    """Return the size that images get within a target, and the place there, as a step knows it."""
    whole = cast(shape(tensor)[-3:-1], dtypes.float64)
    target = cast(stack([target_height, target_width]), dtypes.float64)
    positive = ["the new size must be positive, got", target]
    target = holding(target, reduce_all(greater(target, 0.0)), positive)
    fitted = whole / reduce_max(whole / target)
    place = maximum(cast(floor((target - fitted) / 2.0), dtypes.int32), 0)
    return cast(floor(fitted), dtypes.int32), [place[0], place[1]]


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Cut boxes out of images and resize them, differentiable in the images and the boxes.

    Args:
        image: [n, h, w, c], a real number.
        boxes: [k, 4], float32: y and x of one corner, y and x of the other, where the image is the
            unit square. Corners may be in any order, and outside.
        box_ind: [k], int32: of which image each box is cut.
        crop_size: [2], int32: height and width of the results.
        method: "bilinear" or "nearest".
        extrapolation_value: What is found outside the image.
        name: The name of the operations.
        box_indices: The same as ``box_ind``.

    Returns:
        ``[k, *crop_size, c]``, float32.

    Raises:
        ShapeError: if shapes do not fit.
        AttributeValueError: for a method that does not exist.
    """
    which = given("image.crop_and_resize", "box_ind", box_ind, box_indices)
    size = given("image.crop_and_resize", "crop_size", crop_size)
    method = as_text(method)
    if method not in ("bilinear", "nearest"):
        raise AttributeValueError(f"method must be 'bilinear' or 'nearest', got {shown(method)}")
    with name_scope(name, "crop_and_resize"):
        images = cast(convert_to_tensor(image), dtypes.float32)
        corners = convert_to_tensor(boxes, preferred_dtype=dtypes.float32)
        indices = convert_to_tensor(which, preferred_dtype=dtypes.int32)
        target = convert_to_tensor(size, preferred_dtype=dtypes.int32)
        if images.shape.rank is None:
            images = ensure_shape(images, [None] * 4)
        for tensor, wanted, label in (
            (images, [None] * 4, "image"),
            (corners, [None, 4], "boxes"),
            (indices, [corners.spec.shape[0] if corners.shape.rank else None], "box_ind"),
            (target, [2], "crop_size"),
        ):
            if not tensor.shape.is_compatible_with(wanted):
                raise ShapeError(
                    f"crop_and_resize: {label} must have shape {wanted}, got {tensor.spec.shape}"
                )
        if target.spec.value is not None and (target.spec.value <= 0).any():
            raise ShapeError(f"crop_size must be positive, got {target.spec.value.tolist()}")
        known = [corners.spec.shape[0], *as_shape(target.spec).with_rank(2), images.shape[3]]
        if math.prod(d for d in known if d) > _MOST_ELEMENTS:
            raise ShapeError(f"crop_and_resize: crops of shape {known} are too large")
        if 0 in (images.shape.dims or (1,))[1:3]:
            raise ShapeError(f"image has no pixels, got shape {images.shape}")
        # Indices of boxes are looked up on their own first: past the last image there is none.
        sizes = shape(images)
        valid = gather(range_of(sizes[0]), indices)
        ys = _coordinates(corners[:, 0], corners[:, 2], target[0], sizes[1])
        xs = _coordinates(corners[:, 1], corners[:, 3], target[1], sizes[2])
        pixels = reshape(images, stack([sizes[0] * sizes[1] * sizes[2], sizes[3]]))

        inside_y, ys = _inside(ys, sizes[1])
        inside_x, xs = _inside(xs, sizes[2])

        def read(rows: Tensor, columns: Tensor) -> Tensor:
            lines = reshape(valid, [-1, 1]) * sizes[1] + cast(rows, dtypes.int32)
            at = expand_dims(lines, 2) * sizes[2] + expand_dims(cast(columns, dtypes.int32), 1)
            return gather(pixels, at)

        if method == "nearest":
            half = 0.5
            found = read(floor(ys + half), floor(xs + half))
        else:
            top, left = floor(ys), floor(xs)
            bottom, right = ceil(ys), ceil(xs)
            down = expand_dims(expand_dims(ys - top, 2), 3)
            across = expand_dims(expand_dims(xs - left, 1), 3)
            upper = read(top, left) + (read(top, right) - read(top, left)) * across
            lower = read(bottom, left) + (read(bottom, right) - read(bottom, left)) * across
            found = upper + (lower - upper) * down
        inside = expand_dims(logical_and(expand_dims(inside_y, 2), expand_dims(inside_x, 1)), 3)
        result = select(inside, found, real(extrapolation_value, "extrapolation_value"))
        # Where boxes are known to be outside nothing is read, and their indices still count.
        result = with_dependencies([valid], result)
        return _with_static_shape(result, corners, target, images)


def _coordinates(first: Tensor, last: Tensor, count: Tensor, size: Tensor) -> Tensor:
    """Return where in the image the rows (or columns) of boxes are, [k, count]."""
    reach = cast(size - 1, dtypes.float32)
    first, last = cast(first, dtypes.float32), cast(last, dtypes.float32)
    steps = cast(count - 1, dtypes.float32)
    several = greater_equal(steps, 1.0)
    step = select(several, (last - first) * reach / select(several, steps, 1.0), 0.0)
    start = select(several, first * reach, 0.5 * (first + last) * reach)
    along = cast(range_of(count), dtypes.float32)
    found: Tensor = expand_dims(start, 1) + expand_dims(step, 1) * along
    return found


def _inside(places: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Return which coordinates are inside the image, and coordinates that all are."""
    last = cast(size - 1, dtypes.float32)
    inside = logical_and(greater_equal(places, 0.0), less_equal(places, last))
    return inside, minimum(select(inside, places, 0.0), last)


def _with_static_shape(result: Tensor, boxes: Tensor, size: Tensor, images: Tensor) -> Tensor:
    known = as_shape(size.spec).with_rank(2)
    wanted = [boxes.spec.shape[0], *known, images.spec.shape[3]]
    if result.shape.is_fully_defined() or None in wanted:
        return result
    return reshape(result, [d for d in wanted if d is not None])
