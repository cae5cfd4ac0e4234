"""Element types of tensors, and the promotion between them that refuses silent loss."""

from __future__ import annotations

import functools
import importlib
import typing

import ml_dtypes
import numpy as np

from headrace.errors import DTypeError, shown
from headrace.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """The type of a tensor's elements.

    Attributes:
        name: The canonical name, as in ``"float32"``.
        kind: One of ``"float" "int" "uint" "bool" "complex" "string" "resource" "list"
            "quantized"``.
        numpy: The NumPy dtype of arrays that hold such elements.
        significand: Number of bits in which every integer value is exact (0 where not a number).
        exponent: Number of exponent bits (0 for types that are not floating).
    """

    name: str
    kind: str
    numpy: np.dtype[typing.Any]
    significand: int = 0
    exponent: int = 0

    @property
    def as_numpy_dtype(self) -> typing.Any:
        """The NumPy type of the elements: a scalar type, or for quantized ones a structured one.

        NumPy has no quantized types; TensorFlow's stand-ins have one field, of the type's name.
        """
        return self.numpy.type if not self.is_quantized else np.dtype([(self.name, self.numpy)])

    @property
    def itemsize(self) -> int:
        """Bytes of one element (of the reference for strings and resources)."""
        return self.numpy.itemsize

    @property
    def is_floating(self) -> bool:
        """Whether this is a real floating type."""
        return self.kind == "float"

    @property
    def is_complex(self) -> bool:
        """Whether this is a complex type."""
        return self.kind == "complex"

    @property
    def is_integer(self) -> bool:
        """Whether this is a signed or unsigned integer type (``bool`` is not)."""
        return self.kind in ("int", "uint")

    @property
    def is_bool(self) -> bool:
        """Whether this is ``bool``."""
        return self.kind == "bool"

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic is defined on the elements."""
        return self.kind in ("float", "int", "uint", "complex")

    @property
    def is_differentiable(self) -> bool:
        """Whether gradients flow through tensors of this type.

        Those of variables' handles and of lists do where their content's do.
        """
        return self.kind in ("float", "complex", "resource", "list")

    @property
    def base_dtype(self) -> DType:
        """The type itself: there are no reference types."""
        return self

    @property
    def as_datatype_enum(self) -> int:
        """The number that stands for the type in messages of TensorFlow's form."""
        return _NUMBERS[self.name]

    @property
    def size(self) -> int:
        """Bytes of one element (TensorFlow's name for ``itemsize``)."""
        return self.itemsize

    @property
    def real_dtype(self) -> DType:
        """The type of the parts of a complex number; the type itself where it is not complex."""
        if not self.is_complex:
            return self
        return float32 if self.itemsize == 8 else float64

    @property
    def is_unsigned(self) -> bool:
        """Whether this is an unsigned integer type."""
        return self.kind == "uint"

    @property
    def is_quantized(self) -> bool:
        """Whether elements are levels of a range of floats that is kept beside the tensor."""
        return self.kind == "quantized"

    @property
    def storage(self) -> DType:
        """The type of the integers that quantized elements are held as; else the type itself."""
        return _BY_NUMPY[self.numpy] if self.is_quantized else self

    @property
    def is_numpy_compatible(self) -> bool:
        """Whether NumPy has arrays of such elements."""
        return self.kind not in ("resource", "list")

    @property
    def limits(self) -> tuple[int | bool, int | bool]:
        """The range of intensities of images: from 0 to the largest integer, or to 1 for floats.

        Raises:
            DTypeError: if images are not of this type.
        """
        if self.is_bool:
            return False, True
        if self.is_integer:
            return 0, int(self.max)
        if self in (float32, float64):
            return 0, 1
        raise DTypeError(f"{self.name} does not have defined limits")

    def is_compatible_with(self, other: typing.Any) -> bool:
        """Whether a tensor of the other type can stand where this one is expected."""
        return self == as_dtype(other)

    @property
    def min(self) -> int | float:
        """The smallest finite value."""
        return int(np.iinfo(self.numpy).min) if self.is_integer else float(self._finfo().min)

    @property
    def max(self) -> int | float:
        """The largest finite value."""
        return int(np.iinfo(self.numpy).max) if self.is_integer else float(self._finfo().max)

    def _finfo(self) -> typing.Any:
        if not self.is_floating:
            raise DTypeError(f"{self.name} has no smallest and largest value")
        return ml_dtypes.finfo(self.numpy)  # type: ignore[no-untyped-call]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self is other or self.name == other.name
        if other is None:
            return False
        try:
            return as_dtype(other).name == self.name
        except DTypeError:
            return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"headrace.{self.name}"

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return (as_dtype, (self.name,))


float16 = DType("float16", "float", np.dtype(np.float16), 11, 5)
float32 = DType("float32", "float", np.dtype(np.float32), 24, 8)
float64 = DType("float64", "float", np.dtype(np.float64), 53, 11)
bfloat16 = DType("bfloat16", "float", np.dtype(ml_dtypes.bfloat16), 8, 8)
int8 = DType("int8", "int", np.dtype(np.int8), 7)
int16 = DType("int16", "int", np.dtype(np.int16), 15)
int32 = DType("int32", "int", np.dtype(np.int32), 31)
int64 = DType("int64", "int", np.dtype(np.int64), 63)
uint8 = DType("uint8", "uint", np.dtype(np.uint8), 8)
uint16 = DType("uint16", "uint", np.dtype(np.uint16), 16)
uint32 = DType("uint32", "uint", np.dtype(np.uint32), 32)
uint64 = DType("uint64", "uint", np.dtype(np.uint64), 64)
bool_ = DType("bool", "bool", np.dtype(np.bool_))
complex64 = DType("complex64", "complex", np.dtype(np.complex64), 24, 8)
complex128 = DType("complex128", "complex", np.dtype(np.complex128), 53, 11)
half, double = float16, float64
string = DType("string", "string", np.dtype(object))
# Levels of a range of floats. Kernels see the integers alone: arithmetic needs the range, too.
qint8 = DType("qint8", "quantized", np.dtype(np.int8))
quint8 = DType("quint8", "quantized", np.dtype(np.uint8))
qint16 = DType("qint16", "quantized", np.dtype(np.int16))
quint16 = DType("quint16", "quantized", np.dtype(np.uint16))
qint32 = DType("qint32", "quantized", np.dtype(np.int32))
resource = DType("resource", "resource", np.dtype(object))
# A list of tensors of one dtype, as loops gather them: an immutable value like any other.
tensor_list = DType("tensor_list", "list", np.dtype(object))

ALL = (
    *(float16, float32, float64, bfloat16),
    *(int8, int16, int32, int64, uint8, uint16, uint32, uint64),
    *(bool_, complex64, complex128, string, resource, tensor_list),
    *(qint8, quint8, qint16, quint16, qint32),
)
QUANTIZED_DTYPES = frozenset(dtype for dtype in ALL if dtype.is_quantized)
_BY_NAME = {dtype.name: dtype for dtype in ALL}
# How messages of TensorFlow's form number them. It calls lists of tensors variants.
_NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "string": 7,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "qint8": 11,
    "quint8": 12,
    "qint32": 13,
    "bfloat16": 14,
    "qint16": 15,
    "quint16": 16,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "resource": 20,
    "tensor_list": 21,
    "uint32": 22,
    "uint64": 23,
}
_BY_NUMBER = {number: _BY_NAME[name] for name, number in _NUMBERS.items()}
# A type plus so much is a reference to a variable of it.
_REFERENCE = 100
_ALIASES = {"float": float32, "double": float64, "half": float16, "str": string, "bytes": string}
_BY_NUMPY = {
    dtype.numpy: dtype
    for dtype in ALL
    if dtype.numpy != np.dtype(object) and not dtype.is_quantized
}
_STRUCTURED = {dtype.as_numpy_dtype: dtype for dtype in ALL if dtype.is_quantized}


def as_dtype(type_value: typing.Any) -> DType:
    """Return the ``DType`` that ``type_value`` stands for.

    Args:
        type_value: A ``DType``, a name such as ``"float32"`` or ``"float"``, a NumPy dtype or
            scalar type, one of Python's ``float`` (float32), ``int`` (int32), ``bool``, ``complex``
            (complex128), ``str``, ``bytes`` and ``object`` (string), or a number that
            ``as_datatype_enum`` gives.

    Raises:
        DTypeError: if it stands for none.
    """
    value = type_value
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        found = _BY_NAME.get(value) or _ALIASES.get(value)
        if found is not None:
            return found
    elif isinstance(value, type) and value in _PYTHON_TYPES:
        return _PYTHON_TYPES[value]
    elif type(value) is int:
        found = _BY_NUMBER.get(value - _REFERENCE if value > _REFERENCE else value)
        if found is not None:
            return found
    elif value is not None:
        try:
            given = np.dtype(value)
            found = _BY_NUMPY.get(given) if given.names is None else _STRUCTURED.get(given)
        except (TypeError, ValueError, RecursionError):
            found = None
        if found is not None:
            return found
        if getattr(value, "kind", None) in ("U", "S", "O"):
            return string
    raise DTypeError(f"{shown(value)} is not a dtype; the dtypes are {', '.join(_BY_NAME)}")


_PYTHON_TYPES: dict[type, DType] = {
    float: float32,
    int: int32,
    bool: bool_,
    complex: complex128,
    str: string,
    bytes: string,
    object: string,
    np.object_: string,
    np.str_: string,
    np.bytes_: string,
}


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether every value of ``narrow`` is a value of ``wide``."""
    if wide is narrow:
        return True
    if not (wide.is_numeric and narrow.is_numeric):
        return False
    if narrow.kind == "complex" and wide.kind != "complex":
        return False
    if narrow.kind in ("float", "complex"):
        return wide.exponent >= narrow.exponent and wide.significand >= narrow.significand
    if narrow.kind == "int" and wide.kind == "uint":
        return False
    return wide.significand >= narrow.significand


@functools.cache
def promote(left: DType, right: DType) -> DType | None:
    """Return the one of two dtypes that holds every value of the other, or None.

    Unlike NumPy's, this promotion never invents a third dtype and never rounds: ``int32`` with
    ``float32`` has no answer, because float32 does not hold every int32.
    """
    if _holds(left, right):
        return left
    if _holds(right, left):
        return right
    return None


# What TensorFlow has beside the dtypes. The functions stand above this module, which all others
# import; ``bool`` is Python's in here.
_FUNCTIONS = ("as_string", "cast", "complex", "saturate_cast")

if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> typing.Any:
        if name == "bool":
            return bool_
        if name not in _FUNCTIONS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module("headrace.functions"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *_FUNCTIONS, "bool"})
