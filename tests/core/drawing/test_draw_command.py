"""``python -m headrace draw``: pictures of documents, and mistakes on the command line."""

from __future__ import annotations

import json

import pytest

import headrace as hr
from headrace.cli.main import main


@pytest.fixture
def document(tmp_path, graph):
    x = hr.placeholder(hr.float32, [None, 8], name="x")
    y = x
    for _ in range(4):
        y = hr.matmul(hr.matmul(y, hr.transpose(x)), x)
    hr.identity(y, name="y")
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(graph.to_document()))
    return str(path)


def test_a_graph_is_drawn(document, capsys, read_svg):
    assert main(["draw", "graph", document, "--boxes", "8"]) == 0
    assert "x" in read_svg(capsys.readouterr().out).texts


@pytest.mark.needs("backend-cpu")
@pytest.mark.parametrize("width", ["340", "760"])
def test_the_memory_of_a_step_is_drawn(document, width, capsys, read_svg):
    words = ["draw", "memory", document, "--fetch", "y:0", "--feed", "x=16,8", "--width", width]
    assert main(words) == 0
    svg = capsys.readouterr().out
    assert not read_svg(svg).overflowing
    assert read_svg(svg).texts[0].startswith("part 1: ")
    assert read_svg(svg).texts[1].startswith("arena ")
    products = [title for title in read_svg(svg).titles if title.startswith("MatMul")]
    assert len(products) >= 2
    # [16, 16] and [16, 8] of float32.
    sizes = {title.split("\n")[1].split(" at ")[0] for title in products}
    assert sizes <= {"1.02 kB", "512 B"}
    assert len(sizes) == 2


@pytest.mark.needs("backend-cpu")
def test_without_shapes_the_message_says_what_is_missing(document, capsys):
    assert main(["draw", "memory", document, "--fetch", "y:0"]) == 2
    message = capsys.readouterr().err
    assert "no part of the step has an arena to draw" in message
    assert "pass feed_dict" in message


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["memory", "--fetch", "y:0", "--feed", "x"], "expected a name and a shape, as in x:0=50"),
        (["memory", "--fetch", "y:0", "--feed", "x=a"], "expected a name and a shape"),
        (["memory", "--fetch", "y:0", "--feed", "x=-1"], "expected a name and a shape"),
        (["memory", "--fetch", "z:0"], "z"),
        (["memory", "--fetch", "y:0", "--feed", "q=1"], "q"),
        (["timeline"], "this is no trace"),
    ],
)
def test_mistakes_are_told(document, words, message, capsys):
    assert main(["draw", words[0], document, *words[1:]]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read"), ("{", "is no JSON"), ("{}", "")]
)
def test_files_that_are_no_documents_are_refused(tmp_path, content, message, capsys):
    path = tmp_path / "file.json"
    if content is not None:
        path.write_text(content)
    assert main(["draw", "graph", str(path)]) == 2
    assert message in capsys.readouterr().err
