"""Small graphs extracted, pruned and imported, against TensorFlow 1.15."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

# Made by tables/generate_graph_util.py with TensorFlow 1.15.5.
TABLE = json.loads((Path(__file__).parent / "tables" / "graph_util.json").read_text())


def nodes(message: Any) -> list[list[Any]]:
    return [[node.name, node.op, list(node.input)] for node in message.node]


@pytest.fixture(scope="module")
def whole() -> Any:
    with hr.Graph().as_default() as graph:
        a = hr.constant([1.0, 2.0], name="a")
        b = hr.identity(a, name="b")
        with hr.control_dependencies([b.op]):
            c = hr.identity(a, name="c")
        d = hr.identity(hr.identity(c, name="d0"), name="d")
        with hr.control_dependencies([hr.check_numerics(d, "m", name="check")]):
            e = hr.exp(d, name="e")
        with hr.colocate_with(b.op):
            f = hr.tanh(e, name="f")
        with hr.device("/cpu:0"):
            hr.no_op(name="g")
        hr.identity(f, name="out")
    return graph.as_graph_def()


def test_the_program_is_the_same(whole: Any) -> None:
    assert nodes(whole) == TABLE["nodes"]


@pytest.mark.parametrize("wanted", TABLE["extracted"])
def test_extracted(whole: Any, wanted: str) -> None:
    found = hr.graph_util.extract_sub_graph(whole, wanted.split(","))
    assert nodes(found) == TABLE["extracted"][wanted]


@pytest.mark.parametrize("kept", TABLE["removed"])
def test_removed(whole: Any, kept: str) -> None:
    found = hr.graph_util.remove_training_nodes(whole, kept.split(","))
    assert nodes(found) == TABLE["removed"][kept]


@pytest.mark.parametrize("name", TABLE["imported"])
def test_imported(whole: Any, name: str) -> None:
    with hr.Graph().as_default() as graph:
        hr.constant(1.0, name="a")
        for _ in range(2):
            given = hr.constant([3.0, 4.0], name="given")
            hr.import_graph_def(whole, {"a:0": given}, name=None if name == "None" else name)
        assert [op.name for op in graph.operations] == TABLE["imported"][name]
