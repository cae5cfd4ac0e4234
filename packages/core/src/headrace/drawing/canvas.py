"""A canvas: shapes and texts in named colours, written as one SVG that suits light and dark pages.

Every shape carries its colours for a light page as attributes, and classes by which a style sheet
changes them for a dark one. A drawing that stands by itself follows the reader's system; a page
with a switch of its own takes the rules from ``dark_rules``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
# Name -> the colour on a light page, and on a dark one.
COLORS = {
    "ground": ("#ffffff", "#16191d"),
    "panel": ("#f7f9fb", "#1d2228"),
    "panel-line": ("#c3ccd6", "#4a5561"),
    "grid": ("#e3e8ee", "#2c333b"),
    "edge": ("#8b98a8", "#7f8c9b"),
    "text": ("#1f2933", "#e3e8ee"),
    "faint": ("#5b6774", "#a3afbc"),
    "blue": ("#e6eefa", "#22344d"),
    "blue-line": ("#4a78b5", "#7aa7e0"),
    "green": ("#e3f4e8", "#1f3a2a"),
    "green-line": ("#3d9a5f", "#67c389"),
    "amber": ("#fdf0d5", "#43351a"),
    "amber-line": ("#c98a1b", "#e0ab4a"),
    "red": ("#fbe4df", "#47251f"),
    "red-line": ("#c8553d", "#e78a76"),
    "violet": ("#efe6fa", "#33264a"),
    "violet-line": ("#8157b8", "#b392e0"),
    "grey": ("#eceff2", "#2b3138"),
    "grey-line": ("#7a8794", "#95a2af"),
}
# What XML forbids in any form, and half characters, which have no UTF-8.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CLASS = "headrace-drawing"


def clean(text: str) -> str:
    """Return text that XML takes."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def shortened(text: str, limit: int = 30) -> str:
    """Return the beginning of a text, with an ellipsis where something was left out."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def text_width(text: str, size: float) -> float:
    """Return an estimate of a text's width: there are no font metrics here.

    Args:
        text: The text.
        size: Of the font, in pixels.
    """
    return sum(0.38 if c in "il.,:|'!()[]" else 0.92 if c in "mwMW@" else 0.63 for c in text) * size


def fitting(text: str, width: float, size: float) -> str:
    """Return as much of a text as fits into ``width`` pixels, "" where little would be left."""
    if text_width(text, size) <= width:
        return text
    while text and text_width(text + "…", size) > width:
        text = text[:-1]
    return f"{text.rstrip()}…" if len(text) > 2 else ""


def fitting_name(name: str, width: float, size: float) -> str:
    """Return as much of a name's end as fits: name scopes at its beginning say least."""
    text, shown = name, name
    while text and text_width(shown, size) > width:
        # Whole scopes first, then letters.
        _, separator, rest = text.partition("/")
        text = rest if separator else text[1:]
        shown = f"…{text}"
    return shown if len(text) > 2 else ""


def dark_rules(prefix: str = "") -> str:
    """Return the rules of a style sheet that give all drawings the colours for a dark page.

    Args:
        prefix: The selector under which they hold, such as ``body[data-theme="dark"] ``.
    """
    rules = []
    for name, (_, dark) in COLORS.items():
        rules.append(f"{prefix}.{_CLASS} .hf-{name}{{fill:{dark}}}")
        rules.append(f"{prefix}.{_CLASS} .hs-{name}{{stroke:{dark}}}")
    return "\n".join(rules)


class Canvas:
    """Shapes in the order in which they are drawn.

    Args:
        label: What the drawing shows, for readers who do not see it.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._out: list[str] = []
        self._used: set[str] = set()

    def svg(self, width: float, height: float) -> str:
        """Return the drawing.

        Args:
            width: Its width in pixels.
            height: Its height in pixels.
        """
        w, h = f"{width:.0f}", f"{height:.0f}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" '
            f'height="{h}" class="{_CLASS}" role="img" aria-label="{clean(self._label)}" '
            f'font-family="{FONT}" style="max-width:100%;height:auto">'
        )
        ground = f'<rect width="{w}" height="{h}" rx="6" {self._paint("fill", "ground")}/>'
        arrow = self._arrow()
        rules = "".join(
            f".{_CLASS} .{name}{{{'fill' if name[1] == 'f' else 'stroke'}:{COLORS[name[3:]][1]}}}"
            for name in sorted(self._used)
        )
        style = f"<style>@media (prefers-color-scheme:dark){{{rules}}}</style>"
        return "\n".join([head, style, arrow, ground, *self._out, "</svg>"])

    def _arrow(self) -> str:
        """Return the head that arrows of the drawing have, "" where there are none."""
        if not any("url(#headrace-arrow)" in line for line in self._out):
            return ""
        return (
            '<defs><marker id="headrace-arrow" viewBox="0 0 8 8" refX="7" refY="4" '
            'markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
            f'<path d="M0 0.8 L8 4 L0 7.2 z" {self._paint("fill", "edge")}/></marker></defs>'
        )

    def _paint(self, what: str, color: str) -> str:
        """Return the attributes of a fill or a stroke, and note its class."""
        name = f"h{what[0]}-{color}"
        self._used.add(name)
        return f'{what}="{COLORS[color][0]}" class="{name}"'

    def _paints(self, fill: str | None, stroke: str | None) -> str:
        """Return the attributes of a fill and a stroke."""
        classes = []
        for letter, color in (("f", fill), ("s", stroke)):
            if color is not None:
                classes.append(f"h{letter}-{color}")
        self._used.update(classes)
        parts = [f'fill="{COLORS[fill][0]}"' if fill else 'fill="none"']
        if stroke:
            parts.append(f'stroke="{COLORS[stroke][0]}"')
        if classes:
            parts.append(f'class="{" ".join(classes)}"')
        return " ".join(parts)

    @contextmanager
    def group(self, tooltip: str) -> Iterator[None]:
        """Put what is drawn inside into a group that tells ``tooltip`` when it is pointed at."""
        self._out.append(f"<g><title>{clean(tooltip)}</title>")
        yield
        self._out.append("</g>")

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str,
        stroke: str | None = None,
        radius: float = 0.0,
    ) -> None:
        """Draw a rectangle with its upper left corner at ``x``, ``y``."""
        self._out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{radius:g}" {self._paints(fill, stroke)}/>'
        )

    def circle(
        self, x: float, y: float, radius: float, *, fill: str, stroke: str | None = None
    ) -> None:
        """Draw a disc around ``x``, ``y``."""
        self._out.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" {self._paints(fill, stroke)}/>'
        )

    def shape(self, data: str, *, fill: str, stroke: str | None = None) -> None:
        """Fill what a closed line goes around; ``data`` is its course, as in SVG."""
        self._out.append(f'<path d="{data}" {self._paints(fill, stroke)}/>')

    def path(
        self,
        data: str,
        *,
        stroke: str = "edge",
        width: float = 1.2,
        dashes: str = "",
        arrow: bool = False,
        tooltip: str = "",
    ) -> None:
        """Draw a line.

        Args:
            data: Its course, as in SVG.
            stroke: Its colour.
            width: In pixels.
            dashes: Lengths of dashes and gaps, "" for an unbroken line.
            arrow: Whether it ends in an arrow.
            tooltip: What it tells when it is pointed at.
        """
        more = f' stroke-dasharray="{dashes}"' if dashes else ""
        more += ' marker-end="url(#headrace-arrow)"' if arrow else ""
        inside = f"><title>{clean(tooltip)}</title></path>" if tooltip else "/>"
        self._out.append(
            f'<path d="{data}" stroke-width="{width:g}" {self._paints(None, stroke)}{more}{inside}'
        )

    def line(self, x1: float, y1: float, x2: float, y2: float, **how: str | float | bool) -> None:
        """Draw a straight line; the arguments are those of ``path``."""
        self.path(f"M{x1:.1f} {y1:.1f} L{x2:.1f} {y2:.1f}", **how)  # type: ignore[arg-type]

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 12.0,
        color: str = "text",
        anchor: str = "start",
        bold: bool = False,
    ) -> None:
        """Write a text on the base line ``y``.

        Args:
            x: Where it begins, has its middle or ends, as ``anchor`` says.
            y: The base line.
            text: One line.
            size: Of the font, in pixels.
            color: Its colour.
            anchor: "start", "middle" or "end".
            bold: Whether it is bold.
        """
        weight = ' font-weight="600"' if bold else ""
        self._out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}"{weight} '
            f"{self._paint('fill', color)}>{clean(text)}</text>"
        )
