"""Numbers and arrays that are fed become what the conversion of any value makes of them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.graph.convert import to_array
from headrace.session.feeds import binder

DTYPES = (
    *("bool", "int8", "int32", "int64", "uint8", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64"),
)
NUMBERS: tuple[Any, ...] = (
    *(True, False, 0, 1, -1, 7, 255, (1 << 24) - 1, 1 << 24, (1 << 24) + 1, (1 << 53) + 1),
    *((1 << 31) - 1, -(1 << 31), 1 << 31, -(1 << 31) - 1, (1 << 63) - 1, -(1 << 63), 1 << 63),
    *(0.0, -0.0, 0.1, 1e-46, 1e38, 3.4028235e38, 1e39, -1e300, np.inf, -np.inf, np.nan, 3.0),
    *(np.float32(0.1), np.float64(0.1), np.float32(np.nan), np.float64(1e39), np.float16(1)),
    *(np.bool_(True), np.int32(5), np.int64(-5), np.int64(1 << 62), np.uint8(200), 1 + 2j),
)


def outcome(convert: Any) -> Any:
    try:
        array = convert()
    except hr.errors.HeadraceError as error:
        return type(error).__name__.removeprefix("Feed").removeprefix("D")
    return array.dtype, array.shape, array.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_become_what_any_value_becomes(dtype: str) -> None:
    tensor = hr.placeholder(dtype, [])
    bind = binder(tensor)
    for number in NUMBERS:
        expected = outcome(lambda value=number: to_array(value, tensor.dtype, fed=True))
        assert outcome(lambda value=number: bind(value)) == expected, number


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_become_what_any_value_becomes(dtype: str) -> None:
    tensor = hr.placeholder(dtype, [None, None])
    bind = binder(tensor)
    for source in "?bBhHiIqQefdFDg":
        for values in ([[0, 1, 2]], [[200, 70_000, (1 << 53) + 1]], [[-1, 3e38, 1e39]], [[0.5]]):
            with np.errstate(all="ignore"):
                given = np.array(values, "d").astype(source)
            for array in (given, given.T, given.astype(given.dtype.newbyteorder(">")), given[:0]):
                before = array.copy()
                expected = outcome(lambda value=array: to_array(value, tensor.dtype, fed=True))
                assert outcome(lambda value=array: bind(value)) == expected, array
                assert array.tobytes() == before.tobytes()


def test_a_number_is_refused_where_a_tensor_of_elements_is_fed() -> None:
    bind = binder(hr.placeholder("float32", [2]))
    for value in (0.5, 1, np.float32(2)):
        with pytest.raises(hr.errors.FeedError, match=r"cannot feed an array of shape \[\] for"):
            bind(value)


@pytest.mark.needs("backend-cpu")
def test_numbers_of_subclasses_are_converted_as_ever() -> None:
    class Rate(float):
        pass

    rate, session = hr.placeholder("float32", []), hr.Session()
    for value, doubled in itertools.product((Rate(0.25), 0.25, np.float64(0.25)), (rate * 2,)):
        assert session.run(doubled, {rate: value}) == 0.5
