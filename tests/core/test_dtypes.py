"""Dtypes: names, aliases and the promotion that refuses loss."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import headrace as hr
from headrace.dtypes import ALL, promote
from headrace.errors import DTypeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("float", hr.float32),
        ("double", hr.float64),
        ("int32", hr.int32),
        (np.float64, hr.float64),
        (np.dtype("int8"), hr.int8),
        (ml_dtypes.bfloat16, hr.bfloat16),
        (float, hr.float32),
        (int, hr.int32),
        (bool, hr.bool),
        (str, hr.string),
        (np.dtype("U5"), hr.string),
        (hr.complex64, hr.complex64),
    ],
)
def test_as_dtype(value, expected):
    assert hr.as_dtype(value) is expected


@pytest.mark.parametrize("value", ["float31", None, object(), np.dtype("datetime64[s]"), [1]])
def test_as_dtype_refuses(value):
    with pytest.raises(DTypeError, match="is not a dtype; the dtypes are float16"):
        hr.as_dtype(value)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (hr.int32, hr.int64, hr.int64),
        (hr.float32, hr.float64, hr.float64),
        (hr.int8, hr.float16, hr.float16),
        (hr.int16, hr.float32, hr.float32),
        (hr.int32, hr.float64, hr.float64),
        (hr.bfloat16, hr.float32, hr.float32),
        (hr.uint8, hr.int16, hr.int16),
        (hr.float32, hr.complex64, hr.complex64),
        (hr.uint8, hr.bfloat16, hr.bfloat16),
        (hr.int32, hr.float32, None),
        (hr.int64, hr.float64, None),
        (hr.uint8, hr.int8, None),
        (hr.bfloat16, hr.float16, None),
        (hr.bool, hr.int32, None),
        (hr.string, hr.int32, None),
        (hr.float64, hr.complex64, None),
    ],
)
def test_promote(left, right, expected):
    assert promote(left, right) is expected
    assert promote(right, left) is expected


@pytest.mark.parametrize("dtype", [d for d in ALL if d.is_integer], ids=str)
def test_integer_promotion_keeps_every_value(dtype):
    for other in ALL:
        merged = promote(dtype, other)
        if merged is not None:
            for value in (dtype.min, dtype.max):
                assert int(np.array(value).astype(merged.numpy).real) == value


def test_dtype_equals_its_name_and_numpy_dtype():
    assert hr.float32 == "float32"
    assert hr.float32 == np.float32
    assert hr.float32 != hr.float64
    assert hr.float32 != None  # noqa: E711
    assert len({hr.float32, hr.as_dtype("float")}) == 1


def test_limits():
    assert (hr.int8.min, hr.int8.max) == (-128, 127)
    assert hr.float16.max == 65504.0
    with pytest.raises(DTypeError, match="bool has no smallest"):
        _ = hr.bool.max


@pytest.mark.parametrize(
    ("dtype", "storage", "number"),
    [
        (hr.qint8, hr.int8, 11),
        (hr.quint8, hr.uint8, 12),
        (hr.qint32, hr.int32, 13),
        (hr.qint16, hr.int16, 15),
        (hr.quint16, hr.uint16, 16),
    ],
)
def test_quantized_dtypes_are_no_numbers_and_held_as_integers(dtype, storage, number):
    assert dtype.is_quantized
    assert dtype in hr.QUANTIZED_DTYPES
    assert dtype.storage is storage
    assert storage.storage is storage
    assert dtype.numpy == storage.numpy
    assert not any((dtype.is_integer, dtype.is_numeric, dtype.is_unsigned, dtype.is_floating))
    assert dtype != storage
    assert hr.as_dtype(dtype.numpy) is storage
    assert hr.as_dtype(number) is dtype
    assert dtype.as_numpy_dtype == np.dtype([(dtype.name, storage.numpy)])
    assert hr.as_dtype(dtype.as_numpy_dtype) is dtype
    assert promote(dtype, dtype) is dtype
    assert all(promote(dtype, other) is None for other in ALL if other is not dtype)


@pytest.mark.parametrize("what", ["min", "max", "limits"])
def test_quantized_dtypes_have_no_range(what):
    with pytest.raises(DTypeError, match=r"qint16 (has no smallest|does not have defined limits)"):
        getattr(hr.qint16, what)


def test_structured_dtypes_of_other_names_are_no_dtypes():
    with pytest.raises(DTypeError, match="is not a dtype"):
        hr.as_dtype(np.dtype([("qint9", np.int8)]))
    with pytest.raises(DTypeError, match="is not a dtype"):
        hr.as_dtype(np.dtype([("qint8", np.int8), ("quint8", np.uint8)]))


def test_the_module_of_dtypes_has_the_functions_that_make_tensors_of_them():
    for name in ("as_dtype", "as_string", "cast", "complex", "saturate_cast"):
        assert getattr(hr.dtypes, name) is getattr(hr, name)
        assert name in dir(hr.dtypes)
    for name in ("bool", "half", "double", "qint8", "QUANTIZED_DTYPES"):
        assert getattr(hr.dtypes, name) is getattr(hr, name)
    with pytest.raises(AttributeError, match="has no attribute 'float31'"):
        _ = hr.dtypes.float31
