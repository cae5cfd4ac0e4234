"""Arguments that Python values must be are read, or refused with our words; messages stay short."""

from __future__ import annotations

import decimal
import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    MAX_LETTERS,
    MAX_LINES,
    ArgumentTypeError,
    AttributeValueError,
    ConfigTypeError,
    DepthError,
    GraphError,
    HeadraceError,
    NameTypeError,
    NoDimensionError,
    NoSuchElementError,
    told,
)
from headrace.extend.arguments import items, mapping, nesting, real, text, whole
from headrace.extend.ops import call_op
from tests.hostile.values import EndlessByNumber, EndlessDict

pytestmark = pytest.mark.needs("backend-cpu")


class Mute(int):
    def __repr__(self) -> str:
        raise ValueError("no repr")


class Own:
    """What a program's own object raises."""

    def __index__(self) -> int:
        raise KeyError("own")

    __float__ = __index__

    def __iter__(self) -> Any:
        raise KeyError("own")


@pytest.mark.parametrize(
    ("value", "number"),
    [(3, 3), (np.int8(3), 3), (3.0, 3), (np.float32(3), 3), (True, 1), (np.array(3), 3)],
)
def test_whole_numbers_are_read(value: Any, number: int) -> None:
    assert whole(value, "n") == number
    assert type(whole(value, "n")) is int


NO_NUMBERS = {
    "text": "3",
    "bytes": b"3",
    "bytearray": bytearray(b"3"),
    "nothing": None,
    "list": [3],
    "complex": 3j,
    "signal": decimal.Decimal("sNaN"),
    "masked": np.ma.masked_array([1.0, 2.0]),
    "arrays": np.ones((2, 2)),
    "type": int,
}


@pytest.mark.parametrize("value", list(NO_NUMBERS))
def test_what_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^n must be a whole number, got "):
        whole(NO_NUMBERS[value], "n")
    with pytest.raises(ArgumentTypeError, match=r"^n must be a number, got "):
        real(NO_NUMBERS[value], "n")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 2.5, np.float16(0.1)])
def test_fractions_and_infinities_are_numbers_but_not_whole(value: Any) -> None:
    assert np.array_equal(real(value, "n"), float(value), equal_nan=True)
    with pytest.raises(ArgumentTypeError, match=r"^n must be a whole number, got "):
        whole(value, "n")


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), 10**5000, Mute(10**400)], ids=["400", "minus", "5000", "mute"]
)
def test_integers_that_no_float_holds_are_refused(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^n must be a number, got "):
        real(value, "n")
    if abs(value) < 10**1000:
        assert whole(value, "n") == value
    else:
        with pytest.raises(AttributeValueError, match=r"^n must be at most a number of 4096 bits"):
            whole(value, "n")
    with pytest.raises(AttributeValueError, match=r"^n must be from -5 to 5, got "):
        whole(value, "n", -5, 5)


def test_limits_are_told() -> None:
    with pytest.raises(AttributeValueError, match=r"^n must be at least 1, got 0$"):
        whole(0, "n", least=1)
    with pytest.raises(AttributeValueError, match=r"^n must be at most 7, got 8$"):
        whole(8, "n", most=7)


@pytest.mark.parametrize(
    ("value", "expected"),
    [([1, 2], [1, 2]), ((1,), [1]), (range(2), [0, 1]), (iter([1]), [1]), ({"a": 1}, ["a"])],
    ids=["list", "tuple", "range", "iterator", "dict"],
)
def test_items_are_listed(value: Any, expected: list[Any]) -> None:
    assert items(value, "n") == expected


@pytest.mark.parametrize("value", ["ab", b"cd", bytearray(b"ab"), 1, None, object()])
def test_what_has_no_items_is_refused(value: Any) -> None:
    with pytest.raises(ArgumentTypeError, match=r"^n must be a list, got "):
        items(value, "n")


@pytest.mark.parametrize("value", [range(10**18), iter(int, 1)], ids=["range", "iterator"])
def test_items_without_end_are_refused(value: Any) -> None:
    with pytest.raises(AttributeValueError, match=r"^n must hold at most 5 items, got "):
        items(value, "n", 5)
    with pytest.raises(AttributeValueError, match=r"^n must hold at most 1048576 items, got "):
        items(value, "n")


@pytest.mark.parametrize("read", [whole, real, items], ids=["whole", "real", "items"])
def test_what_the_programs_object_raises_comes_through(read: Any) -> None:
    with pytest.raises(KeyError, match="own"):
        read(Own(), "n")


def test_texts_are_strings() -> None:
    assert text("a", "n") == "a"
    with pytest.raises(ArgumentTypeError, match=r"^n must be a string, got b'a'$"):
        text(b"a", "n")


def test_nesting_without_end_is_refused() -> None:
    own: list[Any] = []
    own.append(own)

    def depth(value: Any) -> int:
        return 1 + max(map(depth, value))

    deeper = pytest.raises(DepthError, match=r"^n is nested deeper than Python can follow")
    with deeper, nesting("n"):
        depth(own)


# -- messages


def long_words() -> list[str]:
    return ["x" * 100_000, "x y " * 50_000, "x\n" * 50, "\n" * 5000, "\n".join(["x" * 5000] * 40)]


@pytest.mark.parametrize("kind", [HeadraceError, GraphError, ArgumentTypeError, NoSuchElementError])
@pytest.mark.parametrize("number", range(5))
def test_messages_are_short_and_the_error_knows_all(kind: Any, number: int) -> None:
    word = long_words()[number]
    error = kind(f"begin {word} end")
    said = str(error)
    assert len(said) <= MAX_LETTERS
    assert len(said.splitlines()) <= MAX_LINES
    assert said.startswith("begin ")
    assert said.endswith(" end")
    assert error.args == (f"begin {word} end",)
    assert str(pickle.loads(pickle.dumps(error))) == said


def test_messages_that_are_short_stay_as_they_are() -> None:
    lines = "\n".join(["a" * 300] * 12)
    assert str(GraphError(lines)) == lines
    assert GraphError(lines + "\nb").args[0].endswith("\nb")
    assert "... 2 more lines ..." in str(GraphError(lines + "\nb"))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("a b", "a b"),
        ("a\n b", "a b"),
        (12, "12"),
        (hr.float32, "float32"),
        (10**5000, "an integer of 16610 bits"),
        (Mute(7), "an integer of 3 bits"),
        ("x" * 500, "x" * 197 + "..."),
    ],
    ids=["text", "lines", "number", "dtype", "digits", "mute", "long"],
)
def test_values_are_quoted_as_texts(value: Any, said: str) -> None:
    assert told(value) == said


# -- where they are used

MUTE, DIGITS, SIGNAL = Mute(7), 10**5000, decimal.Decimal("sNaN")


class Unspeakable:
    def __repr__(self) -> str:
        raise ValueError("no repr")


def vector() -> Any:
    return hr.constant([1.0, 2.0])


# What the campaign of odd arguments found, one of each class: a call, and what must be said.
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a name of parts": (
        lambda: hr.assign_add(hr.Variable(1.0), 1.0, name=DIGITS),
        GraphError,
        "a name is a string without a colon",
    ),
    "another": (
        lambda: hr.scatter_update(hr.Variable([1.0]), [0], [1.0], name=[Unspeakable()]),
        GraphError,
        "a name is a string without a colon",
    ),
    "a shape's size": (lambda: hr.TensorShape([DIGITS]).with_rank(2), HeadraceError, "16610 bits"),
    "a rank": (lambda: hr.TensorShape([2]).with_rank(SIGNAL), ArgumentTypeError, "rank of a shape"),
    "a dimension": (lambda: hr.TensorShape([2])[5], NoDimensionError, "has no dimension 5"),
    "an axis": (lambda: hr.argsort(vector(), MUTE), HeadraceError, "axis an integer of 3 bits"),
    "an attribute": (lambda: hr.no_op().get_attr("x"), NoSuchElementError, "no attribute 'x'"),
    "reuse": (
        lambda: hr.variable_scope("x", reuse=SIGNAL).__enter__(),
        AttributeValueError,
        "reuse must be True, False or hr.AUTO_REUSE",
    ),
    "a rate": (
        lambda: hr.nn.dropout(vector(), rate=10**400),
        ArgumentTypeError,
        "dropout: rate must be a number, got 1000",
    ),
    "an infinite radius": (
        lambda: hr.nn.lrn(hr.ones([1, 2, 2, 3]), float("inf")),
        ArgumentTypeError,
        "depth_radius must be a whole number, got inf",
    ),
    "a text for a number": (
        lambda: hr.fake_quant_with_min_max_args(vector(), min=""),
        ArgumentTypeError,
        "min must be a number, got ''",
    ),
    "a range for strides": (
        lambda: hr.nn.max_pool(hr.ones([1, 4, 4, 1]), range(10**18), 1, "SAME"),
        AttributeValueError,
        "at most 1000 items",
    ),
    "a range of collections": (
        lambda: hr.add_to_collections(range(10**18), 1),
        AttributeValueError,
        "names must hold at most",
    ),
    "a pattern": (
        lambda: hr.get_collection(hr.GraphKeys.GLOBAL_VARIABLES, "("),
        AttributeValueError,
        "scope must be a regular expression",
    ),
    "an encoding": (
        lambda: hr.compat.as_bytes("a", "none such"),
        AttributeValueError,
        "'a' is no text in 'none such'",
    ),
    "a date": (
        lambda: hr.compat.forward_compatible(2019, 13, 40),
        AttributeValueError,
        "the year, month and day of a date, got 2019, 13, 40",
    ),
    "branches": (
        lambda: hr.switch_case(hr.constant(0), np.ones([2, 2])),
        GraphError,
        "needs at least one function",
    ),
    "a config": (lambda: hr.Session(config={}), ConfigTypeError, r"config must be an hr\.Config"),
    "a target": (lambda: hr.Session(3), ArgumentTypeError, "target must be a string, got 3"),
    "a session's graph": (lambda: hr.Session(graph=3), ArgumentTypeError, "must be an hr.Graph"),
    "a name": (lambda: hr.constant(1.0, name=3), NameTypeError, "a name is a string .*; got 3"),
    "a limit": (
        lambda: call_op("CountUpTo", hr.Variable(1).handle, limit="a"),
        ArgumentTypeError,
        "limit must be int, got 'a'",
    ),
    "a seed": (lambda: hr.random_normal([2], seed="a"), ArgumentTypeError, "must be an integer or"),
    "splits": (
        lambda: hr.ragged.RaggedTensorValue([1.0], [[0], [0, 1]]),
        HeadraceError,
        "row_splits must be a vector",
    ),
}


# What the fuzzer found: values that are wrong in a step, and those that are when it is built.
FOUND: dict[str, tuple[Any, str]] = {
    "a window that is no function": (
        lambda: hr.signal.stft(hr.ones([8]), 4, 2, window_fn=hr.ones([4])),
        "window_fn must be a function of a length",
    ),
    "batches": (
        lambda: hr.nn.nce_loss(
            hr.ones([7, 3]), hr.ones([7]), np.ones([4, 1], np.int64), hr.ones([5, 3]), 3, 7
        ),
        "inputs and labels must have as many examples, got 5 and 4",
    ),
    "a scalar's fingerprint": (
        lambda: call_op("Fingerprint", hr.placeholder_with_default(1, None)),
        "data must have a row at least, got a scalar",
    ),
    "a range of tensors": (
        lambda: call_op(
            "QuantizeAndDequantize",
            [1.0, 2.0],
            0.0,
            hr.placeholder_with_default(np.ones((4, 1), np.float32), None),
            range_given=True,
        ),
        r"input_max must be a scalar, got shape \[4, 1\]",
    ),
}


@pytest.mark.parametrize("name", list(FOUND))
def test_what_the_fuzzer_found_is_refused(name: str) -> None:
    build, match = FOUND[name]
    refused = pytest.raises(HeadraceError, match=match)
    with hr.Graph().as_default(), hr.Session() as session, refused:
        session.run(build())


@pytest.mark.parametrize("value", list(REFUSED))
def test_odd_arguments_are_refused_in_our_words(value: str) -> None:
    call, kind, match = REFUSED[value]
    with hr.Graph().as_default(), pytest.raises(kind, match=match) as caught:
        call()
    assert isinstance(caught.value, HeadraceError)
    assert len(str(caught.value).splitlines()) <= MAX_LINES


# -- what has no end


ENDLESS: dict[str, Callable[[], Any]] = {
    "range": lambda: range(10**18),
    "count": itertools.count,
    "repeat": lambda: itertools.repeat("a"),
    "by number": EndlessByNumber,
    "dict": EndlessDict,
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "tuple": hr.tuple,
    "name_scope": lambda v: hr.name_scope("n", values=v).__enter__(),
    "case": hr.case,
    "switch_case": lambda v: hr.switch_case(hr.constant(0), v),
    "sparse_placeholder": lambda v: hr.sparse_placeholder(hr.float32, v),
    "global_norm": hr.global_norm,
    "assert_near": lambda v: hr.assert_near(hr.placeholder(hr.float32), 1.0, data=v),
    "collections": lambda v: hr.get_local_variable("v", [2], collections=v),
    "padding": lambda v: hr.nn.conv2d(np.ones([1, 4, 4, 1]), np.ones([2, 2, 1, 1]), 1, v),
    "policy": lambda v: hr.PlacementRule(v, "/cpu:0"),
    "shape_invariants": lambda v: hr.while_loop(
        lambda i: hr.less(i, 3), lambda i: i + 1, [hr.constant(0)], shape_invariants=v
    ),
    "reset": lambda v: hr.Session.reset("", containers=v),
    "constant": hr.constant,
    "axis": lambda v: hr.reduce_sum(np.ones([2, 2]), axis=v),
    "adjoint": lambda v: hr.matmul(v, [[1.0]], adjoint_a=True),
    "feeds": lambda v: hr.Session().run(hr.constant(1.0), v),
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ENDLESS)
def test_what_has_no_end_is_refused_at_once(kind: str, call: str) -> None:
    with pytest.raises((HeadraceError, TypeError)) as caught:
        CALLS[call](ENDLESS[kind]())
    assert len(str(caught.value)) < 600


def test_mappings_without_end_are_no_dicts() -> None:
    with pytest.raises(AttributeValueError, match="options must hold at most 1048576 items"):
        mapping(EndlessDict(), "options")
    assert mapping({"a": 1}, "options") == {"a": 1}


def test_codes_of_no_family_are_refused() -> None:
    with pytest.raises(KeyError, match="error_code must be from 1 to 16"):
        hr.errors.exception_type_from_error_code(99)
