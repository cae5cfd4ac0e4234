"""What drawings say, and whether their texts stay inside, found without a browser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from xml.etree import ElementTree

import pytest

from headrace.drawing.canvas import text_width

SVG = "{http://www.w3.org/2000/svg}"


@dataclass(frozen=True)
class Drawing:
    """An SVG, which is well-formed if there is one of these."""

    root: ElementTree.Element

    @property
    def texts(self) -> list[str]:
        return [element.text or "" for element in self.root.iter(f"{SVG}text")]

    @property
    def titles(self) -> list[str]:
        """What is told when something is pointed at."""
        return [element.text or "" for element in self.root.iter(f"{SVG}title")]

    @property
    def overflowing(self) -> list[str]:
        """The texts that reach over the border, as far as widths can be estimated."""
        _, _, width, height = map(float, self.root.attrib["viewBox"].split())
        found = []
        for element in self.root.iter(f"{SVG}text"):
            text = element.text or ""
            wide = text_width(text, float(element.attrib["font-size"]))
            x, base = float(element.attrib["x"]), float(element.attrib["y"])
            anchor = element.attrib.get("text-anchor", "start")
            left = {"start": x, "middle": x - wide / 2, "end": x - wide}[anchor]
            if left < -1 or left + wide > width + 1 or not 5 <= base <= height:
                found.append(text)
        return found


@pytest.fixture
def read_svg() -> Callable[[str], Drawing]:
    """The function that reads an SVG."""
    return lambda svg: Drawing(ElementTree.fromstring(svg))
