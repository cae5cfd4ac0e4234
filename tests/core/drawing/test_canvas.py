"""Canvases: valid SVG in two sets of colours, and texts that fit."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.drawing.axis import marks
from headrace.drawing.canvas import (
    COLORS,
    Canvas,
    dark_rules,
    fitting,
    fitting_name,
    text_width,
)

SVG = "{http://www.w3.org/2000/svg}"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours by WCAG 2: from 1 to 21."""

    def luminance(color: str) -> float:
        parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_canvas_is_valid_and_has_light_colours_and_rules_for_dark_ones():
    canvas = Canvas('what "it" shows')
    with canvas.group("a <tooltip>"):
        canvas.rect(1, 2, 30, 40, fill="blue", stroke="blue-line")
    canvas.circle(5, 5, 3, fill="amber")
    canvas.line(0, 0, 10, 10, arrow=True)
    canvas.text(3, 20, "x < y & z", color="faint")
    svg = canvas.svg(100, 50)
    root = ElementTree.fromstring(svg)
    assert root.attrib["aria-label"] == 'what "it" shows'
    rect = next(e for e in root.iter(f"{SVG}rect") if e.attrib["width"] == "30.0")
    assert (rect.attrib["fill"], rect.attrib["stroke"]) == ("#e6eefa", "#4a78b5")
    style = next(root.iter(f"{SVG}style")).text or ""
    assert "prefers-color-scheme:dark" in style
    used = {name for e in root.iter() for name in e.attrib.get("class", "").split()}
    assert {f".{name}{{" in style for name in used - {"headrace-drawing"}} == {True}
    assert [e.text for e in root.iter(f"{SVG}text")] == ["x < y & z"]


def test_rules_for_a_page_with_a_switch_name_every_colour_under_its_selector():
    rules = dark_rules('body[data-theme="dark"] ').splitlines()
    assert len(rules) == 2 * len(COLORS)
    assert all(rule.startswith('body[data-theme="dark"] .headrace-drawing .h') for rule in rules)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("text", ["text", "faint"])
@pytest.mark.parametrize(
    "ground", ["ground", "panel", "blue", "green", "amber", "red", "violet", "grey"]
)
def test_texts_can_be_read_on_every_ground(ground: str, text: str, theme: int):
    assert contrast(COLORS[text][theme], COLORS[ground][theme]) >= 4.5


@given(st.text(min_size=1), st.floats(1, 300))
def test_what_is_made_to_fit_fits(text: str, width: float):
    for short in (fitting(text, width, 11), fitting_name(text, width, 11)):
        assert not short or text_width(short, 11) <= width


def test_names_lose_scopes_before_letters():
    name = "gradients/layer/Relu_grad/Select:0"
    assert fitting_name(name, 300, 11) == name
    assert fitting_name(name, 150, 11) == "…Relu_grad/Select:0"
    assert re.fullmatch("….+elect:0", fitting_name(name, 62, 11))


@given(st.floats(1e-6, 1e12), st.integers(3, 12))
def test_marks_are_round_and_about_as_many_as_asked_for(end: float, count: int):
    found = marks(end, count)
    assert found[0] == 0
    assert found[-1] <= end * 1.001
    assert count / 2.6 <= len(found) <= count + 1
    step = f"{found[1]:.6e}"
    assert step[0] in "125"
    assert set(step[2:8]) == {"0"}
