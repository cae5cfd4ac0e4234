"""Graphs as text."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.drawing.text import brief_value, describe, to_text
from headrace.shapes import Shape


def test_a_line_tells_inputs_attributes_outputs_device_and_site(graph) -> None:
    x = hr.placeholder(hr.float32, [None, 3], name="x")
    with hr.device("/cpu:0"), hr.control_dependencies([x]):
        y = hr.reduce_sum(x, axis=1, name="y")
    line = describe(y.op)
    assert line.startswith("y = ReduceSum(x:0, axis=1) after x -> float32[?] @/device:cpu:0  # ")
    assert line.endswith(f"test_text.py:{y.op.site.line}")


def test_the_text_begins_with_a_summary(graph) -> None:
    hr.set_random_seed(3)
    hr.Variable(1.0, name="v")
    first, *lines = graph.to_text().splitlines()
    assert first == "graph of 4 operations, 1 variable, seed 3"
    assert len(lines) == 4


def test_an_empty_graph_has_a_text(graph) -> None:
    assert to_text(graph) == "graph of 0 operations"


def test_a_long_text_can_be_cut(graph) -> None:
    for _ in range(5):
        hr.constant(1)
    assert to_text(graph, limit=2).splitlines()[-1] == "... and 3 more operations"


def test_attributes_with_their_defaults_are_left_out(graph) -> None:
    x = hr.zeros([2, 2])
    assert "transpose" not in describe(hr.matmul(x, x).op)
    assert "transpose_a=True" in describe(hr.matmul(x, x, transpose_a=True).op)


def test_variadic_inputs_stand_in_brackets(graph) -> None:
    a, b = hr.constant([1.0], name="a"), hr.constant([2.0], name="b")
    assert "Concat([a:0, b:0], axis=0)" in describe(hr.concat([a, b], 0).op)


def test_a_line_stays_a_line(graph) -> None:
    assert describe(hr.constant("a\nb\x1b", name="x").op).count("\n") == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.float32(0.5).reshape(()), "0.5"),
        (np.arange(3), "[0, 1, 2]"),
        (np.zeros((4, 5), np.float32), "float32[4, 5]"),
        (np.array([b"a"], object), "[b'a']"),
        (np.array([b"a" * 100], object), "string[1]"),
        ("text", "'text'"),
        ((1,), "(1,)"),
        ((hr.float32, Shape([None])), "(float32, [?])"),
        ("x" * 100, "'" + "x" * 56 + "..."),
    ],
)
def test_values_are_shown_briefly(value, text) -> None:
    assert brief_value(value) == text
