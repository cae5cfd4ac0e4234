"""Borders around tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.dtypes import DType
from headrace.errors import AttributeValueError, ShapeError, shown, told
from headrace.graph.convert import as_tensor, contains_tensor, convert_to_tensor
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.arguments import as_ints, static_value
from headrace.ops.declare import Spec, op
from headrace.ops.identity import ensure_shape
from headrace.ops.kinds import Anything, Index, Numeric, Same
from headrace.shapes import UNKNOWN, Dim, Shape


def _padded(shape: Shape, paddings: TensorSpec) -> Shape:
    """Return a shape with its paddings added.

    Raises:
        ShapeError: if the paddings are no pairs, or not one for each axis.
        AttributeValueError: if one is known to be negative.
    """
    if not paddings.shape.is_compatible_with([shape.rank, 2]):
        text = "a pair of integers for each axis"
        raise ShapeError(f"paddings must be {text} of {shape}, got shape {paddings.shape}")
    if paddings.value is None:
        count = paddings.shape[0] if shape.rank is None else shape.rank
        return UNKNOWN if count is None else Shape([None] * count)
    pairs = paddings.value.tolist()
    if any(min(pair) < 0 for pair in pairs):
        raise AttributeValueError(f"paddings must be >= 0, got {pairs}")
    if shape.dims is None:
        return Shape([None] * len(pairs))
    both = zip(shape.dims, pairs, strict=True)
    return Shape([None if d is None else d + sum(pair) for d, pair in both])


@op("Pad", total=True, host_inputs=["paddings"], public="")
def _pad(tensor: Same, paddings: Index, constant_values: Same | None = None) -> Spec:
    """The tensor with a border of one value.

    Args:
        tensor: [...], any dtype.
        paddings: [rank, 2], for each axis how many elements before and after.
        constant_values: [], what the border holds, of the dtype of ``tensor``; zeros (false,
            empty strings) where it is left out.

    Returns:
        Each size plus its paddings, the dtype of ``tensor``.
    """
    if constant_values is not None and constant_values.rank not in (None, 0):
        raise ShapeError(f"constant_values must be a scalar, got {constant_values}")
    return TensorSpec(tensor.dtype, _padded(tensor.shape, paddings))


def _check_mirror(shape: Shape, paddings: TensorSpec, mode: str) -> None:
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise AttributeValueError(f"mode must be 'REFLECT' or 'SYMMETRIC', got {shown(mode)}")
    if paddings.value is None or shape.dims is None:
        return
    less = int(mode == "REFLECT")
    for axis, (dim, pair) in enumerate(zip(shape.dims, paddings.value.tolist(), strict=True)):
        if dim is not None and max(pair) > max(dim - less, 0):
            raise ShapeError(
                f"{mode} paddings of axis {axis} must be at most {max(dim - less, 0)}, got {pair}"
            )


@op("MirrorPad", host_inputs=["paddings"], public="")
def _mirror_pad(tensor: Anything, paddings: Index, mode: str) -> Spec:
    """The tensor with a border that mirrors it.

    Args:
        tensor: [...], any dtype.
        paddings: [rank, 2], for each axis how many elements before and after; at most its size,
            or one less if ``mode`` is "REFLECT".
        mode: "REFLECT" to mirror about the outermost element, "SYMMETRIC" to repeat it.

    Returns:
        Each size plus its paddings, the dtype of ``tensor``.
    """
    shape = _padded(tensor.shape, paddings)
    _check_mirror(tensor.shape, paddings, mode)
    return TensorSpec(tensor.dtype, shape)


@op("MirrorPadGrad", host_inputs=["paddings"], public="")
def mirror_pad_grad(dy: Numeric, paddings: Index, mode: str) -> Spec:
    """What a mirroring border holds, added to what it mirrors; without the border.

    Args:
        dy: [...], numeric, the shape of the padded tensor.
        paddings: [rank, 2], as for the padding.
        mode: As for the padding.

    Returns:
        Each size minus its paddings, the dtype of ``dy``.
    """
    _padded(dy.shape, paddings)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise AttributeValueError(f"mode must be 'REFLECT' or 'SYMMETRIC', got {shown(mode)}")
    if paddings.value is None or dy.shape.dims is None:
        return TensorSpec(dy.dtype, UNKNOWN if dy.rank is None else Shape([None] * dy.rank))
    pairs = [sum(pair) for pair in paddings.value.tolist()]
    dims = [None if d is None else d - p for d, p in zip(dy.shape.dims, pairs, strict=True)]
    if any(d is not None and d < 0 for d in dims):
        raise ShapeError(f"paddings {paddings.value.tolist()} do not fit into shape {dy.shape}")
    _check_mirror(Shape(dims), paddings, mode)
    return TensorSpec(dy.dtype, Shape(dims))


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """The tensor with a border.

    Args:
        tensor: [...], any dtype.
        paddings: [rank, 2], for each axis how many elements before and after: nested lists or an
            integer tensor.
        mode: "CONSTANT"; "REFLECT" to mirror about the outermost element; or "SYMMETRIC" to
            mirror with it. Upper or lower case.
        name: The name of the operation.
        constant_values: [], what a constant border holds.

    Returns:
        Each size plus its paddings, the dtype of ``tensor``.

    Raises:
        ShapeError: if there is not one pair for each axis, or it is more than can be mirrored.
        AttributeValueError: if a padding is known to be negative, or ``mode`` is another.
    """
    pairs = as_paddings(paddings)
    wanted = told(mode).upper()
    if wanted != "CONSTANT":
        if wanted not in ("REFLECT", "SYMMETRIC"):
            raise AttributeValueError(
                f"pad: mode must be 'CONSTANT', 'REFLECT' or 'SYMMETRIC', got {shown(mode)}"
            )
        if not isinstance(pairs, Tensor):
            return _mirror_pad(tensor, pairs, wanted, name=name)
        source = convert_to_tensor(tensor)
        return _sized(_mirror_pad(source, pairs, wanted, name=name), source, paddings)
    source = convert_to_tensor(tensor)
    plain = as_tensor(constant_values) is None and not contains_tensor(constant_values)
    if plain and isinstance(constant_values, int | float) and constant_values == 0:
        return _sized(_pad(source, pairs, name=name), source, paddings)
    filler = constant_values
    if plain:
        filler = _element(constant_values, source.dtype)
    return _sized(_pad(source, pairs, filler, name=name), source, paddings)


def _sized(padded: Tensor, source: Tensor, paddings: Any) -> Tensor:
    """Return the padded tensor with the sizes stated that rows of known paddings tell."""
    dims = source.spec.shape.dims
    if dims is None or padded.spec.shape.is_fully_defined():
        return padded
    rows = _parts(paddings)
    if len(rows) != len(dims):
        return padded
    sizes: list[Dim] = []
    for dim, pair in zip(dims, rows, strict=True):
        known = [_known(size) for size in _parts(pair) or [pair]]
        if dim is None or any(size is None for size in known):
            sizes.append(None)
        else:
            sizes.append(dim + sum(int(np.sum(size)) for size in known))
    if padded.spec.shape.merge_with(sizes) == padded.spec.shape:
        return padded
    return ensure_shape(padded, sizes)


def _parts(value: Any) -> Sequence[Any]:
    """Return what a list with tensors in it, or a tensor stacked of others, is made of."""
    if isinstance(value, list | tuple):
        return value
    stacked = isinstance(value, Tensor) and value.op.type == "Stack" and value.op.attrs["axis"] == 0
    return value.op.inputs if stacked else ()


def _known(size: Any) -> Any:
    """Return a number or array of paddings, None where only a step knows it."""
    tensor = as_tensor(size)
    return size if tensor is None else static_value(tensor)


def as_paddings(paddings: Any) -> Any:
    """Return paddings as an array of pairs where they are known, else as an integer tensor."""
    given = as_ints(paddings, "paddings")
    if isinstance(given, Tensor):
        known = static_value(given)
        return given if known is None else known
    try:
        pairs = np.array(given, np.int64)
    except (ValueError, OverflowError):
        raise ShapeError(f"paddings must be pairs of integers, got {given}") from None
    pairs = pairs.reshape(0, 2) if not pairs.size and pairs.ndim == 1 else pairs
    small = not pairs.size or abs(pairs).max() < 2**31
    return pairs.astype(np.int32) if small else pairs


def _element(value: Any, dtype: DType) -> Tensor:
    return convert_to_tensor(value, dtype)
