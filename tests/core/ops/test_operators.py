"""Tensors in Python: operators from both sides, plain data as operands, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, GraphError, SymbolicTensorError
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


def f(*values):
    return hr.constant(list(values), hr.float32)


def i(*values):
    return hr.constant(list(values), hr.int32)


def b(*values):
    return hr.constant(list(values), hr.bool)


OPERATORS = {
    "+": (lambda: f(1, 2) + 1, [2.0, 3.0]),
    "r+": (lambda: 1 + f(1, 2), [2.0, 3.0]),
    "-": (lambda: f(1, 2) - 0.5, [0.5, 1.5]),
    "r-": (lambda: 0.5 - f(1, 2), [-0.5, -1.5]),
    "*": (lambda: i(1, 2) * 3, [3, 6]),
    "r*": (lambda: 3 * i(1, 2), [3, 6]),
    "/": (lambda: f(1, 2) / 2, [0.5, 1.0]),
    "r/": (lambda: 2 / f(1, 4), [2.0, 0.5]),
    "//": (lambda: i(7, -7) // 2, [3, -4]),
    "r//": (lambda: 7 // i(2, -2), [3, -4]),
    "%": (lambda: i(7, -7) % 3, [1, 2]),
    "r%": (lambda: 7 % i(3, -3), [1, -2]),
    "**": (lambda: f(2, 3) ** 2, [4.0, 9.0]),
    "r**": (lambda: 2 ** i(2, 3), [4, 8]),
    "@": (lambda: hr.constant([[1.0, 2.0]]) @ [[1.0], [2.0]], [[5.0]]),
    "r@": (lambda: np.float32([[1, 2]]) @ hr.constant([[1.0], [2.0]]), [[5.0]]),
    "neg": (lambda: -i(1, -2), [-1, 2]),
    "abs": (lambda: abs(i(1, -2)), [1, 2]),
    "complex abs": (lambda: abs(hr.constant(np.complex64([3 + 4j]))), [5.0]),
    "<": (lambda: i(1, 2) < 2, [True, False]),
    "r<": (lambda: 1 < i(1, 2), [False, True]),  # noqa: SIM300
    "<=": (lambda: i(1, 2) <= 1, [True, False]),
    ">": (lambda: f(1, 2) > 1, [False, True]),
    ">=": (lambda: f(1, 2) >= 2, [False, True]),
    "&": (lambda: b(True, False) & True, [True, False]),
    "r&": (lambda: True & b(True, False), [True, False]),
    "|": (lambda: b(True, False) | False, [True, False]),
    "^": (lambda: True ^ b(True, False), [False, True]),
    "~": (lambda: ~b(True, False), [False, True]),
    "& of bits": (lambda: i(5, 6) & 3, [1, 2]),
    "r| of bits": (lambda: 1 | i(4, 6), [5, 7]),
    "^ of bits": (lambda: i(5, 6) ^ i(1, 1), [4, 7]),
    "~ of bits": (lambda: ~i(0, -1), [-1, 0]),
    "list": (lambda: [1.0, 2.0] + f(1, 2), [2.0, 4.0]),  # noqa: RUF005
    "nested list": (lambda: f(1, 2) * [[1, 2], [3, 4]], [[1.0, 4.0], [3.0, 8.0]]),
    "tuple": (lambda: (1, 2) * f(1, 2), [1.0, 4.0]),
    "array": (lambda: np.array([1.0, 2.0]) * f(1, 2), [1.0, 4.0]),
    "array right": (lambda: f(1, 2) * np.array([1.0, 2.0]), [1.0, 4.0]),
    "scalar": (lambda: np.float64(2) * f(1, 2), [2.0, 4.0]),
    "integer scalar": (lambda: np.int64(2) + i(1, 2), [3, 4]),
    "range": (lambda: i(1, 2, 3) + range(3), [1, 3, 5]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operator(name):
    build, expected = OPERATORS[name]
    found = run(build())
    assert found.tolist() == expected
    assert found.dtype == run(hr.constant(expected)).dtype


def test_equality_is_identity():
    x, y = f(1), f(1)
    assert x == x
    assert x != y
    assert {x: 1, y: 2}[x] == 1
    assert x in [y, x]


SYMBOLIC = {
    "bool": (lambda t: bool(t), "has no truth value"),
    "and": (lambda t: t and t, "has no truth value"),
    "if": (lambda t: 1 if t > 0 else 2, "has no truth value"),
    "iter": (lambda t: list(t), "cannot be iterated over"),
    "unpack": (lambda t: [*t], "cannot be iterated over"),
    "len": (lambda t: len(t), r"has no len\(\)"),
    "float": (lambda t: float(t), "is no number"),
    "int": (lambda t: int(t), "is no number"),
    "array": (lambda t: np.array(t), "NumPy cannot take it"),
    "array of it": (lambda t: np.asarray([t, t]), "NumPy cannot take it"),
}


@pytest.mark.parametrize("name", SYMBOLIC)
def test_a_tensor_is_not_its_value(name):
    use, match = SYMBOLIC[name]
    with pytest.raises(SymbolicTensorError, match=match) as caught:
        use(f(1, 2))
    assert isinstance(caught.value, GraphError)
    assert isinstance(caught.value, TypeError)


LITERALS = {
    "float": (1.5, "float32"),
    "integer": (3, "int32"),
    "large integer": (2**40, "int64"),
    "bool": (True, "bool"),
    "complex": (1j, "complex128"),
    "string": ("a", "string"),
    "mixed": ([1, 2.5], "float32"),
    "none": ([], "float32"),
    "range": (range(3), "int32"),
    "float32 and a float": ([np.float32(1), 2.0], "float32"),
    "a float and float16": ([2.0, np.float16(1)], "float16"),
    "float64 and a float": ([np.float64(1), 2.0], "float64"),
    "float32 and an integer": ([np.float32(1), 2], "float32"),
    "int8 and an integer": ([np.int8(1), 2], "int8"),
    "int8 and a large integer": ([np.int8(1), 1000], "int32"),
    "uint8 and a negative integer": ([np.uint8(1), -1], "int32"),
    "int64 and an integer": ([np.int64(1), 2], "int64"),
    "int32 and a float": ([np.int32(1), 2.5], "float32"),
    "float16 and float32": ([np.float16(1), np.float32(2)], "float32"),
    "float32 and int32": ([np.float32(1), np.int32(2)], "float32"),
    "complex64 and a float": ([np.complex64(1), 2.5], "complex64"),
    "rows": ([np.float32([1, 2]), [3, 4.5]], "float32"),
    "nested": ([[np.float32(1)], [2.0]], "float32"),
}


@pytest.mark.parametrize("name", LITERALS)
def test_dtype_of_plain_data(name):
    value, dtype = LITERALS[name]
    for tensor in (hr.constant(value), hr.convert_to_tensor(value)):
        assert tensor.dtype == dtype
    if dtype not in ("string", "bool"):
        np.testing.assert_array_equal(run(hr.constant(value)), np.array(value))


def test_numbers_beside_tensors_in_a_list_take_their_dtype():
    x = hr.constant(1.0)
    for value in ([x, 2], [2, x], [x, np.float64(2)], [[x, 2], [3, 4.5]]):
        assert hr.convert_to_tensor(value).dtype == hr.float32
    assert hr.convert_to_tensor([np.float32(2), hr.constant(1.0, hr.float64)]).dtype == hr.float64
    assert run(hr.convert_to_tensor([[x, 2], [3, 4.5]])).tolist() == [[1, 2], [3, 4.5]]
    with pytest.raises(DTypeError, match="neither holds every value"):
        hr.convert_to_tensor([hr.constant(1), 2.5])


@pytest.mark.parametrize("value", [2, 2.5, [2.5, 3.5], np.float64(0.5), np.array([2.5, 3.5])])
def test_plain_operands_take_the_dtype_of_the_tensor(value):
    for dtype in (hr.float16, hr.bfloat16, hr.float32, hr.float64, hr.complex64):
        x = hr.constant([1, 2], dtype)
        for made in (x * value, value * x, x + value, hr.subtract(value, x)):
            assert made.dtype == dtype


def test_numbers_of_a_list_are_not_rounded_twice():
    x = hr.constant([0.0, 0.0], hr.float64)
    found = run(x + [np.float32(1), 0.1])  # noqa: RUF005 - a sum of tensors
    assert found.tolist() == [1, 0.1]


def test_a_fraction_never_becomes_an_integer():
    for build in (lambda: i(1) + 1.5, lambda: 1.5 * i(1), lambda: i(1) + np.array([1.5])):
        with pytest.raises(DTypeError, match="float"):
            build()
