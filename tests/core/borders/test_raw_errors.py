"""What is too deep, too large or no number gets one of our errors, of at most twelve lines."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ConfigError, HeadraceError
from headrace.extend.settings import seconds, size, whole_number
from headrace.settings import CORE_SETTINGS
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


def refusal(call: Any, expected: type[Exception] = HeadraceError) -> str:
    """Return the message with which a call is refused, empty where it works."""
    try:
        call()
    except expected as error:
        return str(error)
    return ""


def is_in_form(message: str) -> bool:
    """Whether there is a message, of at most twelve lines that a person reads."""
    return 0 < len(message) < 2000 and len(message.splitlines()) <= 12


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


def two() -> Any:
    return hr.placeholder(hr.float32, [2, 2])


def fed(value: Any, shape: Any = None) -> Any:
    place = hr.placeholder(hr.float32, shape)
    return run(place, {place: value})


# Each takes a nested list of floats, and one of integers.
DEEP: dict[str, Any] = {
    "constant": lambda d, i: hr.constant(d),
    "constant of a dtype": lambda d, i: hr.constant(i, hr.int64),
    "constant of a shape": lambda d, i: hr.constant(1.0, shape=i),
    "convert_to_tensor": lambda d, i: hr.convert_to_tensor(d),
    "operand": lambda d, i: two() + d,
    "feed": lambda d, i: fed(d),
    "feed of a shape": lambda d, i: fed(d, [2, 2]),
    "feed as a dict": lambda d, i: fed({"a": d}),
    "axis": lambda d, i: hr.reduce_sum(two(), axis=i),
    "axis of concat": lambda d, i: hr.concat([two(), two()], i),
    "permutation": lambda d, i: hr.transpose(two(), i),
    "shape of reshape": lambda d, i: hr.reshape(two(), i),
    "shape of a placeholder": lambda d, i: hr.placeholder(hr.float32, i),
    "shape of zeros": lambda d, i: hr.zeros(i),
    "shape of fill": lambda d, i: hr.fill(i, 1.0),
    "TensorShape": lambda d, i: hr.TensorShape(i),
    "initial value": lambda d, i: hr.Variable(d),
    "shape of get_variable": lambda d, i: hr.get_variable("v", i),
    "stack": lambda d, i: hr.stack(d),
    "concat": lambda d, i: hr.concat(d, 0),
    "add_n": lambda d, i: hr.add_n(d),
    "indices": lambda d, i: hr.gather(two(), i),
    "slice": lambda d, i: two()[i],
    "slices": lambda d, i: two()[tuple(i)],
    "dtype": lambda d, i: hr.cast(two(), d),
    "name": lambda d, i: hr.constant(1, name=d),
    "device": lambda d, i: hr.device(d).__enter__(),
    "control input": lambda d, i: hr.control_dependencies(d).__enter__(),
    "results of branches": lambda d, i: hr.cond(two()[0, 0] > 0.0, lambda: d, lambda: d),
    "loop variables": lambda d, i: hr.while_loop(lambda v: True, lambda v: v, [d]),
    "elements of map_fn": lambda d, i: hr.map_fn(lambda v: v, d),
    "group": lambda d, i: hr.group(d),
    "tuple": lambda d, i: hr.tuple(d),
    "argument of a function": lambda d, i: hr.function(lambda v: v)(d),
    "result of py_func": lambda d, i: run(hr.py_func(lambda: d, [], hr.float32)),
    "fetch": lambda d, i: run(d),
}


@pytest.mark.parametrize("depth", [110, 1000, 10_000])
@pytest.mark.parametrize("where", list(DEEP))
def test_lists_nested_too_deep_are_refused(where: str, depth: int) -> None:
    floats, integers = nested(depth, 1.0), nested(depth, 1)
    assert is_in_form(refusal(lambda: DEEP[where](floats, integers)))


@pytest.mark.needs("autodiff")
@pytest.mark.parametrize("depth", [110, 1000, 10_000])
def test_gradients_of_lists_nested_too_deep_are_refused(depth: int) -> None:
    with pytest.raises(HeadraceError, match="tensors or variables"):
        hr.gradients(nested(depth, 1.0), two())


EMPTY = np.zeros((0,), np.float32)
SHAPES: dict[str, list[int]] = {
    "2^62, 0": [2**62, 0],
    "2^63, 0": [2**63, 0],
    "2^64, 0": [2**64, 0],
    "a product of 2^93, 0": [2**31, 2**31, 2**31, 0],
    "0, a product of 2^124": [0, 2**62, 2**62],
    "400 digits": [10**400, 0],
    "minus 400 digits": [-(10**400), 0],
    "65 axes": [1] * 65,
    "65 axes, empty": [0] * 65,
    "1000 axes": [1] * 1000,
    "2^62, 4": [2**62, 4],
    "2^30, 2^30, 2^30": [2**30] * 3,
}
BUILDS: dict[str, Any] = {
    "reshape": lambda s: hr.reshape(EMPTY, s),
    "constant": lambda s: hr.constant(1.0, shape=s),
    "constant of nothing": lambda s: hr.constant([], hr.float32, shape=s),
    "zeros": hr.zeros,
    "ones": lambda s: hr.ones(s, hr.int32),
    "fill": lambda s: hr.fill(s, "text"),
    "broadcast_to": lambda s: hr.broadcast_to(1.0, s),
    "random_uniform": hr.random_uniform,
}


@pytest.mark.parametrize("shape", list(SHAPES))
@pytest.mark.parametrize("build", list(BUILDS))
def test_shapes_that_no_array_has_are_refused(build: str, shape: str) -> None:
    assert is_in_form(refusal(lambda: run(BUILDS[build](SHAPES[shape]))))


@pytest.mark.parametrize(
    "grow",
    [
        lambda x: hr.expand_dims(x, 0),
        lambda x: hr.stack([x]),
        lambda x: hr.stack([x, x]) if x.shape.rank in (None, 0) else hr.stack([x], axis=-1),
        lambda x: hr.reshape(x, [1] * ((x.shape.rank or 0) + 1)),
        lambda x: x[None],
        lambda x: hr.one_hot(hr.cast(x, hr.int32), 1),
        lambda x: hr.matrix_diag(x) if x.shape.rank else hr.expand_dims(x, 0),
    ],
    ids=range(7),
)
@pytest.mark.parametrize("start", [1.0, None])
def test_tensors_of_more_axes_than_arrays_have_are_refused(grow: Any, start: Any) -> None:
    x = hr.constant(start) if start else hr.placeholder_with_default(np.float32(1), [])

    def grow_on() -> None:
        grown = x
        for _ in range(70):
            grown = grow(grown)

    assert is_in_form(refusal(grow_on))


ODD = [
    "9" * 400,
    "9" * 5000,
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1",
    "1.5.5",
    "१२",
    "0x10",
    "1_0_",
    "",
]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
@pytest.mark.parametrize(
    "parse",
    [size, seconds, whole_number(), whole_number(least=0)],
    ids=["size", "seconds", "positive", "whole"],
)
def test_settings_that_are_no_numbers_say_what_is_expected(parse: Any, text: str) -> None:
    message = refusal(lambda: parse(text), ValueError)
    assert len(message) < 200
    assert "number" in message or 0 <= parse(text) < float("inf")


@pytest.mark.parametrize("text", ODD[:-1], ids=range(len(ODD) - 1))
@pytest.mark.parametrize("setting", CORE_SETTINGS, ids=lambda s: s.variable)
def test_settings_are_read_or_refused(setting: Any, text: str, monkeypatch: Any) -> None:
    monkeypatch.setenv(setting.variable, text)
    message = refusal(setting.read, ConfigError)
    assert not message or setting.variable in message
    assert len(message) < 300


@pytest.mark.parametrize(
    "value",
    [10**400, float("inf"), float("nan"), -1, 2**63, 1e308, "soon", True, None],
    ids=range(9),
)
def test_deadlines_that_are_none_are_refused_or_never_come(value: Any) -> None:
    started = time.monotonic()

    def run_within() -> None:
        with hr.Session() as session:
            options = hr.RunOptions(timeout_in_ms=value)
            assert session.run(hr.constant(1.0), options=options) == 1.0

    assert len(refusal(run_within)) < 300
    assert time.monotonic() - started < 20


class Unspeakable:
    """What cannot be shown."""

    def __repr__(self) -> str:
        raise ValueError("no repr")


class Endless:
    """What takes long to read."""

    def __repr__(self) -> str:
        return "x" * 10**6


@pytest.mark.parametrize("value", [Unspeakable(), Endless()], ids=["raises", "is huge"])
@pytest.mark.parametrize(
    "setting",
    ["executor", "threads", "compile_after", "timeout", "wait_report", "trace", "profile"],
)
def test_values_that_cannot_be_shown_as_settings(setting: str, value: object) -> None:
    with pytest.raises(hr.errors.ConfigError, match=f"{setting} must be ") as refused:
        hr.Config(**{setting: value})
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("value", [Unspeakable(), Endless()], ids=["raises", "is huge"])
def test_values_that_cannot_be_shown_as_fetches_and_feeds(value: object) -> None:
    with hr.Graph().as_default():
        x = hr.constant(1.0)
        with hr.Session() as session:
            with pytest.raises(hr.errors.FetchError, match="cannot fetch") as refused:
                session.run(value)
            assert len(str(refused.value)) < 500
            with pytest.raises(hr.errors.FeedError, match="cannot feed") as refused:
                session.run(x, {value: 1.0})
            assert len(str(refused.value)) < 500


class _NoArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return "no array"


class _HugeLength:
    def __len__(self) -> int:
        return 2**63 - 1

    def __getitem__(self, index: int) -> Any:
        raise IndexError(index)


ENDLESS = range(10**18)


REFUSED: dict[str, tuple[Any, str]] = {
    "constant of no array": (lambda: hr.constant(_NoArray()), "cannot be converted to an array"),
    "operand that is none": (lambda: hr.add(1.0, _NoArray()), "cannot be converted to an array"),
    "constant": (lambda: hr.constant(ENDLESS), "more elements than there is memory for"),
    "length": (lambda: hr.constant(_HugeLength()), "more elements than there is memory for"),
    "placeholder": (lambda: hr.placeholder(hr.float32, ENDLESS), "at most 10000 dimensions, got r"),
    "shape": (lambda: hr.TensorShape(ENDLESS), "at most 10000 dimensions"),
    "iterator": (lambda: hr.TensorShape(iter(int, 1)), "at most 10000 dimensions"),
    "zeros": (lambda: hr.zeros(ENDLESS), "integers in lists of one length, got range"),
    "nan seed": (lambda: hr.random_normal([2], seed=float("nan")), "or None, got nan"),
    "inf seed": (lambda: hr.random_normal([2], seed=float("inf")), "or None, got inf"),
    "text seed": (lambda: hr.random_shuffle([1, 2], seed="x"), "seed must be an integer.*got 'x'"),
    "deep seed": (lambda: hr.random_uniform([2], seed=nested(10_000, 1)), "got a list nested"),
    "400 digits": (lambda: hr.cumsum(two(), axis=-(10**400)), "integers of 64 bits, got -1000"),
    "5000 digits": (lambda: hr.reduce_sum(two(), axis=10**5000), "an integer of 16610 bits"),
    "deep attribute": (
        lambda: hr.strings.lower(["a"], encoding=nested(10_000, "a")),
        "nested at most 64 deep",
    ),
    "dimension": (lambda: hr.Dimension(float("inf")), "an integer >= 0 or None, got inf"),
}


@pytest.mark.parametrize("value", REFUSED)
def test_values_that_never_end_or_are_no_numbers_are_refused(value: str) -> None:
    call, match = REFUSED[value]
    with pytest.raises(HeadraceError, match=match) as caught:
        call()
    assert is_in_form(str(caught.value))
