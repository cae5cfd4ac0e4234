"""Complex numbers: their parts, and functions that are told apart for them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.errors import DTypeError
from headrace.graph.convert import convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.naming import names_result
from headrace.graph.schema import OPERATORS
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.constant import zeros_like
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec
from headrace.ops.elementwise import div_no_nan, less, real_abs, real_sign, select
from headrace.ops.kinds import ComplexNumber, Floating
from headrace.ops.pointwise import joined, on_values, pointwise


def _part(z: TensorSpec) -> Spec:
    return TensorSpec(z.dtype.real_dtype, z.shape)


_PART = "float32 of complex64, float64 of complex128"


@pointwise("Complex", gives="complex64 of float32, complex128 of float64", public="complex")
def complex_(real: Floating, imag: Floating) -> Spec:
    """The complex numbers ``real + 1j * imag``, elementwise with broadcasting."""
    if real.dtype not in (dtypes.float32, dtypes.float64):
        raise DTypeError(f"complex numbers are made of float32 or float64, got {real.dtype}")
    wide = dtypes.complex64 if real.dtype == dtypes.float32 else dtypes.complex128
    return joined(real, imag, dtype=wide)


@pointwise("Real", gives=_PART, public="")
def _real(input: ComplexNumber) -> Spec:
    """Real parts of complex numbers."""
    return _part(input)


@pointwise("Imag", gives=_PART, public="")
def _imag(input: ComplexNumber) -> Spec:
    """Imaginary parts of complex numbers."""
    return _part(input)


@pointwise("Angle", gives=_PART, public="")
def _angle(input: ComplexNumber) -> Spec:
    """Angles of complex numbers in radians, in (-pi, pi]."""
    return _part(input)


@pointwise("ComplexAbs", nonnegative=True, gives=_PART, public="")
def _complex_abs(x: ComplexNumber) -> Spec:
    """Absolute values of complex numbers."""
    return _part(x)


@dispatched("input")
def real(input: Any, name: str | None = None) -> Tensor:
    """Real part; a real tensor is returned as it is.

    Args:
        input: [...], numeric.
        name: The name of the operation.

    Returns:
        [...], float32 of complex64, float64 of complex128.
    """
    tensor = _numeric(input, "real")
    return _real(tensor, name=name) if tensor.dtype.is_complex else tensor


@dispatched("input")
def imag(input: Any, name: str | None = None) -> Tensor:
    """Imaginary part; zeros of a real tensor.

    Args:
        input: [...], numeric.
        name: The name of the operation.

    Returns:
        [...], float32 of complex64, float64 of complex128, else the dtype of ``input``.
    """
    tensor = _numeric(input, "imag")
    return _imag(tensor, name=name) if tensor.dtype.is_complex else zeros_like(tensor, name=name)


@dispatched("input")
@names_result
def angle(input: Any, name: str | None = None) -> Tensor:
    """Angle in radians, in (-pi, pi]; 0 or pi of real numbers.

    Args:
        input: [...], floating or complex.
        name: The name of the operation.

    Returns:
        [...], float32 of complex64, float64 of complex128, else the dtype of ``input``.

    Raises:
        DTypeError: if ``input`` is neither floating nor complex.
    """
    tensor = _numeric(input, "angle")
    if tensor.dtype.is_integer:
        raise DTypeError(f"angle: input must be floating or complex, got {tensor.dtype}")
    if tensor.dtype.is_complex:
        return _angle(tensor, name=name)
    with name_scope(name, "Angle"):
        half_turn = np.array(math.pi).astype(tensor.dtype.numpy)
        return select(less(tensor, 0), half_turn, zeros_like(tensor))


@dispatched("x")
def abs_(x: Any, name: str | None = None) -> Any:
    """Absolute value.

    Args:
        x: [...], numeric; or a ``SparseTensor``, which stays sparse.
        name: The name of the operation.

    Returns:
        [...], the dtype of ``x``; float32 of complex64, float64 of complex128.
    """
    if isinstance(x, SparseTensor):
        return on_values(abs_, x, name)
    tensor = convert_to_tensor(x)
    if tensor.dtype.is_complex:
        return _complex_abs(tensor, name=name)
    return real_abs(tensor, name=name)


OPERATORS["abs"] = abs_


@dispatched("x")
@names_result
def sign(x: Any, name: str | None = None) -> Any:
    """-1, 0 or 1 as ``x`` is negative, zero or positive; ``x / abs(x)`` of complex numbers.

    Args:
        x: [...], numeric; or a ``SparseTensor``, which stays sparse.
        name: The name of the operations.

    Returns:
        [...], the dtype of ``x``; NaN where ``x`` is.
    """
    if isinstance(x, SparseTensor):
        return on_values(sign, x, name)
    tensor = convert_to_tensor(x)
    if not tensor.dtype.is_complex:
        return real_sign(tensor, name=name)
    with name_scope(name, "Sign"):
        return div_no_nan(tensor, cast(abs_(tensor), tensor.dtype))


def _numeric(value: Any, label: str) -> Tensor:
    tensor = convert_to_tensor(value)
    if not tensor.dtype.is_numeric:
        raise DTypeError(f"{label}: input must be numeric, got {tensor.dtype}")
    return tensor
