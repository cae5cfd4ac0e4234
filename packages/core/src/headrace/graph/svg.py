"""Graphs as SVG and HTML, without any program but this one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from headrace.graph.graph import Graph
from headrace.graph.layers import Arrangement, Point, arrange
from headrace.graph.operation import Operation
from headrace.graph.outline import MAX_BOXES, Box, Outline, outline
from headrace.graph.show import describe, to_text

_FONT = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif"
_MARGIN = 16.0
_PADDING = 14.0
_TITLE = 22.0
_LINE = 15.0
_CHARACTERS = 30
_LISTED = 400
# What XML forbids in any form, and half characters, which have no UTF-8.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class _Style:
    fill: str
    line: str
    radius: float = 5.0


_STYLES = {
    "input": _Style("#e3f4e8", "#3d9a5f", 15.0),
    "variable": _Style("#fdf0d5", "#c98a1b", 15.0),
    "write": _Style("#fbe4df", "#c8553d"),
    "random": _Style("#efe6fa", "#8157b8"),
    "control": _Style("#eceff2", "#7a8794"),
    "op": _Style("#e6eefa", "#4a78b5"),
    "scope": _Style("#eef1f5", "#64748b", 8.0),
    "group": _Style("#eef1f5", "#64748b", 8.0),
}
_OPEN = "#f7f9fb"
_OPEN_LINE = "#c3ccd6"
_EDGE = "#8b98a8"
_TEXT = "#1f2933"
_FAINT = "#64707d"
_ARROW = (
    '<defs><marker id="headrace-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
    'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 0.8 L8 4 L0 7.2 z" '
    f'fill="{_EDGE}"/></marker></defs>'
)


def to_svg(graph: Graph, *, scope: str = "", max_boxes: int = MAX_BOXES) -> str:
    """Return a drawing of a graph, in which data flows down.

    Name scopes are collapsed until what is left has at most ``max_boxes`` boxes; pointing at a box
    or an edge tells what is in it. Constants are named in the boxes that use them.

    Args:
        graph: The graph.
        scope: Draw only what is in this name scope.
        max_boxes: How many boxes to draw at most.
    """
    return _Drawing(outline(graph, scope, max_boxes)).svg()


def to_html(graph: Graph, *, max_boxes: int = MAX_BOXES) -> str:
    """Return a page part with the drawing, the scopes left collapsed in it, and all as text.

    Args:
        graph: The graph.
        max_boxes: How many boxes each drawing has at most.
    """
    whole = outline(graph, "", max_boxes)
    parts = [
        '<div style="max-width:100%;overflow:auto">',
        _Drawing(whole).svg(),
        *(
            _details(_scope_title(box), to_svg(graph, scope=box.name, max_boxes=max_boxes))
            for box in _collapsed(whole)[:8]
        ),
        _details("as text", f"<pre>{_clean(to_text(graph, limit=_LISTED))}</pre>"),
        "</div>",
    ]
    return "\n".join(parts)


def _collapsed(whole: Outline) -> list[Box]:
    """Return the scopes that are drawn closed, the largest first."""
    found: list[Box] = []
    boxes = [whole.root]
    while boxes:
        box = boxes.pop()
        boxes += box.children
        if box.kind == "scope" and not box.children and box.name:
            found.append(box)
    return sorted(found, key=lambda box: (-len(box.operations), box.name))


def _scope_title(box: Box) -> str:
    return f"{_clean(box.name)} ({len(box.operations)} operations)"


def _details(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


def _clean(text: str) -> str:
    """Return text that XML takes."""
    return escape(_FORBIDDEN.sub("\ufffd", text))


def _shortened(text: str, limit: int = _CHARACTERS) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _wide(text: str, size: float) -> float:
    """Return an estimate of a text's width: there are no font metrics here."""
    return sum(0.38 if c in "il.,:|'!()[]" else 0.92 if c in "mwMW@" else 0.63 for c in text) * size


class _Drawing:
    """Measures boxes from the inside out, then writes them from the outside in."""

    def __init__(self, content: Outline) -> None:
        self.content = content
        self.sizes: dict[Box, Point] = {}
        self.plans: dict[Box, Arrangement] = {}
        self.lines: dict[Box, list[str]] = {}
        self.out: list[str] = []

    def svg(self) -> str:
        """Return the drawing."""
        root = self.content.root
        self._measure(root)
        plan = self.plans[root]
        footer = self._footer()
        width = max(plan.width, *(_wide(line, 11) for line in footer)) + 2 * _MARGIN
        height = plan.height + 2 * _MARGIN + len(footer) * _LINE + 8
        self._inside(root, _MARGIN, _MARGIN)
        for i, line in enumerate(footer):
            y = plan.height + _MARGIN + (i + 1) * _LINE + 6
            self._text(_MARGIN, y, line, size=11, color=_FAINT, anchor="start")
        w, h = f"{width:.0f}", f"{height:.0f}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" width="{w}" '
            f'height="{h}" font-family="{_FONT}" style="max-width:100%;height:auto">'
        )
        ground = f'<rect width="{w}" height="{h}" rx="6" fill="#ffffff"/>'
        return "\n".join([head, _ARROW, ground, *self.out, "</svg>"])

    def _footer(self) -> list[str]:
        lines = []
        if not self.content.root.children:
            lines.append("nothing to draw: no operations")
        if self.content.aside:
            named = [f"{_shortened(box.name)} ({_type_of(box)})" for box in self.content.aside[:6]]
            more = len(self.content.aside) - len(named)
            lines.append(f"set aside: {', '.join(named)}" + (f" and {more} more" if more else ""))
        count = self.content.constants
        if count:
            what = "1 constant is" if count == 1 else f"{count} constants are"
            lines.append(f"{what} named in the boxes where used")
        return lines or [""]

    # -- measuring

    def _measure(self, box: Box) -> None:
        for child in box.children:
            self._measure(child)
        if box.children or box is self.content.root:
            numbers = {child: i for i, child in enumerate(box.children)}
            edges = [(numbers[a], numbers[b]) for a, b in box.links]
            plan = arrange([self.sizes[c] for c in box.children], edges)
            self.plans[box] = plan
            title = _wide(_shortened(box.label), 11)
            width = max(plan.width, title) + 2 * _PADDING
            self.sizes[box] = (width, plan.height + 2 * _PADDING + _TITLE)
            return
        lines = _caption(box)
        self.lines[box] = lines
        width = max(_wide(lines[0], 12.5), *(_wide(line, 10.5) for line in lines), 40.0)
        self.sizes[box] = (width + 22, len(lines) * _LINE + 12)

    # -- writing

    def _inside(self, box: Box, x: float, y: float) -> None:
        plan = self.plans[box]
        numbers = {child: i for i, child in enumerate(box.children)}
        for child, (cx, cy) in zip(box.children, plan.places, strict=True):
            self._box(child, x + cx, y + cy)
        # Edges last, over the grounds of open boxes.
        for (a, b), tensors in box.links.items():
            points = plan.routes[numbers[a], numbers[b]]
            self._edge([(px + x, py + y) for px, py in points], tensors)

    def _box(self, box: Box, x: float, y: float) -> None:
        width, height = self.sizes[box]
        self.out.append(f"<g><title>{_clean(_tooltip(box))}</title>")
        if box.children:
            self._rect(x, y, width, height, _Style(_OPEN, _OPEN_LINE, 8.0))
            label = _shortened(box.label, max(8, int(width / 7)))
            self._text(
                x + _PADDING, y + 17, label, size=11, color=_FAINT, anchor="start", bold=True
            )
            self.out.append("</g>")
            plan = self.plans[box]
            self._inside(box, x + (width - plan.width) / 2, y + _PADDING + _TITLE - 4)
            return
        style = _STYLES[_family(box)]
        if box.kind in ("scope", "group"):
            # A stack of sheets: there is more inside.
            self._rect(x + 4, y - 4, width, height, style)
        self._rect(x, y, width, height, style)
        for i, line in enumerate(self.lines[box]):
            size, color = (12.5, _TEXT) if not i else (10.5, _FAINT)
            self._text(x + width / 2, y + 18 + i * _LINE, line, size=size, color=color, bold=not i)
        self.out.append("</g>")

    def _rect(self, x: float, y: float, width: float, height: float, style: _Style) -> None:
        self.out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{style.radius:g}" fill="{style.fill}" stroke="{style.line}"/>'
        )

    def _text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float,
        color: str,
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self.out.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{color}" '
            f'text-anchor="{anchor}"{weight}>{_clean(text)}</text>'
        )

    def _edge(self, points: list[Point], tensors: list[str | None]) -> None:
        data = [t for t in tensors if t is not None]
        path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
        for (px, py), (x, y) in pairwise(points):
            if px == x and abs(py - y) > 0.1:
                path += f" L{x:.1f} {y:.1f}"
            elif px != x:
                middle = (py + y) / 2
                path += f" C{px:.1f} {middle:.1f} {x:.1f} {middle:.1f} {x:.1f} {y:.1f}"
        dashes = "" if data else ' stroke-dasharray="4 3"'
        width = 1.2 if len(data) < 2 else 2.0
        told = [*data[:8], *([f"and {len(data) - 8} more"] if len(data) > 8 else [])]
        controls = len(tensors) - len(data)
        if controls:
            told.append("control edge" if controls == 1 else f"{controls} control edges")
        self.out.append(
            f'<path d="{path}" fill="none" stroke="{_EDGE}" stroke-width="{width}"{dashes} '
            f'marker-end="url(#headrace-arrow)"><title>{_clean(chr(10).join(told))}</title></path>'
        )


# -- what boxes say


def _family(box: Box) -> str:
    """Return the key of a box's style."""
    if box.kind != "op":
        return box.kind
    op = box.operations[0]
    if op.type in ("Placeholder", "Feed", "Recv", "Const"):
        return "input"
    if op.type == "VarHandle":
        return "variable"
    if not op.outputs or op.type in ("Switch", "Merge", "Identity"):
        return "control"
    if op.schema.stateful and not op.inputs:
        return "variable"
    if op.type.startswith(("Assign", "Scatter", "Queue")):
        return "write"
    if op.schema.stateful and op.type != "ReadVariable":
        return "random"
    return "op"


def _type_of(box: Box) -> str:
    return box.operations[0].type if box.kind == "op" else box.kind


def _caption(box: Box) -> list[str]:
    """Return the lines in a closed box, the first one its name."""
    lines = [_shortened(box.label)]
    if box.kind == "variable":
        handle = next(op for op in box.operations if op.type == "VarHandle")
        lines.append(_shortened(str(handle.outputs[0].spec.content or "")))
    elif box.kind == "op":
        op = box.operations[0]
        if op.type.lower() != re.sub(r"_\d+$", "", box.label).lower():
            lines.append(_shortened(op.type))
        lines += [_shortened(str(t.spec)) for t in op.outputs[:2]]
    else:
        lines.append(f"{len(box.operations)} operations")
    if box.aside:
        shown = [_shortened(name, 12) for name in box.aside[:3]]
        lines.append("· " + ", ".join(shown) + (" …" if len(box.aside) > 3 else ""))
    return lines


def _tooltip(box: Box) -> str:
    if box.kind == "op":
        return describe(box.operations[0])
    lines = [f"{box.name or 'graph'}: {len(box.operations)} operations"]
    lines += [_one_line(op) for op in box.operations[:6]]
    if len(box.operations) > 6:
        lines.append(f"and {len(box.operations) - 6} more")
    return "\n".join(lines)


def _one_line(op: Operation) -> str:
    return _shortened(f"{op.name} ({op.type})", 80)
