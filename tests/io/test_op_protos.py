"""What ops declare, as messages."""

from __future__ import annotations

import pytest

import headrace as hr
from headrace.extend.ops import OPS

FLOATS = {hr.float16, hr.float32, hr.float64}


def names(arguments: object) -> list[str]:
    return [argument.name for argument in arguments]  # type: ignore[attr-defined]


def test_inputs_of_one_dtype_share_an_attribute() -> None:
    with hr.Graph().as_default():
        declared = hr.add(hr.constant(1.0), 2.0).op.op_def
    assert (declared.name, declared.is_commutative, declared.is_stateful) == ("Add", True, False)
    assert names(declared.input_arg) == ["x", "y"]
    assert {argument.type_attr for argument in declared.input_arg} == {"T"}
    assert names(declared.output_arg) == ["output"]
    assert declared.output_arg[0].type == hr.float32.as_datatype_enum
    (attr,) = [attr for attr in declared.attr if attr.name == "T"]
    assert {hr.as_dtype(number) for number in attr.allowed_values.list.type} >= FLOATS


def test_lists_have_a_number() -> None:
    with hr.Graph().as_default():
        declared = hr.concat([[1], [2]], 0).op.op_def
    (values,) = declared.input_arg
    assert (values.type_attr, values.number_attr) == ("T", "N")
    attrs = {attr.name: attr for attr in declared.attr}
    assert attrs["axis"].type == "int"
    assert not attrs["axis"].HasField("default_value")
    assert attrs["N"].has_minimum


def test_attributes_have_types_and_defaults() -> None:
    with hr.Graph().as_default():
        declared = hr.matmul([[1.0]], [[2.0]]).op.op_def
        condition = hr.logical_not(True).op.op_def
    attr = {attr.name: attr for attr in declared.attr}["transpose_a"]
    assert (attr.type, attr.HasField("default_value"), attr.default_value.b) == (
        "bool",
        True,
        False,
    )
    assert condition.input_arg[0].type == hr.bool.as_datatype_enum


def test_state_is_told() -> None:
    with hr.Graph().as_default():
        assert hr.get_variable("v", initializer=1.0).assign(2.0).op.op_def.is_stateful


@pytest.mark.parametrize("op", ["Split", "TopK", "SplitBy"])
def test_each_output_has_an_argument(op: str) -> None:
    with hr.Graph().as_default():
        made = {
            "Split": lambda: hr.split([1, 2, 3], 3)[0],
            "TopK": lambda: hr.nn.top_k([1.0, 2.0], 1)[0],
            "SplitBy": lambda: hr.split([1, 2, 3], hr.placeholder(hr.int32, [2]))[0],
        }[op]()
    assert made.op.type == op
    declared = made.op.op_def
    assert names(declared.output_arg) == [
        "output",
        *(f"output_{i}" for i in range(1, len(made.op.outputs))),
    ]
    assert OPS.get(op) is not None
