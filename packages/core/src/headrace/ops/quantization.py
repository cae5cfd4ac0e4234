"""Rounding floats to the few values that numbers of some bits stand for."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.arguments import real
from headrace.errors import AttributeValueError, DTypeError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.spec import TensorSpec, like
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating


def _check_bits(num_bits: int) -> None:
    if not 2 <= num_bits <= 16:
        raise AttributeValueError(f"num_bits must be between 2 and 16, inclusive, got {num_bits}")


def _check_quantized(inputs: TensorSpec, low: TensorSpec, high: TensorSpec, num_bits: int) -> None:
    _check_bits(num_bits)
    if inputs.dtype != dtypes.float32:
        raise DTypeError(f"inputs must be float32, got {inputs.dtype}")
    ends = low.shape.merge_with(high.shape)
    if ends.rank not in (None, 0, 1):
        raise ShapeError(f"min and max must be scalars or vectors, got shape {ends}")
    if ends.rank == 1 and inputs.rank is not None:
        if inputs.rank == 0:
            raise ShapeError("inputs with a range for each channel need an axis of channels")
        ends.merge_with(inputs.shape[-1:])


@op("FakeQuant", public="")
def fake_quant(
    inputs: Floating, min: Floating, max: Floating, num_bits: int = 8, narrow_range: bool = False
) -> Spec:
    """Floats rounded to the values that integers of ``num_bits`` bits stand for in a range.

    The range is moved so that 0 is one of the values. Its gradient is that of a clip to the range.

    Args:
        inputs: [..., channels], float32.
        min: [] or [channels], the lower ends of ranges.
        max: The upper ends, the shape of ``min``; where both are 0, so is the result.
        num_bits: How many bits, 2 to 16.
        narrow_range: Whether to leave out the lowest value.

    Returns:
        The shape and dtype of ``inputs``.
    """
    _check_quantized(inputs, min, max, num_bits)
    return like(inputs)


@op("FakeQuantGradient", public="", no_gradient="TensorFlow has none of gradients of roundings")
def fake_quant_gradient(
    gradients: Floating,
    inputs: Floating,
    min: Floating,
    max: Floating,
    num_bits: int = 8,
    narrow_range: bool = False,
) -> tuple[Spec, Spec, Spec]:
    """Gradients of ``FakeQuant``: inside of the range for the inputs, below and above for its ends.

    Args:
        gradients: The gradient with respect to the output, float32.
        inputs: As for ``FakeQuant``.
        min: As for ``FakeQuant``.
        max: As for ``FakeQuant``.
        num_bits: As for ``FakeQuant``.
        narrow_range: As for ``FakeQuant``.

    Returns:
        The gradients with respect to ``inputs``, ``min`` and ``max``.
    """
    _check_quantized(inputs, min, max, num_bits)
    whole = TensorSpec(inputs.dtype, inputs.shape.merge_with(gradients.shape))
    ends = TensorSpec(inputs.dtype, min.shape.merge_with(max.shape))
    return whole, ends, ends


def _checked_range(min: Any, max: Any) -> tuple[float, float]:
    low, high = real(min, "min"), real(max, "max")
    if not low < high:
        raise AttributeValueError(f"min has to be smaller than max, was: {low} >= {high}")
    return low, high


def fake_quant_with_min_max_args(
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Round floats to the values that integers of a few bits stand for in a range.

    Args:
        inputs: [...], float32.
        min: The lower end of the range, which is moved so that 0 is one of the values.
        max: The upper end.
        num_bits: How many bits, 2 to 16.
        narrow_range: Whether to leave out the lowest value.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``inputs``; its gradient is that of a clip to the range.

    Raises:
        AttributeValueError: if the range is empty, or for other numbers of bits.
        DTypeError: if ``inputs`` are not float32.
    """
    low, high = _checked_range(min, max)
    found: Tensor = fake_quant(
        inputs, low, high, num_bits, narrow_range, name=name or "FakeQuantWithMinMaxArgs"
    )
    return found


def fake_quant_with_min_max_args_gradient(
    gradients: Any,
    inputs: Any,
    min: float = -6,
    max: float = 6,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of ``fake_quant_with_min_max_args`` with respect to its inputs.

    Args:
        gradients: The gradient with respect to the output, float32.
        inputs: As for ``fake_quant_with_min_max_args``, and the others likewise.
        min: The lower end of the range.
        max: The upper end.
        num_bits: How many bits.
        narrow_range: Whether to leave out the lowest value.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``inputs``.

    Raises:
        AttributeValueError: if the range is empty, or for other numbers of bits.
    """
    low, high = _checked_range(min, max)
    chosen = name or "FakeQuantWithMinMaxArgsGradient"
    options = {"num_bits": num_bits, "narrow_range": narrow_range}
    return fake_quant_gradient(gradients, inputs, low, high, **options, name=chosen)[0]


def _ends(min: Any, max: Any, rank: int) -> tuple[Tensor, Tensor]:
    low, high = (convert_to_tensor(end, preferred_dtype=dtypes.float32) for end in (min, max))
    for end, what in ((low, "min"), (high, "max")):
        if end.shape.rank not in (None, rank):
            raise ShapeError(f"{what} must have {rank} dimensions, got shape {end.spec.shape}")
    return low, high


def fake_quant_with_min_max_vars(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Round floats to the values that integers of a few bits stand for in a range of tensors.

    Args:
        inputs: [...], float32.
        min: [], the lower end of the range, which is moved so that 0 is one of the values.
        max: [], the upper end.
        num_bits: How many bits, 2 to 16.
        narrow_range: Whether to leave out the lowest value.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``inputs``; its gradient is that of a clip to the range, also with
        respect to ``min`` and ``max``.

    Raises:
        ShapeError: if ``min`` or ``max`` is no scalar.
        AttributeValueError: for other numbers of bits.
    """
    low, high = _ends(min, max, 0)
    found: Tensor = fake_quant(
        inputs, low, high, num_bits, narrow_range, name=name or "FakeQuantWithMinMaxVars"
    )
    return found


def fake_quant_with_min_max_vars_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Return the gradients of ``fake_quant_with_min_max_vars``.

    Args:
        gradients: The gradient with respect to the output, float32.
        inputs: As for ``fake_quant_with_min_max_vars``, and the others likewise.
        min: [], the lower end of the range.
        max: [], the upper end.
        num_bits: How many bits.
        narrow_range: Whether to leave out the lowest value.
        name: The name of the operation.

    Returns:
        The gradients with respect to ``inputs``, ``min`` and ``max``.
    """
    low, high = _ends(min, max, 0)
    chosen = name or "FakeQuantWithMinMaxVarsGradient"
    return fake_quant_gradient(gradients, inputs, low, high, num_bits, narrow_range, name=chosen)


def fake_quant_with_min_max_vars_per_channel(
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> Tensor:
    """Round floats to the values that integers of a few bits stand for, in a range per channel.

    Args:
        inputs: [..., channels], float32.
        min: [channels], the lower ends of ranges, which are moved so that 0 is one of the values.
        max: [channels], the upper ends.
        num_bits: How many bits, 2 to 16.
        narrow_range: Whether to leave out the lowest value.
        name: The name of the operation.

    Returns:
        The shape and dtype of ``inputs``; its gradient is that of a clip to the ranges, also with
        respect to ``min`` and ``max``.

    Raises:
        ShapeError: if ``min`` or ``max`` has not one number for each channel.
        AttributeValueError: for other numbers of bits.
    """
    low, high = _ends(min, max, 1)
    chosen = name or "FakeQuantWithMinMaxVarsPerChannel"
    found: Tensor = fake_quant(inputs, low, high, num_bits, narrow_range, name=chosen)
    return found


def fake_quant_with_min_max_vars_per_channel_gradient(
    gradients: Any,
    inputs: Any,
    min: Any,
    max: Any,
    num_bits: int = 8,
    narrow_range: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Return the gradients of ``fake_quant_with_min_max_vars_per_channel``.

    Args:
        gradients: The gradient with respect to the output, float32.
        inputs: As for ``fake_quant_with_min_max_vars_per_channel``, and the others likewise.
        min: [channels], the lower ends of ranges.
        max: [channels], the upper ends.
        num_bits: How many bits.
        narrow_range: Whether to leave out the lowest value.
        name: The name of the operation.

    Returns:
        The gradients with respect to ``inputs``, ``min`` and ``max``.
    """
    low, high = _ends(min, max, 1)
    chosen = name or "FakeQuantWithMinMaxVarsPerChannelGradient"
    return fake_quant_gradient(gradients, inputs, low, high, num_bits, narrow_range, name=chosen)


@op("QuantizeAndDequantize", public="")
def _quantize_and_dequantize(
    input: Floating,
    input_min: Floating,
    input_max: Floating,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    narrow_range: bool = False,
) -> Spec:
    """Floats rounded to multiples of the unit with which integers of some bits span a range.

    Args:
        input: [...], floating.
        input_min: [], the lower end of the range.
        input_max: [], the upper end.
        signed_input: Whether the integers have a sign.
        num_bits: How many bits they have.
        range_given: Whether the range is given, or that of ``input``.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        narrow_range: Whether the lowest integer is left out.

    Returns:
        The shape and dtype of ``input``.
    """
    most = 62 if signed_input else 63
    if not 0 < num_bits <= most:
        raise AttributeValueError(f"num_bits must be in [1, {most}], got {num_bits}")
    if round_mode not in ("HALF_TO_EVEN", "HALF_UP"):
        raise AttributeValueError(
            f"round_mode must be 'HALF_TO_EVEN' or 'HALF_UP', got {shown(round_mode)}"
        )
    for end, what in ((input_min, "input_min"), (input_max, "input_max")):
        if end.rank not in (None, 0):
            raise ShapeError(f"{what} must be a scalar, got shape {end.shape}")
    low, high = input_min.value, input_max.value
    if range_given and low is not None and high is not None and low > high:
        raise AttributeValueError(f"Invalid range: input_min {low} > input_max {high}")
    return like(input)


def quantize_and_dequantize(
    input: Any,
    input_min: Any,
    input_max: Any,
    signed_input: bool = True,
    num_bits: int = 8,
    range_given: bool = False,
    round_mode: str = "HALF_TO_EVEN",
    name: str | None = None,
    narrow_range: bool = False,
) -> Tensor:
    """Round floats to multiples of the unit with which integers of some bits span a range.

    Args:
        input: [...], floating.
        input_min: [], the lower end of the range.
        input_max: [], the upper end.
        signed_input: Whether the integers have a sign.
        num_bits: How many bits they have.
        range_given: Whether the range is as given, and what is beyond is clipped; else it is that
            of ``input``.
        round_mode: "HALF_TO_EVEN" or "HALF_UP".
        name: The name of the operation.
        narrow_range: Whether the lowest integer is left out.

    Returns:
        The shape and dtype of ``input``; its gradient is that of the identity.

    Raises:
        AttributeValueError: for numbers of bits or a rounding that do not exist, or an empty range.
        ShapeError: if an end of the range is no scalar.
    """
    x = convert_to_tensor(input, preferred_dtype=dtypes.float32)
    found: Tensor = _quantize_and_dequantize(
        x,
        convert_to_tensor(input_min, preferred_dtype=x.dtype),
        convert_to_tensor(input_max, preferred_dtype=x.dtype),
        signed_input,
        num_bits,
        range_given,
        round_mode,
        narrow_range,
        name=name or "QuantizeAndDequantizeV2",
    )
    return found
