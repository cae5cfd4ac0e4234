"""Scalar expressions: what declarations state, what it means for dtypes, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import headrace as hr
from headrace.errors import PluginError
from headrace.extend import OPS, Bool, Floating, Real, Spec, TensorSpec, op
from headrace.extend.scalars import (
    SCALAR_FUNCTIONS,
    computable,
    expression_of,
    interpreter,
)


@op(
    "TestSharpSoftplus",
    elementwise=True,
    expression=lambda s, x, *, beta: s.log1p(s.exp(beta * x)) / beta,
)
def sharp_softplus(x: Floating, *, beta: float = 2.0) -> Spec:
    """``log(1 + exp(beta * x)) / beta``."""
    return x


def _by_precision(s, x):
    return x if s.dtype == hr.float64 else s.cast(s.cast(x, "float64") * 0.1, s.dtype)


@op("TestByPrecision", elementwise=True, expression=_by_precision)
def by_precision(x: Floating) -> Spec:
    """Depends on the dtype."""
    return x


@op("TestClose", elementwise=True, expression=lambda s, x, y, *, within: abs(x - y) <= within)
def close(x: Real, y: Real, *, within: float) -> Spec:
    """Whether two numbers are close."""
    return TensorSpec(hr.bool, x.shape)


def steps(tensor):
    return [step.function for step in expression_of(tensor.op).steps]


def test_python_writes_the_steps_down_each_after_what_it_needs():
    x = hr.placeholder("float32", [3])
    found = expression_of(sharp_softplus(x, beta=3.0).op).steps
    assert [step.function for step in found if step.args] == ["multiply", "exp", "log1p", "divide"]
    assert {step.dtype for step in found} == {hr.float32}
    assert {step.value for step in found if step.function == "constant"} == {3.0}
    for place, step in enumerate(found):
        assert all(any(arg is before for before in found[:place]) for arg in step.args)


def test_a_choice_may_depend_on_the_dtype():
    assert steps(by_precision(hr.placeholder("float64"))) == ["input"]
    assert steps(by_precision(hr.placeholder("float16")))[-1] == "cast"


def test_dtypes_that_a_function_does_not_take_have_no_expression():
    x = hr.placeholder("int32", [2])
    assert expression_of((x // 2).op) is None
    assert expression_of((hr.cast(x, "float32") // 2).op) is not None
    assert expression_of(hr.abs(hr.placeholder("complex64")).op) is None
    # No int32 is 0.5.
    assert expression_of(close(x, x, within=0.5).op) is None
    assert expression_of(close(x, x, within=2).op) is not None


def test_every_function_is_computed_by_an_op_that_states_it():
    for function in SCALAR_FUNCTIONS.values():
        if not function.op:
            continue
        schema = OPS[function.op]
        assert schema.expression is not None
        assert len(schema.inputs) == function.arity
        kinds = {"bool": hr.bool, "float": hr.float32, "int": hr.int32}
        dtype = next(kinds[kind] for kind in ("float", "int", "bool") if kind in function.takes)
        inputs = [hr.placeholder(dtype) for _ in range(function.arity)]
        if function.name == "where":
            inputs[0] = hr.placeholder(hr.bool)
        attrs = {"dtype": hr.int32} if function.name == "cast" else {}
        node = schema.function(*inputs, **attrs)
        found = expression_of(node.op)
        assert [step.function for step in found.steps[function.arity :]] == [function.name]
        assert found.result.dtype == node.dtype


def test_operators_are_logic_on_truth_values_and_bits_on_integers():
    for dtype, names in [
        (hr.bool, ["logical_and", "logical_or", "logical_xor", "logical_not"]),
        (hr.int32, ["bitwise_and", "bitwise_or", "bitwise_xor", "invert"]),
    ]:
        x, y = hr.placeholder(dtype), hr.placeholder(dtype)
        nodes = [x & y, x | y, x ^ y, ~x]
        assert [expression_of(node.op).result.function for node in nodes] == names


# Name -> (the expression, what the error must say).
WRONG = {
    "unknown": (lambda s, x, *, beta: s.expp(x), "no scalar function 'expp'; did you mean exp"),
    "positional": (lambda s, x, y, *, beta: x, "takes 3 arguments by position, expected 2"),
    "attribute": (lambda s, x: x, r"keyword arguments \[\], and the op's attributes are \['beta'"),
    "arity": (lambda s, x, *, beta: s.where(x, 1), "where takes 3 arguments, got 2"),
    "dtypes": (lambda s, x, *, beta: x & x, "for any dtypes; for float32: logical_and does not"),
    "mixed": (lambda s, x, *, beta: x + s.cast(x, "int32"), "one dtype, got float32 and int32"),
    "branch": (lambda s, x, *, beta: max(0, x), r"not known yet: choose with s\.where"),
    "number": (lambda s, x, *, beta: s.exp(2.0), "exp of numbers alone"),
    "value": (lambda s, x, *, beta: "much", "expected a scalar or a number, got 'much'"),
    "array": (lambda s, x, *, beta: x + np.ones(3), "expected a scalar or a number"),
    "type": ("exp", "is no function: 'exp'"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_expression_is_refused_when_the_op_is_declared(kind):
    expression, message = WRONG[kind]
    with pytest.raises(PluginError, match=message) as caught:

        @op(f"TestWrong{kind.title()}", elementwise=True, expression=expression)
        def wrong(x: Floating, *, beta: float = 2.0) -> Spec:
            """Wrong."""
            return x

    assert f"op 'TestWrong{kind.title()}' at " in str(caught.value)
    assert OPS.get(f"TestWrong{kind.title()}") is None


def test_what_an_expression_raises_for_a_node_names_the_op():
    @op("TestRaises", elementwise=True, expression=lambda s, x, *, beta: x * math.sqrt(beta))
    def raises(x: Floating, *, beta: float) -> Spec:
        """Raises for negative attributes."""
        return x

    x = hr.placeholder("float32")
    assert expression_of(raises(x, beta=4.0).op) is not None
    with pytest.raises(PluginError, match=r"op 'TestRaises' at .*: its expression ValueError"):
        expression_of(raises(x, beta=-4.0).op)


def test_a_value_of_another_dtype_than_promised_is_refused():
    @op("TestPromise", elementwise=True, expression=lambda s, x: x > 0)
    def promise(x: Real) -> Spec:
        """Promises the dtype of ``x``."""
        return x

    with pytest.raises(PluginError, match="yields bool, and the rule promises float32"):
        expression_of(promise(hr.placeholder("float32")).op)


def test_an_op_without_inputs_has_no_elements_to_compute_from():
    with pytest.raises(PluginError, match="the op takes no tensors"):

        @op("TestNothing", elementwise=True, expression=lambda s: 1)
        def nothing() -> Spec:
            """Nothing."""
            return TensorSpec(hr.float32, [])


# -- interpretation

KERNELS = {
    "Add": lambda xp, x, y: xp.add(x, y),
    "Mul": lambda xp, x, y: xp.multiply(x, y),
    "Div": lambda xp, x, y: xp.divide(x, y),
    "Exp": lambda xp, x: xp.exp(x),
    "Log1p": lambda xp, x: xp.log1p(x),
    "Cast": lambda xp, x, *, dtype: x.astype(dtype.numpy),
}


def find(op_type, dtype):
    return KERNELS.get(op_type)


def compute(tensor, *arrays):
    return interpreter(expression_of(tensor.op), np, find)(*arrays)


def test_an_expression_is_computed_with_the_kernels_of_its_functions():
    x = np.array([-1.0, 0.0, 2.0], np.float32)
    found = compute(sharp_softplus(hr.placeholder("float32"), beta=3.0), x)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.log1p(np.exp(3 * x)) / 3, rtol=1e-6)


def test_a_function_without_a_kernel_cannot_be_computed():
    node = sharp_softplus(hr.placeholder("float32"))
    assert computable(expression_of(node.op), find)
    assert not computable(expression_of(node.op), lambda kind, _: None if kind == "Exp" else 1)


def test_what_is_no_op_by_itself_is_the_array_modules():
    node = hr.truncatediv(hr.placeholder("float32"), 2.0)
    found = compute(node, np.array([-3.0, 3.0], np.float32), np.float32(2.0))
    assert found.tolist() == [-1.0, 1.0]


def test_a_result_is_an_array_of_its_own_of_the_broadcast_shape():
    @op("TestFirst", elementwise=True, expression=lambda s, x, y: x)
    def first(x: Floating, y: Floating) -> Spec:
        """The first of two, with the shape of both."""
        return TensorSpec(x.dtype, y.shape)

    x, y = np.float32([1, 2]), np.zeros((3, 2), np.float32)
    node = first(hr.placeholder("float32", [2]), hr.placeholder("float32", [3, 2]))
    found = compute(node, x, y)
    assert found.tolist() == [[1, 2]] * 3
    assert found.flags.writeable
    alone = compute(first(hr.placeholder("float32"), hr.placeholder("float32")), x, x)
    assert alone is not x
    assert alone.tolist() == [1, 2]


def test_truth_values_and_numbers_mix_as_operators_say():
    @op("TestInside", elementwise=True, expression=lambda s, x, y: ((x > 0) & (x < 1)) ^ ~y)
    def inside(x: Floating, y: Bool) -> Spec:
        """Whether a number is inside an interval, or not."""
        return TensorSpec(hr.bool, x.shape)

    node = inside(hr.placeholder("float32"), hr.placeholder("bool"))
    assert steps(node)[-1] == "logical_xor"
    assert steps(node).count("logical_not") == 1
    values = np.float32([-1, 0.5, 0.5]), np.array([True, True, False])
    kernels = {
        "Greater": lambda xp, x, y: x > y,
        "Less": lambda xp, x, y: x < y,
        "LogicalAnd": lambda xp, x, y: x & y,
        "LogicalXor": lambda xp, x, y: x ^ y,
        "LogicalNot": lambda xp, x: ~x,
    }
    run = interpreter(expression_of(node.op), np, lambda kind, _: kernels[kind])
    assert run(*values).tolist() == [False, True, False]
