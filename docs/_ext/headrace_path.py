"""The path of a step as a drawing: in a row on wide pages, in a column on narrow ones."""

from __future__ import annotations

from headrace.drawing.canvas import Canvas

WIDE, NARROW = 740.0, 350.0
# Title, what it is in two short lines, and its colour.
_STAGES = (
    ("program", ("calls ops", "on tensors"), "green"),
    ("graph", ("holds nodes", "and edges"), "blue"),
    ("passes", ("fold, dedupe,", "simplify"), "blue"),
    ("placement", ("picks devices", "for the nodes"), "violet"),
    ("partition", ("Send and Recv", "at borders"), "violet"),
    ("plan", ("fuses kernels,", "lays memory"), "amber"),
    ("executor", ("runs the plan", "many times"), "red"),
)
# How often a group of stages happens: first and last of them, and the words.
_BANDS = (
    (0, 1, "once per program", "green"),
    (2, 5, "once per signature: fetches, feeds, shapes", "violet"),
    (6, 6, "every step", "red"),
)
_LABEL = "The path of a step: program, graph, passes, placement, partition, plan, executor"


def wide() -> str:
    """Return the drawing in a row."""
    canvas = Canvas(_LABEL)
    box, gap, margin, top = 90.0, 12.0, 19.0, 16.0
    for number, (title, lines, color) in enumerate(_STAGES):
        x = margin + number * (box + gap)
        canvas.rect(x, top, box, 72, fill=color, stroke=f"{color}-line", radius=6)
        canvas.text(x + box / 2, top + 22, title, size=13, anchor="middle", bold=True)
        for row, line in enumerate(lines):
            y = top + 42 + 14 * row
            canvas.text(x + box / 2, y, line, size=10, color="text", anchor="middle")
        if number:
            canvas.line(x - gap + 1, top + 36, x - 1, top + 36, arrow=True)
    y = top + 92
    for first, last, words, color in _BANDS:
        left, right = margin + first * (box + gap), margin + last * (box + gap) + box
        canvas.path(f"M{left + 2:.1f} {y - 8:.1f} v6 H{right - 2:.1f} v-6", stroke=f"{color}-line")
        canvas.text((left + right) / 2, y + 14, words, size=11, color="faint", anchor="middle")
    return canvas.svg(WIDE, y + 28)


def narrow() -> str:
    """Return the drawing in a column."""
    canvas = Canvas(_LABEL)
    box, gap, margin, high = 106.0, 14.0, 14.0, 40.0
    for number, (title, lines, color) in enumerate(_STAGES):
        y = margin + number * (high + gap)
        canvas.rect(margin, y, box, high, fill=color, stroke=f"{color}-line", radius=6)
        canvas.text(margin + box / 2, y + 25, title, size=13, anchor="middle", bold=True)
        for row, line in enumerate(lines):
            canvas.text(margin + box + 12, y + 17 + 15 * row, line, size=11)
        if number:
            x = margin + box / 2
            canvas.line(x, y - gap + 1, x, y - 1, arrow=True)
    for first, last, words, color in _BANDS:
        top, bottom = margin + first * (high + gap), margin + last * (high + gap) + high
        x = margin + box + 130
        canvas.path(f"M{x:.1f} {top + 2:.1f} h6 V{bottom - 2:.1f} h-6", stroke=f"{color}-line")
        pieces = words.replace(": ", ":|").replace(" per ", " per|").split("|")
        pieces = [piece for part in pieces for piece in part.split(", ")]
        middle = (top + bottom) / 2 - (len(pieces) - 1) * 7 + 4
        for row, piece in enumerate(pieces):
            canvas.text(x + 12, middle + 14 * row, piece, size=10.5, color="faint")
    return canvas.svg(NARROW, margin + len(_STAGES) * (high + gap))
