"""``hr.TensorSpec`` is as TensorFlow 1.15.5's, of which the expectations are."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, HeadraceError

SPEC = hr.TensorSpec([None, 3], hr.float32, "x")


@pytest.mark.parametrize(
    ("value", "compatible"),
    [
        (hr.TensorSpec([2, 3]), True),
        (hr.TensorSpec(None), True),
        (hr.TensorSpec([2, 3], hr.int32), False),
        (hr.TensorSpec([3]), False),
        (np.zeros((2, 3), np.float32), True),
        (3, False),
        ("text", False),
    ],
)
def test_compatible(value: object, compatible: bool) -> None:
    assert SPEC.is_compatible_with(value) is compatible


def test_parts_and_equality() -> None:
    assert (SPEC.shape.as_list(), SPEC.dtype, SPEC.name) == ([None, 3], hr.float32, "x")
    assert hr.TensorSpec([2]).dtype == hr.float32
    assert hr.TensorSpec(3).shape.as_list() == [3]
    same = hr.TensorSpec([None, 3], "float32", name="x")
    assert same == SPEC
    assert hash(SPEC) == hash(same)
    assert hr.TensorSpec([None, 3]) != SPEC
    assert SPEC != 3
    assert SPEC.value_type is hr.Tensor
    assert repr(SPEC).startswith("TensorSpec(shape=(?, 3), dtype=")
    assert pickle.loads(pickle.dumps(SPEC)) == copy.deepcopy(SPEC) == SPEC


def test_made_of_others() -> None:
    tensor = hr.zeros([2, 3], name="zz")
    assert hr.TensorSpec.from_tensor(tensor) == hr.TensorSpec([2, 3], hr.float32, "zz")
    assert hr.TensorSpec.from_tensor(tensor, "n").name == "n"
    assert hr.TensorSpec.from_spec(SPEC, "y") == hr.TensorSpec([None, 3], hr.float32, "y")
    joined = SPEC.most_specific_compatible_type(hr.TensorSpec([5, None]))
    assert joined == hr.TensorSpec([None, None])
    assert SPEC.most_specific_compatible_type(hr.TensorSpec([5])) == hr.TensorSpec(None)


def test_functions_take_it_as_a_signature() -> None:
    @hr.function(input_signature=[hr.TensorSpec([None], hr.int32)])
    def twice(x: hr.Tensor) -> hr.Tensor:
        return x + x

    assert twice(hr.constant([1, 2])).dtype == hr.int32


def test_refusals() -> None:
    with pytest.raises(AttributeValueError, match="Types are not compatible"):
        SPEC.most_specific_compatible_type(hr.TensorSpec([5], hr.int32))
    with pytest.raises(ArgumentTypeError, match="expected a TensorSpec"):
        SPEC.most_specific_compatible_type(3)  # type: ignore[arg-type]
    with pytest.raises(AttributeValueError, match="should be a Tensor"):
        hr.TensorSpec.from_tensor(3)
    with pytest.raises(ValueError, match="-1") as caught:
        hr.TensorSpec([-1])
    assert isinstance(caught.value, HeadraceError)
    with pytest.raises(TypeError, match="float99"):
        hr.TensorSpec([2], "float99")
