"""Drawings of graphs: valid, bounded, quick, and showing what is there."""

from __future__ import annotations

import time
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace as hr
from headrace.drawing.graph import to_html, to_svg
from headrace.drawing.layers import arrange
from headrace.drawing.outline import outline

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}title")]


def build_model() -> None:
    x = hr.placeholder(hr.float32, [None, 4], name="x")
    for _ in range(2):
        with hr.name_scope("layer"):
            w = hr.Variable(hr.zeros([4, 4]), name="w")
            x = hr.nn.relu(hr.matmul(x, w) * 0.5)
    hr.global_variables_initializer()


def test_a_drawing_is_xml_and_names_what_it_shows(graph) -> None:
    build_model()
    found = texts(graph.to_svg())
    assert {"x", "layer", "layer_1", "w", "MatMul", "Relu", "init"} <= set(found)
    assert "float32[?, 4]" in found


def test_edges_tell_their_tensors(graph) -> None:
    build_model()
    assert any("x:0 float32[?, 4]" in title for title in titles(graph.to_svg()))


def test_constants_are_named_where_they_are_used(graph) -> None:
    build_model()
    found = texts(graph.to_svg())
    assert "· 0.5" in found
    assert "6 constants are named in the boxes where used" in found


def test_a_constant_that_nothing_uses_is_drawn(graph) -> None:
    hr.constant(1.0, name="lonely")
    assert "lonely" in texts(graph.to_svg())


def test_an_empty_graph_is_drawn(graph) -> None:
    assert texts(graph.to_svg()) == ["nothing to draw: no operations"]
    ElementTree.fromstring(graph._repr_html_())


def test_small_budgets_collapse_scopes(graph) -> None:
    build_model()
    found = texts(graph.to_svg(max_boxes=4))
    assert "layer_1" in found
    assert "Relu" not in found
    assert any("operations" in text for text in found)


def test_one_scope_can_be_drawn_alone(graph) -> None:
    build_model()
    found = texts(graph.to_svg(scope="layer"))
    assert "Relu" in found
    assert "x" not in found


def test_texts_of_a_program_are_escaped(graph) -> None:
    text = "<script>&\"'\x00\x1b]]>"
    hr.constant(text)
    hr.Variable(1.0, shared_name=text)
    hr.strings.regex_replace(hr.placeholder(hr.string), "<script>", text)
    ElementTree.fromstring(graph.to_svg())
    page = graph._repr_html_()
    ElementTree.fromstring(page)
    assert "<script" not in page
    page.encode()


def test_what_is_tied_to_many_is_set_aside(graph) -> None:
    shared = hr.placeholder(hr.float32, name="shared")
    for i in range(30):
        hr.negative(shared, name=f"n{i}")
    svg = graph.to_svg()
    assert "set aside: shared (Placeholder)" in texts(svg)
    assert "· shared" in texts(svg)


def test_notebooks_get_both_forms(graph) -> None:
    build_model()
    assert graph._repr_svg_() == graph.to_svg()
    page = ElementTree.fromstring(graph._repr_html_())
    assert page.find(SVG + "svg") is not None
    assert "graph of" in "".join(page.itertext())


def test_the_page_opens_scopes_that_the_drawing_leaves_closed(graph) -> None:
    build_model()
    page = ElementTree.fromstring(to_html(graph, max_boxes=4))
    summaries = [element.text for element in page.iter("summary")]
    assert summaries[0].startswith("layer (")
    assert len(list(page.iter(f"{SVG}svg"))) == 3


@pytest.mark.slow
def test_ten_thousand_operations_in_scopes_are_drawn_in_two_seconds(graph) -> None:
    x = hr.placeholder(hr.float32, [None], name="x")
    for _ in range(30):
        with hr.name_scope("block"):
            for _ in range(40):
                with hr.name_scope("unit"):
                    for _ in range(4):
                        x = hr.tanh(x) * 2.0
    assert len(graph) > 10_000
    started = time.process_time()
    page = to_html(graph)
    assert time.process_time() - started < 2
    assert len(page) < 1_000_000


def test_ten_thousand_operations_without_scopes_are_drawn_in_two_seconds(graph) -> None:
    x = hr.placeholder(hr.float32, [None], name="x")
    for i in range(5_000):
        x = hr.tanh(x + x, name=f"{i}tanh")
    started = time.process_time()
    svg = to_svg(graph)
    assert time.process_time() - started < 2
    assert "all others" in texts(svg)
    assert len(outline(graph).root.children) <= 40


@given(
    st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40),
    st.lists(st.tuples(st.floats(10, 200), st.floats(10, 200)), min_size=12, max_size=12),
)
def test_boxes_never_overlap_and_edges_end_at_them(pairs, sizes) -> None:
    edges = list(dict.fromkeys((a, b) for a, b in pairs if a != b))
    plan = arrange(sizes, edges)
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(plan.places, sizes, strict=True)]
    for i, (left, top, right, bottom) in enumerate(boxes):
        assert left >= -1e-6
        assert top >= -1e-6
        assert right <= plan.width + 1e-6
        assert bottom <= plan.height + 1e-6
        for x0, y0, x1, y1 in boxes[:i]:
            apart = (x0 - right, left - x1, y0 - bottom, top - y1)
            assert max(apart) > 0
    assert set(plan.routes) == set(edges)
    for (a, b), points in plan.routes.items():
        for node, (x, y) in ((a, points[0]), (b, points[-1])):
            left, top, right, bottom = boxes[node]
            assert left - 1e-6 <= x <= right + 1e-6
            assert min(abs(y - top), abs(y - bottom)) < 1e-6
