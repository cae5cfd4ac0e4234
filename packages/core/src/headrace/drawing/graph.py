"""Graphs as SVG and HTML, without any program but this one."""

from __future__ import annotations

import re
from itertools import pairwise

from headrace.drawing.canvas import Canvas, clean, shortened, text_width
from headrace.drawing.layers import Arrangement, Point, arrange
from headrace.drawing.outline import MAX_BOXES, Box, Outline, outline
from headrace.drawing.text import describe, to_text
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation

_MARGIN = 16.0
_PADDING = 14.0
_TITLE = 22.0
_LINE = 15.0
_LISTED = 400

# The colour of a kind of box, and how round its corners are.
_STYLES = {
    "input": ("green", 15.0),
    "variable": ("amber", 15.0),
    "write": ("red", 5.0),
    "random": ("violet", 5.0),
    "control": ("grey", 5.0),
    "op": ("blue", 5.0),
    "scope": ("grey", 8.0),
    "group": ("grey", 8.0),
}


def to_svg(graph: Graph, *, scope: str = "", max_boxes: int = MAX_BOXES) -> str:
    """Return a drawing of a graph, in which data flows down.

    Name scopes are collapsed until what is left has at most ``max_boxes`` boxes; pointing at a box
    or an edge tells what is in it. Constants are named in the boxes that use them.

    Args:
        graph: The graph.
        scope: Draw only what is in this name scope.
        max_boxes: How many boxes to draw at most.

    Raises:
        ArgumentTypeError: if ``scope`` is no string, or ``max_boxes`` no whole number.
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
        _details("as text", f"<pre>{clean(to_text(graph, limit=_LISTED))}</pre>"),
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
    return f"{clean(box.name)} ({len(box.operations)} operations)"


def _details(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>{content}</details>"


class _Drawing:
    """Measures boxes from the inside out, then writes them from the outside in."""

    def __init__(self, content: Outline) -> None:
        self.content = content
        self.sizes: dict[Box, Point] = {}
        self.plans: dict[Box, Arrangement] = {}
        self.lines: dict[Box, list[str]] = {}
        self.canvas = Canvas(content.root.label or "A graph")

    def svg(self) -> str:
        """Return the drawing."""
        root = self.content.root
        self._measure(root)
        plan = self.plans[root]
        footer = self._footer()
        width = max(plan.width, *(text_width(line, 11) for line in footer)) + 2 * _MARGIN
        height = plan.height + 2 * _MARGIN + len(footer) * _LINE + 8
        self._inside(root, _MARGIN, _MARGIN)
        for i, line in enumerate(footer):
            y = plan.height + _MARGIN + (i + 1) * _LINE + 6
            self.canvas.text(_MARGIN, y, line, size=11, color="faint")
        return self.canvas.svg(width, height)

    def _footer(self) -> list[str]:
        lines = []
        if not self.content.root.children:
            lines.append("nothing to draw: no operations")
        if self.content.aside:
            named = [f"{shortened(box.name)} ({_type_of(box)})" for box in self.content.aside[:6]]
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
            title = text_width(shortened(box.label), 11)
            width = max(plan.width, title) + 2 * _PADDING
            self.sizes[box] = (width, plan.height + 2 * _PADDING + _TITLE)
            return
        lines = _caption(box)
        self.lines[box] = lines
        width = max(text_width(lines[0], 12.5), *(text_width(line, 10.5) for line in lines), 40.0)
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
        if box.children:
            with self.canvas.group(_tooltip(box)):
                self.canvas.rect(x, y, width, height, fill="panel", stroke="panel-line", radius=8.0)
                label = shortened(box.label, max(8, int(width / 7)))
                self.canvas.text(x + _PADDING, y + 17, label, size=11, color="faint", bold=True)
            plan = self.plans[box]
            self._inside(box, x + (width - plan.width) / 2, y + _PADDING + _TITLE - 4)
            return
        color, radius = _STYLES[_family(box)]
        with self.canvas.group(_tooltip(box)):
            # A stack of sheets where there is more inside.
            for shift in (4, 0) if box.kind in ("scope", "group") else (0,):
                self.canvas.rect(
                    x + shift,
                    y - shift,
                    width,
                    height,
                    fill=color,
                    stroke=f"{color}-line",
                    radius=radius,
                )
            for i, line in enumerate(self.lines[box]):
                self.canvas.text(
                    x + width / 2,
                    y + 18 + i * _LINE,
                    line,
                    size=10.5 if i else 12.5,
                    color="faint" if i else "text",
                    anchor="middle",
                    bold=not i,
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
        told = [*data[:8], *([f"and {len(data) - 8} more"] if len(data) > 8 else [])]
        controls = len(tensors) - len(data)
        if controls:
            told.append("control edge" if controls == 1 else f"{controls} control edges")
        self.canvas.path(
            path,
            width=1.2 if len(data) < 2 else 2.0,
            dashes="" if data else "4 3",
            arrow=True,
            tooltip="\n".join(told),
        )


# -- what boxes say


def _family(box: Box) -> str:
    """Return the key of a box's style."""
    if box.kind != "op":
        return box.kind
    op = box.operations[0]
    effects = op.schema.effects
    if "observes" in effects or op.type in ("Const", "Recv"):
        return "input"
    if op.type == "VarHandle":
        return "variable"
    if not op.outputs or op.schema.may_be_dead or op.type in ("Merge", "Identity"):
        return "control"
    if "draws" in effects:
        return "random"
    if effects and not op.inputs:
        return "variable"
    return "write" if op.schema.changes else "op"


def _type_of(box: Box) -> str:
    return box.operations[0].type if box.kind == "op" else box.kind


def _caption(box: Box) -> list[str]:
    """Return the lines in a closed box, the first one its name."""
    lines = [shortened(box.label)]
    if box.kind == "variable":
        handle = next(op for op in box.operations if op.type == "VarHandle")
        lines.append(shortened(str(handle.outputs[0].spec.content or "")))
    elif box.kind == "op":
        op = box.operations[0]
        if op.type.lower() != re.sub(r"_\d+$", "", box.label).lower():
            lines.append(shortened(op.type))
        lines += [shortened(str(t.spec)) for t in op.outputs[:2]]
    else:
        lines.append(f"{len(box.operations)} operations")
    if box.aside:
        shown = [shortened(name, 12) for name in box.aside[:3]]
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
    return shortened(f"{op.name} ({op.type})", 80)
