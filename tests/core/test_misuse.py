"""Values, names and arguments that are no good: each is an error of Headrace's own."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    ConfigError,
    DTypeError,
    FeedError,
    FetchError,
    GraphError,
    UninitializedError,
)

pytestmark = pytest.mark.usefixtures("mini")


class OfTwo(list):
    def __init__(self, first, second):
        super().__init__([first, second])


# -- values


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (np.ma.masked_array([1.0, 2.0], mask=[False, True]), "masked elements.*filled"),
        ([1, 2**70], "does not fit any integer dtype"),
        (10**400, "does not fit any integer dtype"),
        ("\ud800", "strings are kept as UTF-8"),
    ],
)
def test_values_that_are_no_tensors(value, match):
    with pytest.raises(DTypeError, match=match):
        hr.constant(value)
    x = hr.placeholder(hr.float32)
    with hr.Session() as sess, pytest.raises(FeedError, match=match):
        sess.run(x, {x: value})


def test_a_tensor_among_data_says_that_it_has_no_values():
    with pytest.raises(GraphError, match="holds no values"):
        hr.constant([hr.constant(1.0)])


def test_masked_arrays_without_masked_elements_are_data():
    with hr.Session() as sess:
        np.testing.assert_array_equal(sess.run(hr.constant(np.ma.masked_array([1, 2]))), [1, 2])


def test_large_floats_are_converted_without_a_warning():
    with warnings.catch_warnings(), hr.Session() as sess:
        warnings.simplefilter("error")
        assert sess.run(hr.constant(1e300, hr.float64)) == 1e300


@pytest.mark.parametrize("dtype", [hr.int64, hr.bool, hr.string, hr.float16])
def test_an_empty_list_has_any_dtype(dtype):
    x = hr.placeholder(dtype, [None])
    with hr.Session() as sess:
        assert sess.run(hr.identity(x), {x: []}).dtype == dtype.numpy
    assert hr.constant([], dtype).dtype is dtype


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1 has none")
def test_numpys_own_strings():
    with hr.Session() as sess:
        value = sess.run(hr.constant(np.array(["a", "höhe"], np.dtypes.StringDType())))
    assert value.tolist() == [b"a", "höhe".encode()]


@pytest.mark.parametrize("value", [["a"], [True]])
@pytest.mark.parametrize("change", [hr.assign_add, hr.assign_sub])
def test_only_numbers_are_added_to_variables(change, value):
    with pytest.raises(DTypeError, match=r"not numeric; use hr\.assign"):
        change(hr.Variable(value), value)


# -- arguments


@pytest.mark.parametrize("feed_dict", [[], [1.0], {1.0}, 5, True, np.ones(2)])
def test_feed_dict_is_a_mapping(feed_dict):
    with hr.Session() as sess, pytest.raises(FeedError, match="must be a dict of values by tensor"):
        sess.run(hr.constant(1.0), feed_dict)


@pytest.mark.parametrize(
    ("feed_list", "error", "match"),
    [
        ("x:0", ArgumentTypeError, "must be a list of tensors"),
        (5, ArgumentTypeError, "must be a list"),
        ([["x:0"]], FeedError, "cannot feed"),
    ],
)
def test_feed_list_is_a_list_of_tensors(feed_list, error, match):
    x = hr.placeholder(hr.float32, name="x")
    with hr.Session() as sess, pytest.raises(error, match=match):
        sess.make_callable(x, feed_list)


def test_structures_that_cannot_be_fetched():
    x = hr.constant(1.0)
    endless = [x]
    endless.append(endless)
    with hr.Session() as sess:
        with pytest.raises(FetchError, match="contains itself"):
            sess.run(endless)
        with pytest.raises(FetchError, match=r"cannot fetch a OfTwo: .*fetch a list or a tuple"):
            sess.run(OfTwo(x, x))


def test_arguments_of_sessions():
    with pytest.raises(AttributeValueError, match="a graph is passed as graph="):
        hr.Session(hr.Graph())
    with pytest.raises(AttributeValueError, match=r"graph must be an hr\.Graph, got 'a'"):
        hr.Session(graph="a")
    with pytest.raises(ConfigError, match=r"config must be an hr\.Config"):
        hr.Session(config={})


@pytest.mark.parametrize("name", [5, "", "/", "a:0"])
def test_names_that_are_none(name):
    with pytest.raises(GraphError, match="a name is a string without a colon"):
        hr.constant(1.0, name=name)
    if name != "":
        with (
            pytest.raises(GraphError, match="a name is a string without a colon"),
            hr.name_scope(name),
        ):
            pass


def test_an_index_in_other_digits():
    hr.constant(1.0, name="x")
    with pytest.raises(GraphError, match="a tensor is named 'operation:index'"):
        hr.get_default_graph().get_tensor_by_name("x:²")


# -- copies


def test_parts_of_a_program_are_not_pickled():
    x = hr.constant(1.0)
    for item in (x, x.op, x.graph, hr.Session(), hr.Variable(x)):
        for spread in (pickle.dumps, copy.deepcopy):
            with pytest.raises(GraphError, match="cannot be pickled or copied"):
                spread(item)


@pytest.mark.parametrize("shape", [hr.Shape(None), hr.Shape([None, 3])])
def test_shapes_are_pickled_and_copied(shape):
    found = [pickle.loads(pickle.dumps(shape)), copy.copy(shape), copy.deepcopy(shape)]
    assert [s.dims for s in found] == [shape.dims] * 3


def test_arrays_fetched_together_share_no_memory():
    x = hr.placeholder(hr.float32, [2])
    y = x + 1.0
    with hr.Session() as sess:
        left, right = sess.run([y, hr.identity(y)], {x: [1, 2]})
    left[:] = 9
    np.testing.assert_array_equal(right, [2, 3])


# -- variables that start from others


def test_initial_values_in_no_order_say_how_to_order_them():
    # Of variables in the usual collections, initial values are right in any order.
    a = hr.Variable([1.0], collections=[], name="a")
    b = hr.Variable(a.value() * 2.0, name="b")
    init = hr.variables_initializer([a, b])
    with hr.Session() as sess, pytest.raises(UninitializedError, match="initialized_value") as e:
        sess.run(init)
    assert "test_misuse.py" in str(e.value)
