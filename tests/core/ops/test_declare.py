"""The @op decorator: what it makes of a rule, and what it refuses."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
from collections.abc import Sequence

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError, PluginError, ShapeError
from headrace.extend import (
    OPS,
    Anything,
    DType,
    Floating,
    KernelTable,
    Same,
    Shape,
    Spec,
    TensorSpec,
    op,
    require,
)


@op("TestScale", elementwise=True)
def scale(x: Floating, *, factor: float = 2.0, to: DType = hr.float32) -> Spec:
    """``factor * x``.

    Args:
        x: [...], floating.
        factor: What to multiply by, > 0.
        to: Unused.
    """
    require(factor > 0, f"factor must be > 0, got {factor}")
    return x


@op("TestMany")
def many(first: Anything, rest: Sequence[Same], last: Same | None = None) -> list[Spec]:
    """As many outputs as ``rest``."""
    return [TensorSpec(r.dtype, Shape([None])) for r in rest]


def test_call_makes_a_node():
    x = hr.placeholder(hr.float32, [2, None])
    y = scale(x, factor=3, name="scaled")
    assert (y.op.type, y.op.name, y.dtype, y.shape) == (
        "TestScale",
        "scaled",
        hr.float32,
        [2, None],
    )
    assert dict(y.op.attrs) == {"factor": 3, "to": hr.float32}
    assert scale(x, to="float64").op.get_attr("to") is hr.float64


def test_signature_is_the_rules_with_name():
    assert list(inspect.signature(scale).parameters) == ["x", "factor", "to", "name"]
    assert scale.__doc__.startswith("``factor * x``")
    assert scale.schema.elementwise
    assert OPS["TestScale"] is scale.schema


def test_signature_is_one_of_inspect():
    signature = inspect.signature(scale)
    assert str(signature) == (
        "(x: 'Floating', *, factor: 'float' = 2.0, to: 'DType' = headrace.float32, "
        "name: 'str | None' = None) -> 'Spec'"
    )
    assert repr(inspect.signature(many)) == f"<Signature {inspect.signature(many)}>"
    assert list(inspect.signature(many).parameters) == ["first", "rest", "last", "name"]
    assert signature == pickle.loads(pickle.dumps(signature)) == copy.copy(signature)
    assert signature.replace(parameters=[]).parameters == {}
    assert not hasattr(inspect.signature(hr.add), "nothing_of_the_kind")


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "missing a required argument: 'first'"),
        ((1,), {}, "missing a required argument: 'rest'"),
        ((1, [2], 3, "n", 5), {}, "too many positional arguments"),
        ((1, [2]), {"first": 1}, "multiple values for argument 'first'"),
        ((1, [2]), {"lost": 1}, "got an unexpected keyword argument 'lost'"),
        ((1,), {"lost": 1}, "missing a required argument: 'rest'"),
    ],
)
def test_arguments_are_bound_as_python_binds_them(args, kwargs, message):
    with pytest.raises(TypeError, match=message):
        many(*args, **kwargs)


def test_name_stands_last_by_position():
    assert many(1, [2], None, "named")[0].op.name == "named"
    assert many(rest=[2], name="other", first=1)[0].op.name == "other"


def test_parameters_by_position_only():
    @op("TestByPosition", public="")
    def by_position(x: Floating, /, factor: float = 2.0) -> Spec:
        """As it is."""
        return x

    assert by_position(1.0, 3.0).op.attrs["factor"] == 3.0
    with pytest.raises(TypeError, match="'x'"):
        by_position(x=1.0)


def test_what_a_decorator_makes_of_a_rule_has_its_signature():
    def logged(rule):
        @functools.wraps(rule)
        def call(*args, **kwargs):
            return rule(*args, **kwargs)

        return call

    @op("TestDecorated", public="")
    @logged
    def decorated(x: Floating, *, factor: float = 2.0) -> Spec:
        """As it is."""
        return x

    assert list(inspect.signature(decorated).parameters) == ["x", "factor", "name"]
    assert decorated(1.0, factor=3.0).op.attrs["factor"] == 3.0


def test_rule_refuses_with_op_input_and_line():
    x = hr.placeholder(hr.float32, [2], name="x")
    with pytest.raises(AttributeValueError, match=r"scale: factor must be > 0, got -1") as caught:
        scale(x, factor=-1)
    assert "x:0: float32[2]" in str(caught.value)
    assert "test_declare.py" in str(caught.value)


def test_variadic_and_optional_inputs():
    a = hr.placeholder(hr.int32, [1])
    b = hr.placeholder(hr.float32, [1])
    outputs = many(a, [b, 1.5])
    assert [t.dtype for t in outputs] == [hr.float32, hr.float32]
    assert outputs[0].op.arity == (1, 2, 0)
    assert outputs[0].op.grouped_inputs[2] is None
    with_last = many(a, [b], b)
    assert with_last[0].op.arity == (1, 1, 1)


def test_inputs_of_one_kind_are_promoted_by_a_cast():
    wide = hr.placeholder(hr.float64, [])
    narrow = hr.placeholder(hr.float32, [])
    total = narrow + wide
    assert total.dtype == hr.float64
    assert total.op.inputs[0].op.type == "Cast"


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (1, hr.int32),
        (1.0, hr.float32),
        (2**40, hr.int64),
        (1j, hr.complex128),
        (True, hr.bool),
        ("a", hr.string),
        (np.float64(1), hr.float64),
        (np.zeros(2, "i2"), hr.int16),
    ],
)
def test_natural_dtypes_of_data(literal, expected):
    assert hr.convert_to_tensor(literal).dtype == expected


@pytest.mark.parametrize("dtype", [hr.float16, hr.float32, hr.float64, hr.bfloat16])
def test_data_takes_the_tensors_dtype(dtype):
    x = hr.placeholder(dtype, [2])
    for other in (1, 2.5, np.float64(3), np.zeros(2), [1, 2], np.int64(4)):
        assert (x + other).dtype == dtype
        assert (other + x).dtype == dtype


def test_python_ints_serve_where_floats_are_needed():
    assert hr.exp(1).dtype == hr.float32
    assert hr.add(1, 2.5).dtype == hr.float32


def test_nested_lists_may_hold_tensors():
    x = hr.placeholder(hr.int32, [])
    made = hr.convert_to_tensor([[x, 1], [2, x]])
    assert (made.dtype, made.shape) == (hr.int32, [2, 2])


def test_shape_vectors_are_inferred_through_ops():
    x = hr.placeholder(hr.float32, [None, 3, 4])
    shape = hr.shape(x)
    assert hr.reshape(x, [shape[0], 12]).shape == [None, 12]
    assert hr.reshape(x, hr.concat([shape[:1], [2, 6]], 0)).shape == [None, 2, 6]
    assert hr.zeros(shape[1:]).shape == [3, 4]
    assert hr.reshape(x, [-1, 12]).shape == [None, 12]


def test_truediv_of_integers_is_floating():
    x = hr.placeholder(hr.int32, [2])
    assert (x / 2).dtype == hr.float64
    small = hr.placeholder(hr.int8, [2])
    for quotient in (small / small, small / 2, 2 / small, hr.divide(small, [3, 4])):
        assert quotient.dtype == hr.float32
    assert hr.divide(3, 2).dtype == hr.float64


def test_assignments_take_the_arguments_of_tensorflow():
    v = hr.Variable(1.0)
    assert hr.assign(v, 2.0, None, True, "put").op.name == "put"
    assert hr.assign_add(v, 2.0, False, "grow").op.name == "grow"
    assert hr.assign_sub(v, 2.0, use_locking=True, name="shrink").op.name == "shrink"


def test_op_needs_a_docstring():
    with pytest.raises(PluginError, match="has no docstring"):

        @op("TestUndocumented")
        def undocumented(x: Floating) -> Spec:
            return x


def test_op_needs_annotations():
    with pytest.raises(PluginError, match="'factor' is not annotated"):

        @op("TestUnannotated")
        def unannotated(x: Floating, factor=1) -> Spec:
            """Documented."""
            return x


def test_op_takes_no_arguments_without_names():
    with pytest.raises(PluginError, match=r"takes no \*args or \*\*kwargs; use Sequence"):

        @op("TestFlexible")
        def flexible(*x: Floating) -> Spec:
            """Documented."""
            return x[0]


def test_op_names_are_unique():
    with pytest.raises(PluginError, match=r"declared twice: at headrace.ops.elementwise:.* and at"):

        @op("Add")
        def add_again(x: Floating) -> Spec:
            """Documented."""
            return x


def test_kernel_must_fit_its_op():
    table = KernelTable()
    with pytest.raises(PluginError, match=r"keyword arguments .* must be the op's attributes"):

        @table.plain("TestScale")
        def wrong_attr(xp, x, *, faktor):
            return x

    with pytest.raises(PluginError, match="takes 2 inputs, the op has 1"):

        @table.plain("TestScale")
        def wrong_inputs(xp, x, y, *, factor, to):
            return x

    with pytest.raises(PluginError, match="no op 'TestNowhere' is declared"):

        @table.plain("TestNowhere")
        def unknown(xp, x):
            return x


def test_attribute_values_are_plain_data():
    with pytest.raises(AttributeValueError, match="dict is no attribute value"):
        scale(hr.placeholder(hr.float32), factor={"a": 1})


def test_convert_to_tensor_errors():
    x = hr.placeholder(hr.float32, [2])
    with pytest.raises(DTypeError, match="has dtype float32, expected int32"):
        hr.convert_to_tensor(x, hr.int32)
    with pytest.raises(DTypeError, match="not of dtype string"):
        hr.convert_to_tensor(1.0, hr.string)
    with pytest.raises(ShapeError, match="ragged"):
        hr.convert_to_tensor([[1], [2, 3]])


def test_rule_that_returns_its_input_does_not_return_its_value(mini):
    @op("TestNegated", public="")
    def negated(x: Floating) -> Spec:
        """The negative."""
        return x

    assert negated(hr.constant([1.0, 2.0])).spec.value is None
    assert negated(hr.constant([1.0, 2.0])).shape == [2]


def test_elements_are_those_of_an_input():
    with pytest.raises(hr.errors.PluginError, match="elements_of names no input, got 'other'"):

        @op("TestElementsOf", elements_of="other")
        def take_elements(x: Anything) -> Spec:
            """Take elements."""
            return x
