"""Conversions of dtypes: by value, by value within limits, and by bit pattern."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import DTypeError, ShapeError
from headrace.graph.convert import as_tensor, convert_to_tensor
from headrace.graph.dispatch import dispatched
from headrace.graph.indexed_slices import IndexedSlices
from headrace.graph.naming import names_result
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Anything
from headrace.shapes import Shape


@op(
    "Cast",
    exact=True,
    early=lambda x, *, dtype: x.astype(dtype.numpy),
    aliases=["x"],
    expression=lambda s, x, *, dtype: s.cast(x, dtype),
    elementwise=True,
    public="",
)
def _cast(x: Anything, dtype: DType) -> Spec:
    """``x`` converted to another dtype.

    Floats become integers by dropping the fraction, numbers become bool by comparing with 0, and
    complex numbers lose their imaginary part.

    Args:
        x: [...], any dtype but string.
        dtype: The dtype of the result.

    Returns:
        [...], ``dtype``.
    """
    if "string" in (x.dtype.kind, dtype.kind):
        raise DTypeError(
            f"strings are not converted by cast, got {x.dtype} to {dtype}; "
            "hr.strings.to_number and hr.as_string do that"
        )
    if dtype.kind == "resource":
        raise DTypeError("nothing converts to a resource handle")
    if x.dtype.is_quantized or dtype.is_quantized:
        raise DTypeError(f"the op converts numbers, got {x.dtype} to {dtype}; hr.cast does more")
    return TensorSpec(dtype, x.shape)


@dispatched("x")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Convert ``x`` to another dtype; a tensor that has it already is returned as it is.

    Args:
        x: [...], any dtype but string; or ``IndexedSlices`` or a ``SparseTensor``, which stay
            sparse.
        dtype: The dtype of the result, in any form that ``as_dtype`` takes.
        name: The name of the operation.

    Returns:
        [...], ``dtype``.

    Raises:
        DTypeError: for strings.
    """
    wanted = as_dtype(dtype)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, wanted, name), x.indices, x.dense_shape)
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, cast(x.values, wanted, name), x.dense_shape)
    tensor = as_tensor(x)
    if tensor is None:
        tensor = convert_to_tensor(x)
    if tensor.dtype == wanted:
        return tensor
    # Of quantized elements the integers are converted that stand for them.
    if tensor.dtype.is_quantized or wanted.is_quantized:
        return cast_levels(tensor, wanted, name or "Cast")
    return _cast(tensor, wanted, name=name)


def cast_levels(tensor: Tensor, wanted: DType, name: str) -> Tensor:
    """Return the integers of quantized elements converted, or integers read as such elements."""
    stored, target = tensor.dtype.storage, wanted.storage
    if tensor.dtype.is_quantized:
        last = stored == wanted
        tensor = bitcast(tensor, stored, name=name if last else "levels")
    if stored != target:
        tensor = _cast(tensor, target, name="levels" if wanted.is_quantized else name)
    return bitcast(tensor, wanted, name=name) if wanted.is_quantized else tensor


def integers_of(value: Any) -> Tensor | None:
    """Return the integers that quantized elements are held as, None for what is not quantized."""
    tensor = as_tensor(value)
    if tensor is None or not tensor.dtype.is_quantized:
        return None
    found: Tensor = bitcast(tensor, tensor.dtype.storage)
    return found


@dispatched("value")
@names_result
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """Convert to another dtype; what is outside its range becomes its smallest or largest value.

    Args:
        value: [...], real.
        dtype: The dtype of the result, real.
        name: The name of the operations.

    Returns:
        [...], ``dtype``.

    Raises:
        DTypeError: for strings, bool and complex numbers.
    """
    wanted = as_dtype(dtype)
    with name_scope(name, "saturate_cast"):
        tensor = convert_to_tensor(value)
        for kind in (tensor.dtype, wanted):
            if not kind.is_numeric or kind.is_complex:
                raise DTypeError(f"saturate_cast: expected real numbers, got {kind}")
        source = tensor.dtype
        if source.min < wanted.min:
            tensor = call_op("Maximum", tensor, np.array(wanted.min).astype(source.numpy))
        if source.max > wanted.max:
            tensor = call_op("Minimum", tensor, _largest(source, wanted))
        return cast(tensor, wanted)  # type: ignore[no-any-return]


def _largest(source: DType, target: DType) -> Any:
    """Return the largest value of ``source`` that lies within the range of ``target``.

    The largest integer may not be a float: the next float above it would wrap around.
    """
    high = np.array(target.max).astype(source.numpy)
    if source.is_floating and target.is_integer and int(high) > target.max:
        # One step towards 0, by the bit pattern: the numbers of one sign are ordered by it.
        bits = np.dtype(f"u{source.itemsize}")
        high = (high.view(bits) - bits.type(1)).view(source.numpy)
    return high


def to_float(x: Any, name: str | None = "ToFloat") -> Any:
    """Convert to float32; see ``cast``."""
    return cast(x, dtypes.float32, name)


def to_double(x: Any, name: str | None = "ToDouble") -> Any:
    """Convert to float64; see ``cast``."""
    return cast(x, dtypes.float64, name)


def to_int32(x: Any, name: str | None = "ToInt32") -> Any:
    """Convert to int32; see ``cast``."""
    return cast(x, dtypes.int32, name)


def to_int64(x: Any, name: str | None = "ToInt64") -> Any:
    """Convert to int64; see ``cast``."""
    return cast(x, dtypes.int64, name)


def to_bfloat16(x: Any, name: str | None = "ToBFloat16") -> Any:
    """Convert to bfloat16; see ``cast``."""
    return cast(x, dtypes.bfloat16, name)


def to_complex64(x: Any, name: str | None = "ToComplex64") -> Any:
    """Convert to complex64; see ``cast``."""
    return cast(x, dtypes.complex64, name)


def to_complex128(x: Any, name: str | None = "ToComplex128") -> Any:
    """Convert to complex128; see ``cast``."""
    return cast(x, dtypes.complex128, name)


@op("Bitcast", no_gradient="bit patterns have none")
def bitcast(input: Anything, type: DType) -> Spec:
    """The bytes of the elements, read as elements of another dtype.

    Args:
        input: [...], numeric, quantized or bool. Where elements of ``type`` are wider, the last
            dimension is the quotient of both widths.
        type: The dtype of the result, numeric, quantized or bool.

    Returns:
        [...], ``type``; with one dimension more where its elements are narrower, and one less
        where they are wider.

    Raises:
        DTypeError: for strings and handles.
        ShapeError: if the last dimension does not fill one wider element.
    """
    for dtype in (input.dtype, type):
        if not (dtype.is_numeric or dtype.is_bool or dtype.is_quantized):
            raise DTypeError(f"bitcast reads numbers, got {input.dtype} to {type}")
    if "bool" in (input.dtype.kind, type.kind) and input.dtype != type:
        raise DTypeError(f"not every byte is a bool, got {input.dtype} to {type}")
    dims = input.shape.dims
    if input.dtype.itemsize >= type.itemsize:
        parts = input.dtype.itemsize // type.itemsize
        if dims is None or parts == 1:
            return TensorSpec(type, input.shape)
        return TensorSpec(type, Shape([*dims, parts]))
    parts = type.itemsize // input.dtype.itemsize
    if dims is None:
        return TensorSpec(type)
    if not dims or dims[-1] not in (None, parts):
        raise ShapeError(
            f"the last dimension must be {parts}, so that it fills one {type}; got {input.shape}"
        )
    return TensorSpec(type, Shape(dims[:-1]))
