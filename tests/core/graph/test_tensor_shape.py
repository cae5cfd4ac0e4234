"""Shapes and dimensions as programs see them, beside what TensorFlow 1.15 gives."""

from __future__ import annotations

import copy
import json
import math
import pathlib
import pickle

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, ShapeError

# Written by generate_shapes.py with TensorFlow 1.15.5.
TABLE = json.loads((pathlib.Path(__file__).parent / "shapes.json").read_text())
_ERRORS = {"IndexError": IndexError, "ValueError": ValueError, "TypeError": TypeError}


@pytest.mark.parametrize("text", TABLE)
def test_as_tensorflow(text):
    expected = TABLE[text]
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [None, 3])
        names = {"tf": hr, "S": hr.TensorShape, "D": hr.Dimension, "x": x}
        if "value" in expected:
            assert repr(eval(text, names)) == expected["value"]
            return
        families = tuple(_ERRORS.get(name, ZeroDivisionError) for name in expected["error"])
        with pytest.raises(families, match=r"."):
            eval(text, names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Programs that take sizes for integers go on: TensorFlow 1.15 refuses or differs.
        ("x.shape[1] / 2", 1.5),
        ("x.shape[1] ** 2", 9),
        ("-x.shape[1]", -3),
        ("x.shape[1] - 5", -2),
        ("2.5 * x.shape[1]", 7.5),
        ("math.sqrt(6.0 / (x.shape[1] + x.shape[1]))", 1.0),
        ("np.prod(x.shape[1:])", 3),
        ("f'{x.shape[1]:03d} {x.shape[1]} {x.shape[0]}'", "003 3 ?"),
        ("isinstance(x.shape[1], int)", True),
        ("isinstance(x.shape[0], hr.Dimension)", True),
        ("x.shape[0] or 'unknown'", "unknown"),
        ("None in x.shape", True),
        ("x.shape == [None, 3]", True),
        ("x.shape == hr.TensorShape([None, 3])", True),
        ("hr.Shape(x.shape)[0]", None),
        ("hr.Shape([None, 3]) == x.shape", True),
        ("{hr.TensorShape([2]): 1}[hr.TensorShape([2])]", 1),
        ("json.dumps(list(x.shape[1:]))", "[3]"),
        ("[2] + x.shape", hr.TensorShape([2, None, 3])),
    ],
)
def test_programs_that_take_integers(text, expected):
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [None, 3])
        names = {"hr": hr, "x": x, "math": math, "np": np, "json": json}
        assert eval(text, names) == expected


@pytest.mark.parametrize("value", [3, None])
def test_dimensions_are_copied(value):
    made = hr.Dimension(value)
    for copied in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        assert (copied.value, type(copied)) == (value, type(made))
    shape = pickle.loads(pickle.dumps(hr.TensorShape([value, 2])))
    assert shape == hr.TensorShape([value, 2])


@pytest.mark.parametrize("use", [int, float, range, lambda d: hr.zeros([d, 2])])
def test_unknown_is_no_integer(use):
    with pytest.raises(DTypeError, match=r"an unknown dimension is no integer"):
        use(hr.Dimension(None))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hr.Dimension(-2), r"integer >= 0 or None, got -2"),
        (lambda: hr.TensorShape("ab"), r"list of sizes or one size, got 'ab'"),
        (lambda: hr.Dimension(3).merge_with(4), r"dimensions 3 and 4 are not compatible"),
        (lambda: hr.TensorShape([1]).with_rank(2), r"shape \(1,\) must have rank 2"),
        (lambda: hr.TensorShape([1, 2]).with_rank_at_most(1), r"must have rank 1 at most"),
        (lambda: hr.TensorShape([1]).assert_same_rank([1, 2]), r"must have the same rank"),
        (lambda: hr.convert_to_tensor(hr.TensorShape([None])), r"not fully defined"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert isinstance(caught.value, ShapeError | hr.errors.ArgumentTypeError)


def test_what_has_a_shape_has_dimensions():
    with hr.Graph().as_default():
        x = hr.placeholder(hr.float32, [None, 3])
        sparse = hr.sparse_placeholder(hr.float32, [4, 2])
        rows = hr.IndexedSlices(x, [0], [5, 3])
        array = hr.TensorArray(hr.float32, 2, element_shape=[None, 3])
        made = [x.shape, hr.Variable([1.0]).shape, sparse.shape, rows.shape, array.element_shape]
    assert all(type(shape) is hr.TensorShape for shape in made)
    assert [shape[-1].value for shape in made] == [3, 1, 2, 3, 3]


@pytest.mark.needs("io")
def test_messages():
    pytest.importorskip("google.protobuf")
    message = hr.TensorShape([2, None]).as_proto()
    assert [dim.size for dim in message.dim] == [2, -1]
    assert hr.TensorShape(message) == hr.TensorShape([2, None])
    assert hr.TensorShape(hr.TensorShape(None).as_proto()).rank is None
