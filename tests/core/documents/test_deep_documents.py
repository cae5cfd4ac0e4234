"""Documents of functions deep within each other: what is written is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headrace as hr
from headrace.errors import DocumentError, GraphError

pytestmark = pytest.mark.needs("backend-cpu")


def called(inner: Any, v: Any) -> Any:
    return inner(v * 1.01)


def branched(inner: Any, v: Any) -> Any:
    return hr.cond(v > -1e30, lambda: inner(v * 1.01), lambda: v)


def repeated(inner: Any, v: Any) -> Any:
    return hr.while_loop(lambda i, a: i < 1, lambda i, a: (i + 1, inner(a * 1.01)), [0, v])[1]


def both(inner: Any, v: Any) -> Any:
    return hr.cond(v > -1e30, lambda: inner(v * 1.01), lambda: inner(v))


def nested(depth: int, way: Any) -> hr.Graph:
    """Return the graph of functions each of which was traced before the one that calls it."""
    with hr.Graph().as_default() as graph:
        x = hr.placeholder(hr.float64, [], name="x")
        function = hr.function(lambda v: v * 1.5, name="first")
        for i in range(depth):
            function(x)
            function = hr.function(lambda v, f=function: way(f, v), name=f"f{i}")
        hr.identity(function(x), name="y")
    return graph


@pytest.mark.parametrize("way", [called, branched, repeated, both])
@pytest.mark.parametrize("depth", [3, 30])
def test_what_was_read_computes_the_same(depth: int, way: Any) -> None:
    text = nested(depth, way).to_document()
    read = hr.Graph.from_document(text)
    assert read.to_document() == text
    with hr.Session(graph=read) as session:
        assert session.run("y:0", {"x:0": 1.0}) == pytest.approx(1.5 * 1.01**depth)


@pytest.mark.parametrize(
    ("way", "depth"), [(called, 100), (called, 400), (branched, 200), (repeated, 200), (both, 201)]
)
def test_hundreds_deep_is_written_read_and_run_or_refused(depth: int, way: Any) -> None:
    text = nested(depth, way).to_document()
    read = hr.Graph.from_document(text)
    assert read.to_document() == text
    with hr.Session(graph=read) as session:
        if depth <= 100:
            assert session.run("y:0", {"x:0": 1.0}) == pytest.approx(1.5 * 1.01**depth)
        else:
            with pytest.raises(GraphError, match=r"nested too deep|more than 200 deep"):
                session.run("y:0", {"x:0": 1.0})


@pytest.mark.parametrize("way", [called, branched])
def test_what_would_not_be_read_is_not_written(way: Any) -> None:
    with pytest.raises(DocumentError, match="nests functions more than 1000 deep"):
        nested(1002, way).to_document()


@pytest.mark.needs("io")
@pytest.mark.parametrize(("way", "depth"), [(called, 100), (branched, 60), (repeated, 60)])
def test_messages_of_functions_within_each_other_are_read(way: Any, depth: int) -> None:
    message = nested(depth, way).as_graph_def()
    with hr.Graph().as_default() as read, hr.Session(graph=read) as session:
        hr.import_graph_def(message, name="")
        assert session.run("y:0", {"x:0": 1.0}) == pytest.approx(1.5 * 1.01**depth)
    with pytest.raises(GraphError, match="nests functions more than 1000 deep"):
        nested(1002, way).as_graph_def()


def test_a_document_that_nests_deeper_is_refused() -> None:
    record = json.loads(nested(2, called).to_document())
    first, last = record["functions"][0], record["functions"][-1]
    before = json.dumps(last)
    functions = [first]
    for i in range(1100):
        made = json.loads(before.replace(last["name"], f"g{i}"))
        for op in made["operations"]:
            if op["type"] == "Call":
                op["attrs"]["function"] = {"function": functions[-1]["name"]}
        functions.append(made)
    record["functions"] = functions
    record["operations"], record["variables"] = [], []
    with pytest.raises(DocumentError, match="nested more than 1000 deep"):
        hr.Graph.from_document(json.dumps(record))
