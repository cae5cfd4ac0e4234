"""Kinds: the annotations that mark a parameter of an op as a tensor input.

Inputs of one kind in one op share one dtype; those of a kind marked ``unify=False`` do not.
To a type checker they are ``Any``, since callers may pass whatever converts to a tensor.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from headrace import dtypes
from headrace.dtypes import DType
from headrace.graph.schema import Kind

Floating: TypeAlias = Annotated[Any, Kind("floating", lambda d: d.is_floating)]
Inexact: TypeAlias = Annotated[
    Any, Kind("floating or complex", lambda d: d.is_floating or d.is_complex)
]
# What other functions of matrices take: 16-bit floats are too coarse for them.
Precise: TypeAlias = Annotated[
    Any,
    Kind(
        "float32, float64, complex64 or complex128",
        lambda d: (d.is_floating or d.is_complex) and d.itemsize >= 4,
    ),
]
# What factorizations take that compute in float32 where the elements are float16.
Factored: TypeAlias = Annotated[
    Any,
    Kind(
        "float16, float32, float64, complex64 or complex128",
        lambda d: (d.is_floating or d.is_complex) and d is not dtypes.bfloat16,
    ),
]
Numeric: TypeAlias = Annotated[Any, Kind("numeric", lambda d: d.is_numeric)]
Summable: TypeAlias = Annotated[
    Any, Kind("numeric or string", lambda d: d.is_numeric or d.kind == "string")
]
Real: TypeAlias = Annotated[Any, Kind("a real number", lambda d: d.is_numeric and not d.is_complex)]
ComplexNumber: TypeAlias = Annotated[Any, Kind("complex", lambda d: d.is_complex)]
Integer: TypeAlias = Annotated[Any, Kind("an integer", lambda d: d.is_integer)]
Index: TypeAlias = Annotated[
    Any, Kind("int32 or int64", lambda d: d in (dtypes.int32, dtypes.int64), unify=False)
]
# Of shapes and counts, which programs compute with NumPy in whatever integers there are.
Whole: TypeAlias = Annotated[
    Any,
    Kind(
        "int32 or int64",
        lambda d: d in (dtypes.int32, dtypes.int64),
        unify=False,
        whole=dtypes.int32,
    ),
]
# Of functions that take arrays of any numbers for floats, where floats hold them.
Float: TypeAlias = Annotated[
    Any,
    Kind(
        "float32 or float64",
        lambda d: d in (dtypes.float32, dtypes.float64),
        whole=dtypes.float32,
    ),
]
Bool: TypeAlias = Annotated[Any, Kind("bool", lambda d: d.is_bool)]
String: TypeAlias = Annotated[Any, Kind("string", lambda d: d.kind == "string")]
Resource: TypeAlias = Annotated[
    Any, Kind("a resource handle", lambda d: d.kind == "resource", unify=False)
]


def _dense(dtype: DType) -> bool:
    return dtype.kind not in ("resource", "list")


Same: TypeAlias = Annotated[Any, Kind("any dtype", _dense)]
# What a step moves without looking at it, handles and lists of tensors included.
Value: TypeAlias = Annotated[Any, Kind("any dtype, handle or list", lambda _: True, unify=False)]
# The same, of what programs ask for, who find a variable by its name.
Shown: TypeAlias = Annotated[
    Any, Kind("any dtype, handle or list", lambda _: True, unify=False, reads=True)
]
SameValue: TypeAlias = Annotated[Any, Kind("any dtype, handle or list", lambda _: True)]
TensorList: TypeAlias = Annotated[
    Any, Kind("a list of tensors", lambda d: d.kind == "list", unify=False)
]
Anything: TypeAlias = Annotated[Any, Kind("any dtype", _dense, unify=False)]
# What is written down element by element: levels are nothing without their range.
Written: TypeAlias = Annotated[
    Any,
    Kind(
        "of a dtype that is not quantized", lambda d: _dense(d) and not d.is_quantized, unify=False
    ),
]
