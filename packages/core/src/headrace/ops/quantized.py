"""Quantized tensors: integers that are levels of a range of floats, which is kept beside them.

The levels of a dtype divide a range evenly, from its lowest integer at the lower end to its highest
at the upper one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias

from headrace import dtypes
from headrace.arguments import items
from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import Kind
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index
from headrace.shapes import Shape, normalize_axis

_Levels: TypeAlias = Annotated[Any, Kind("quantized", lambda d: d.is_quantized)]
_Float32: TypeAlias = Annotated[Any, Kind("float32", lambda d: d == dtypes.float32, unify=False)]

_ROUNDED = "levels are whole numbers"
MODES = ("MIN_COMBINED", "MIN_FIRST", "SCALED")
ROUND_MODES = ("HALF_AWAY_FROM_ZERO", "HALF_TO_EVEN")


class Quantized(NamedTuple):
    """What ``quantization.quantize`` and ``quantized_concat`` return: levels and their range."""

    output: Tensor
    output_min: Tensor
    output_max: Tensor


def check_range(*ends: tuple[TensorSpec, str]) -> None:
    """Refuse ends of ranges that are no scalars."""
    for spec, label in ends:
        if spec.rank not in (None, 0):
            raise ShapeError(f"{label} must be a scalar, got shape {spec.shape}")


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise AttributeValueError(f"mode must be one of {', '.join(MODES)}, got {shown(mode)}")


def check_quantized(dtype: DType, label: str) -> None:
    """Refuse dtypes that are not quantized."""
    if not dtype.is_quantized:
        names = ", ".join(sorted(d.name for d in dtypes.QUANTIZED_DTYPES))
        raise DTypeError(f"{label} must be one of {names}, got {dtype}")


def _with_range(levels: TensorSpec) -> tuple[Spec, Spec, Spec]:
    end = TensorSpec(dtypes.float32, Shape([]))
    return levels, end, end


@op("Quantize", public="", no_gradient=_ROUNDED)
def quantize_op(
    input: _Float32,
    min_range: _Float32,
    max_range: _Float32,
    T: DType,  # noqa: N803 - TensorFlow's name
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> tuple[Spec, Spec, Spec]:
    """The levels nearest to floats; NaN is the level 0.

    Args:
        input: [...], float32.
        min_range: [], the lower end of the range.
        max_range: [], the upper end; raises when it runs where it is smaller.
        T: The dtype of the levels.
        mode: What the levels of the range are; see ``quantization.quantize``.
        round_mode: Where halves are rounded to.

    Returns:
        The levels, and the ends of the range that they are of, [], float32.
    """
    check_range((min_range, "min_range"), (max_range, "max_range"))
    check_quantized(T, "T")
    _check_mode(mode)
    if round_mode not in ROUND_MODES:
        raise AttributeValueError(
            f"round_mode must be one of {', '.join(ROUND_MODES)}, got {shown(round_mode)}"
        )
    if round_mode == "HALF_TO_EVEN" and mode != "SCALED":
        raise AttributeValueError(
            f"round_mode 'HALF_TO_EVEN' is there for mode 'SCALED' alone, got mode {shown(mode)}"
        )
    low, high = min_range.value, max_range.value
    if low is not None and high is not None and high < low:
        raise AttributeValueError(
            f"max_range must be at least min_range, got min_range {low} and max_range {high}"
        )
    return _with_range(TensorSpec(T, input.shape))


@op("Dequantize", public="", no_gradient=_ROUNDED)
def dequantize_op(
    input: _Levels, min_range: _Float32, max_range: _Float32, mode: str = "MIN_COMBINED"
) -> Spec:
    """The floats that levels stand for.

    Args:
        input: [...], quantized.
        min_range: [], the lower end of the range.
        max_range: [], the upper end.
        mode: What the levels of the range are; see ``quantization.quantize``.

    Returns:
        [...], float32.
    """
    check_range((min_range, "min_range"), (max_range, "max_range"))
    _check_mode(mode)
    return TensorSpec(dtypes.float32, input.shape)


@op("QuantizedConcat", host_inputs=["concat_dim"], public="", no_gradient=_ROUNDED)
def quantized_concat_op(
    concat_dim: Index,
    values: Sequence[_Levels],
    input_mins: Sequence[_Float32],
    input_maxes: Sequence[_Float32],
) -> tuple[Spec, Spec, Spec]:
    """Quantized tensors joined along an axis, as levels of a range that holds all of theirs.

    Args:
        concat_dim: [], the axis.
        values: Tensors of one quantized dtype, with the same sizes along all other axes.
        input_mins: [] for each, the lower end of its range.
        input_maxes: [] for each, the upper end.

    Returns:
        The levels, and the ends of their range, [], float32.
    """
    check_range((concat_dim, "concat_dim"))
    if not len(values) == len(input_mins) == len(input_maxes):
        raise AttributeValueError(
            "each of values has an entry in input_mins and input_maxes, got "
            f"{len(values)}, {len(input_mins)} and {len(input_maxes)} of them"
        )
    for ends, label in ((input_mins, "input_mins"), (input_maxes, "input_maxes")):
        check_range(*((end, f"{label}[{i}]") for i, end in enumerate(ends)))
    return _with_range(TensorSpec(values[0].dtype, _joined(concat_dim, values)))


def _joined(concat_dim: TensorSpec, values: Sequence[TensorSpec]) -> Shape:
    whole = Shape(None)
    for spec in values:
        whole = whole.merge_with(Shape(None if spec.rank is None else [None] * spec.rank))
    if whole.dims is None:
        return whole
    if not whole.dims:
        raise ShapeError("scalars have no axis to join along; use hr.stack")
    if concat_dim.value is None:
        return whole
    axis = normalize_axis(int(concat_dim.value), len(whole.dims))
    sizes = [None if spec.rank is None else spec.shape[axis] for spec in values]
    for spec in values:
        dims = list(spec.shape.dims or whole.dims)
        dims[axis] = None
        whole = whole.merge_with(Shape(dims))
    found = list(whole.dims or ())
    found[axis] = None if None in sizes else sum(size or 0 for size in sizes)
    return Shape(found)


@op("QuantizedLevel", public="", no_gradient=_ROUNDED)
def quantized_level_op(
    value: _Float32,
    min_range: _Float32,
    max_range: _Float32,
    T: DType,  # noqa: N803 - TensorFlow's name
) -> Spec:
    """The level that a float would be if there were levels beyond the range, too.

    Args:
        value: [], float32.
        min_range: [], the lower end of the range; where it is the upper one, too, the lowest
            level is returned.
        max_range: [], the upper end.
        T: The dtype of the levels.

    Returns:
        [], int64.
    """
    check_range((value, "value"), (min_range, "min_range"), (max_range, "max_range"))
    check_quantized(T, "T")
    return TensorSpec(dtypes.int64, Shape([]))


def as_float32(value: Any) -> Tensor:
    """Return a tensor, of float32 where it is made of data."""
    return convert_to_tensor(value, preferred_dtype=dtypes.float32)


def quantize(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,  # noqa: N803 - TensorFlow's name
    mode: str = "MIN_COMBINED",
    round_mode: str = "HALF_AWAY_FROM_ZERO",
    name: str | None = None,
) -> Quantized:
    """Round floats to the levels of a range; what is beyond it becomes its lowest or highest level.

    The range is made larger to hold 0, and where its ends are nearly one.

    Args:
        input: [...], float32.
        min_range: [], the lower end of the range.
        max_range: [], the upper end.
        T: The dtype of the levels: ``qint8``, ``quint8``, ``qint16``, ``quint16`` or ``qint32``.
        mode: "MIN_COMBINED": the lowest level is the lower end, and others are rounded from there;
            "MIN_FIRST": the lower end is rounded to a multiple of the distance of levels first, so
            that 0 is one of them; "SCALED": levels are multiples of one number, and 0 is the level
            0, for which the range becomes larger, and for unsigned levels begins at 0.
        round_mode: "HALF_AWAY_FROM_ZERO", or for "SCALED" "HALF_TO_EVEN".
        name: The name of the operation.

    Returns:
        ``output``, [...], and ``output_min`` and ``output_max``, [], float32, the range that its
        levels are of.

    Raises:
        AttributeValueError: for modes that do not exist, or a range that is none.
        DTypeError: if ``T`` is not quantized, or ``input`` not float32.
        ShapeError: if an end of the range is no scalar.
    """
    found = quantize_op(
        as_float32(input),
        as_float32(min_range),
        as_float32(max_range),
        as_dtype(T),
        mode,
        round_mode,
        name=name or "QuantizeV2",
    )
    return Quantized(*found)


def quantize_v2(
    input: Any,
    min_range: Any,
    max_range: Any,
    T: Any,  # noqa: N803 - TensorFlow's name
    mode: str = "MIN_COMBINED",
    name: str | None = None,
    round_mode: str = "HALF_AWAY_FROM_ZERO",
) -> Quantized:
    """Round floats to the levels of a range: ``quantization.quantize`` in another order.

    Args:
        input: [...], float32.
        min_range: [], the lower end of the range.
        max_range: [], the upper end.
        T: The dtype of the levels.
        mode: As for ``quantization.quantize``.
        name: The name of the operation.
        round_mode: As for ``quantization.quantize``.

    Returns:
        ``output``, ``output_min`` and ``output_max``.

    Raises:
        AttributeValueError: for modes that do not exist, or a range that is none.
        DTypeError: if ``T`` is not quantized, or ``input`` not float32.
        ShapeError: if an end of the range is no scalar.
    """
    return quantize(input, min_range, max_range, T, mode, round_mode, name)


def dequantize(
    input: Any, min_range: Any, max_range: Any, mode: str = "MIN_COMBINED", name: str | None = None
) -> Tensor:
    """Return the floats that levels of a range stand for.

    Args:
        input: [...], quantized.
        min_range: [], the lower end of the range.
        max_range: [], the upper end.
        mode: As for ``quantization.quantize``.
        name: The name of the operation.

    Returns:
        [...], float32.

    Raises:
        AttributeValueError: for a mode that does not exist.
        DTypeError: if ``input`` is not quantized.
        ShapeError: if an end of the range is no scalar.
    """
    found: Tensor = dequantize_op(
        input, as_float32(min_range), as_float32(max_range), mode, name=name or "Dequantize"
    )
    return found


def quantized_concat(
    concat_dim: Any, values: Any, input_mins: Any, input_maxes: Any, name: str | None = None
) -> Quantized:
    """Join quantized tensors along an axis, as levels of a range that holds all of theirs.

    Args:
        concat_dim: [], the axis; negative from the end.
        values: Tensors of one quantized dtype, with the same sizes along all other axes.
        input_mins: [] for each, the lower end of its range.
        input_maxes: [] for each, the upper end.
        name: The name of the operation.

    Returns:
        ``output``, and ``output_min`` and ``output_max``, [], float32, its range: it holds 0, and
        that of signed levels is as large below 0 as above.

    Raises:
        AttributeValueError: if there are not as many ranges as tensors.
        DTypeError: if tensors are not quantized, or of several dtypes.
        ShapeError: if shapes do not fit.
    """
    found = quantized_concat_op(
        concat_dim,
        items(values, "values"),
        [as_float32(end) for end in items(input_mins, "input_mins")],
        [as_float32(end) for end in items(input_maxes, "input_maxes")],
        name=name or "QuantizedConcat",
    )
    return Quantized(*found)
