"""Printing, assertions in steps, and Python functions that steps call."""

from __future__ import annotations

import gc
import logging
import sys
import time

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DocumentError,
    DTypeError,
    ExecutionError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
)
from headrace.summarize import both_ends, first_elements
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu")


# -- printing


@pytest.mark.parametrize(
    ("value", "limit", "expected"),
    [
        ([[1, 2], [3, 4]], 3, "[1 2][3...]..."),
        ([[1, 2], [3, 4]], -1, "[1 2][3 4]"),
        (np.arange(20), 3, "0 1 2..."),
        (np.zeros((2, 2, 1)), 2, "[[0][0]]..."),
        (2.5, 3, "2.5"),
        (2.5, 0, "..."),
        ([True, False], 3, "1 0"),
        (np.zeros((0, 3)), 3, ""),
        (np.array([b"a\xff", "é\t".encode()], object), 3, "a\udcff é\\t"),
        (np.array([1 + 2j], np.complex64), 3, "(1,2)"),
        (np.array([1 / 3, 0.1], np.float32), 3, "0.333333343 0.1"),
        (np.array([1 / 3, 0.1]), 3, "0.33333333333333331 0.1"),
    ],
)
def test_first_elements(value, limit, expected):
    assert first_elements(np.asarray(value), limit) == expected


def test_both_ends_of_each_axis():
    cube = np.arange(27).reshape(3, 3, 3)
    assert both_ends(cube, 1) == (
        "[[[0 ... 2]\n  ...\n  [6 ... 8]]\n\n ...\n\n [[18 ... 20]\n  ...\n  [24 ... 26]]]"
    )


def test_print_returns_what_it_is_given(capfd):
    x = hr.constant([1.0, 2.0])
    shown = hr.Print(x, [x, "text", hr.range(9)], "message: ")
    assert run(shown).tolist() == [1, 2]
    assert capfd.readouterr().err == "message: [1 2][text][0 1 2...]\n"


def test_print_counts_and_cuts(capfd):
    x = hr.Print(hr.constant(1), [hr.range(9)], first_n=2, summarize=-1, name="p")
    with hr.Session() as session:
        for _ in range(4):
            session.run(x)
    assert capfd.readouterr().err == "[0 1 2 3 4 5 6 7 8]\n" * 2


@pytest.mark.needs("autodiff")
def test_gradients_pass_through_print():
    x = hr.constant(3.0)
    (slope,) = hr.gradients(hr.Print(x * x, []), [x])
    assert run(slope) == 6


def test_print_as_python_does(capsys):
    op = hr.print(
        "a",
        hr.constant([1, 2]),
        {"k": hr.constant(2.5)},
        (1, hr.constant("s"), None),
        hr.SparseTensor([[0]], [1.0], [2]),
        output_stream=sys.stdout,
    )
    assert isinstance(op, hr.Operation)
    run(op)
    assert capsys.readouterr().out == (
        "a [1 2] {'k': 2.5} (1, \"s\", None) 'SparseTensor(indices=[[0]], values=[1], shape=[2])'\n"
    )


def test_values_are_printed_beside_their_keys(capsys):
    x, y = hr.constant([1, 2]), hr.constant([3.5])
    for given in (
        {"small": x, "Big": y, "inner": {"z": y, "a": x}},
        [{2: x, 1: y}, {"b": 1, "a": y}],
        {2: x, "b": y},
    ):
        run(hr.print(given))
    assert capsys.readouterr().err.splitlines() == [
        "{'Big': [3.5], 'inner': {'a': [1 2], 'z': [3.5]}, 'small': [1 2]}",
        "[{1: [3.5], 2: [1 2]}, {'a': [3.5], 'b': 1}]",
        "{2: [1 2], 'b': [3.5]}",
    ]


def test_names_of_what_prints():
    printed = [hr.print(1, name="p"), hr.print(hr.constant("s")), hr.print(2)]
    assert [op.name for op in printed] == ["p", "PrintV2", "PrintV2_1"]
    assert [t.op.name for op in printed for t in op.inputs] == ["p_format", "Const", "StringFormat"]


def test_print_takes_its_arguments(capsys):
    run(hr.print(hr.range(10), "x", sep="|", end="!\n", summarize=2))
    run(hr.print(hr.constant("only")))
    with hr.control_dependencies([hr.print()]):
        run(hr.constant(1) + 1)
    assert capsys.readouterr().err == "[0 1 ... 8 9]|x!\nonly\n\n"


def test_print_to_files_and_logs(tmp_path, caplog):
    path = tmp_path / "out.txt"
    run(hr.print("a", hr.constant(1), output_stream=f"file://{path}"))
    run(hr.print("b", output_stream=f"file://{path}"))
    assert path.read_text() == "a 1\nb\n"
    with caplog.at_level(logging.WARNING):
        run(hr.print("careful", hr.constant(1), output_stream=logging.warning))
    assert caplog.records[0].levelname == "WARNING"
    assert caplog.records[0].getMessage() == "careful 1\n"
    with pytest.raises(AttributeValueError, match="output_stream must be"):
        hr.print("a", output_stream=str)


def test_texts_with_tensors():
    assert run(hr.strings.format("x: {}", hr.constant([1, 2]))) == b"x: [1 2]"
    pair = [hr.constant(1), hr.constant("é")]
    assert run(hr.strings.format("%,%", pair, placeholder="%")) == '1,"é"'.encode()
    with pytest.raises(AttributeValueError, match="2 placeholders"):
        hr.strings.format("{} {}", [hr.constant(1)])


def test_timestamps():
    before = time.time()
    stamp = hr.timestamp()
    with hr.Session() as session:
        first, second = session.run(stamp), session.run(stamp)
    assert before <= first <= second <= time.time()
    assert stamp.dtype == hr.float64


# -- assertions


def test_an_assertion_that_does_not_hold_fails_the_step():
    x = hr.placeholder(hr.int32, [None])
    with hr.control_dependencies([hr.Assert(hr.reduce_all(x > 0), ["x:", x], summarize=2)]):
        y = x + 1
    assert run(y, {x: [1, 2]}).tolist() == [2, 3]
    with pytest.raises(InvalidArgumentError, match="assertion failed") as caught:
        run(y, {x: [1, 0, 3]})
    text = str(caught.value)
    assert text.startswith("assertion failed: [x:] [1 0...]\n")
    assert "test_report.py" in text


def test_assertions_without_data():
    run(hr.Assert(True, []))
    with pytest.raises(InvalidArgumentError, match="assertion failed: "):
        run(hr.Assert(False, []))


def test_conditions_are_scalars():
    with pytest.raises(ShapeError, match="must be a scalar"):
        hr.Assert([True], ["x"])
    with pytest.raises(DTypeError, match="must be bool"):
        hr.Assert(1, ["x"])
    fed = hr.placeholder(hr.bool)
    with pytest.raises(ShapeError, match="must be a scalar"):
        run(hr.Assert(fed, ["x"]), {fed: [True]})


# -- Python functions


def test_a_python_function_gets_arrays():
    seen = []

    def function(*inputs):
        seen.extend(inputs)
        return np.float32(7)

    fetch = hr.py_func(function, [hr.constant([1.0, 2.0]), 3, "s", ["a"]], hr.float32)
    assert fetch.shape.rank is None
    assert run(fetch) == 7
    array, number, text, words = seen
    assert (array.tolist(), array.dtype) == ([1, 2], np.float32)
    assert (number, type(number)) == (3, np.int32)
    assert text == b"s"
    assert words.tolist() == [b"a"]


def test_outputs_are_as_many_as_dtypes():
    two = hr.py_func(lambda: (1.5, np.array(["a", "é"])), [], [hr.float32, hr.string])
    number, words = run(two)
    assert (number, number.dtype) == (1.5, np.float32)
    assert words.tolist() == [b"a", "é".encode()]
    (one,) = run(hr.py_func(lambda: np.int64(2), [], [hr.int64]))
    assert one == 2
    assert run(hr.numpy_function(lambda x: x * 2, [hr.constant(3)], hr.int32)) == 6
    assert run(hr.py_function(func=lambda: True, inp=[], Tout=hr.bool)) is np.True_


def test_functions_are_called_for_their_effects():
    calls = []
    op = hr.py_func(calls.append, [hr.constant(5)], [], name="effect")
    assert isinstance(op, hr.Operation)
    assert op.name == "effect"
    run(op)
    assert calls == [5]


@pytest.mark.parametrize(
    ("function", "types", "match"),
    [
        (lambda: np.float64(1), hr.float32, "value 0 that .* is float64, expected float32"),
        (lambda: 1.5, hr.int32, "expected int32"),
        (lambda: "a", hr.int32, "is string, expected int32"),
        (lambda: None, hr.float32, "returned 0 values, expected 1"),
        (lambda: (1.0, 2.0), [hr.float32], "returned 2 values, expected 1"),
        (lambda: object(), hr.float32, "is no array"),
    ],
    ids=["wide", "fraction", "text", "nothing", "two", "object"],
)
def test_results_of_another_kind_fail_the_step(function, types, match):
    with pytest.raises(ExecutionError, match=match):
        run(hr.py_func(function, [], types))


def test_what_a_function_raises_is_the_cause():
    def broken():
        raise KeyError("lost")

    with pytest.raises(ExecutionError, match=r"'broken' failed: KeyError: 'lost'") as caught:
        run(hr.py_func(broken, [], hr.float32))
    assert "test_report.py" in str(caught.value)
    causes = []
    error = caught.value
    while error is not None:
        causes.append(type(error))
        error = error.__cause__
    assert causes[-1] is KeyError

    def ended():
        next(iter(()))

    with pytest.raises(OutOfRangeError, match="'ended' has no more values"):
        run(hr.py_func(ended, [], hr.float32))


def test_stateful_calls_are_not_merged():
    calls = []

    def count():
        calls.append(1)
        return np.int64(len(calls))

    both = [hr.py_func(count, [], hr.int64) for _ in range(2)]
    assert sorted(run(both)) == [1, 2]
    pure = hr.py_func(lambda x: x + 1, [hr.constant(1)], hr.int32, stateful=False)
    assert pure.op.type == "PyFuncStateless"
    assert run(pure) == 2


def test_functions_live_as_long_as_their_graph():
    class Function:
        def __call__(self):
            return np.float32(1)

    with hr.Graph().as_default() as other:
        fetch = hr.py_func(Function(), [], hr.float32)
        gc.collect()
        assert run(fetch) == 1
        text = other.to_document()
        copy = hr.Graph.from_document(text)
        with hr.Session(graph=copy) as session:
            assert session.run(copy.get_tensor_by_name(fetch.name)) == 1
    del other, copy, fetch, session
    gc.collect()
    with pytest.raises(DocumentError, match="lives in the process that built it"):
        hr.Graph.from_document(text)


@pytest.mark.needs("autodiff")
def test_gradients_stop_at_python_functions():
    x = hr.constant(2.0)
    y = hr.py_func(lambda v: v * v, [x], hr.float32)
    assert hr.gradients(y, [x]) == [None]


def test_what_is_no_function_is_refused():
    with pytest.raises(AttributeValueError, match="needs a function"):
        hr.py_func(1, [], hr.float32)
    with pytest.raises(DTypeError, match="not a dtype"):
        hr.py_func(lambda: 1, [], "nonsense")
    with pytest.raises(DTypeError, match="returns no resource"):
        hr.py_func(lambda: 1, [], hr.resource)
