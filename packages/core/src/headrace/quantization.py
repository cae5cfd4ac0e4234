"""Rounding to the values of integers of a few bits, as ``hr.quantization``."""

from typing import TYPE_CHECKING as _TYPE_CHECKING

from headrace.ops.quantization import fake_quant_with_min_max_args as fake_quant_with_min_max_args
from headrace.ops.quantization import (
    fake_quant_with_min_max_args_gradient as fake_quant_with_min_max_args_gradient,
)
from headrace.ops.quantization import fake_quant_with_min_max_vars as fake_quant_with_min_max_vars
from headrace.ops.quantization import (
    fake_quant_with_min_max_vars_gradient as fake_quant_with_min_max_vars_gradient,
)
from headrace.ops.quantization import (
    fake_quant_with_min_max_vars_per_channel as fake_quant_with_min_max_vars_per_channel,
)
from headrace.ops.quantization import (
    fake_quant_with_min_max_vars_per_channel_gradient as fake_quant_with_min_max_vars_per_channel_gradient,  # noqa: E501
)
from headrace.ops.quantization import quantize_and_dequantize as quantize_and_dequantize
from headrace.ops.quantized import dequantize as dequantize
from headrace.ops.quantized import quantize as quantize
from headrace.ops.quantized import quantized_concat as quantized_concat
from headrace.plugins.namespaces import added_names as _added_names

if not _TYPE_CHECKING:
    __getattr__, __dir__ = _added_names("quantization", __name__)
