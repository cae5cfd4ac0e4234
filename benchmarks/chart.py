"""Charts of the figures: all ratios, and the lead over the quickest other participant.

``python -m benchmarks.chart docs/benchmarks.json`` draws them anew beside the figures; a run that
writes figures does so by itself. Each chart is drawn twice, for wide pages and for narrow ones.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.figures import Figures
from benchmarks.table import figure
from headrace.drawing.canvas import Canvas, fitting, text_width

WIDE, NARROW = 740.0, 350.0
_MARGIN = 14.0
_LINE = 16.0
# Colour and shape of a library's marks; each is told from the others by its shape alone, too.
_MARKS = {
    "headrace": ("blue", "disc"),
    "torch": ("red", "square"),
    "tensorflow": ("amber", "triangle"),
    "jax": ("green", "diamond"),
    "numpy": ("violet", "cross"),
    "limit": ("grey", "bar"),
}
_TITLES = {"limit": "bare work, the limit"}
_STEPS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)


def ratios(made: Figures) -> list[tuple[str, str, float]]:
    """Return what participants took, as multiples of Headrace's time.

    Args:
        made: the figures of a workload.

    Returns:
        Library ("limit" for the bare work), label and ratio of each participant with figures;
        Headrace's own time is that of its first row with figures. Empty if it has none.
    """
    timed = [p for p in made["participants"] if "median" in p]
    ours = [p["median"] for p in timed if p["role"] == "headrace"]
    if not ours:
        return []
    return [
        (
            "limit" if p["role"] == "limit" else p["library"],
            p["label"],
            p["median"] / ours[0],
        )
        for p in timed
    ]


def best_peer(made: Figures) -> tuple[str, float] | None:
    """Return label and ratio of the quickest participant other than Headrace, None without one."""
    peers = {p["label"] for p in made["participants"] if p["role"] == "peer"}
    found = [(ratio, label) for _, label, ratio in ratios(made) if label in peers]
    return min(found)[::-1] if found else None


def all_ratios(every: Mapping[str, Figures], width: float) -> str:
    """Return the chart of all ratios: a row per workload, a lane in it per library."""
    return _Ratios({name: ratios(made) for name, made in every.items()}, width).svg(every)


class _Ratios:
    """The chart of all ratios, on a logarithmic scale."""

    def __init__(self, rows: Mapping[str, list[tuple[str, str, float]]], width: float) -> None:
        self._rows = {name: found for name, found in rows.items() if found}
        self._width = width
        self._lane = 8.0 if width > 500 else 9.0
        self._left = _MARGIN + max([text_width(name, 12) for name in self._rows] or [0.0]) + 12
        values = [ratio for found in self._rows.values() for _, _, ratio in found] or [1.0]
        self._low = min(0.75, min(values) * 0.9)
        self._high = max(2.5, max(values) * 1.12)
        self._canvas = Canvas("Times of all participants as multiples of Headrace's time")

    def svg(self, every: Mapping[str, Figures]) -> str:
        """Return the chart."""
        y = _legend(self._canvas, self._libraries(), self._width) + 8
        heights = {
            name: (len({library for library, _, _ in found}) + 1) * self._lane + 6
            for name, found in self._rows.items()
        }
        top, bottom = y + 30, y + 30 + sum(heights.values())
        self._axis(top, bottom)
        y = top
        for number, (name, found) in enumerate(self._rows.items()):
            self._row(name, found, y, heights[name], shaded=number % 2 == 0)
            y += heights[name]
        return self._canvas.svg(self._width, _dates(self._canvas, every, y, self._width))

    def _libraries(self) -> list[str]:
        used = {library for found in self._rows.values() for library, _, _ in found}
        return [library for library in _MARKS if library in used]

    def _x(self, ratio: float) -> float:
        part = math.log(ratio / self._low) / math.log(self._high / self._low)
        return self._left + part * (self._width - _MARGIN - self._left)

    def _axis(self, top: float, bottom: float) -> None:
        one, small = self._x(1.0), 11.0
        self._canvas.text(one - 8, top - 22, "quicker", size=small, color="faint", anchor="end")
        room = self._width - _MARGIN - one - 8
        words = fitting("slower than Headrace, times", room, small)
        self._canvas.text(one + 8, top - 22, words, size=small, color="faint")
        last = -math.inf
        for step in (step for step in _STEPS if self._low <= step <= self._high):
            x = self._x(step)
            self._canvas.line(x, top - 4, x, bottom, stroke="grid", width=1)
            text = f"{step:g}"
            half = text_width(text, small) / 2
            if x - half > last + 4 and x + half < self._width - 4:
                self._canvas.text(x, top - 7, text, size=small, color="faint", anchor="middle")
                last = x + half
        self._canvas.line(one, top - 4, one, bottom, stroke="blue-line", width=1.6)

    def _row(
        self,
        name: str,
        found: Sequence[tuple[str, str, float]],
        y: float,
        height: float,
        *,
        shaded: bool,
    ) -> None:
        if shaded:
            self._canvas.rect(_MARGIN - 4, y, self._left - _MARGIN, height, fill="panel", radius=3)
        self._canvas.line(
            _MARGIN, y + height, self._width - _MARGIN, y + height, stroke="grid", width=1
        )
        self._canvas.text(_MARGIN, y + height / 2 + 4, name, size=12)
        lanes = [library for library in _MARKS if library in {lib for lib, _, _ in found}]
        for library, label, ratio in found:
            at = y + 3 + (lanes.index(library) + 1) * self._lane
            with self._canvas.group(f"{label}: {figure(ratio)} of Headrace's time"):
                _mark(self._canvas, library, self._x(ratio), at)


def ahead(every: Mapping[str, Figures], width: float) -> str:
    """Return the chart of Headrace's time as a share of the quickest other participant's."""
    canvas = Canvas("Headrace's time as a share of the quickest other participant's, by workload")
    rows = [(name, found) for name, made in every.items() if (found := best_peer(made))]
    names = max([text_width(name, 12) for name, _ in rows] or [0.0])
    left = _MARGIN + names + 12
    told = width > 500
    right = width - _MARGIN - (270 if told else 48)
    most = max([1 / ratio for _, (_, ratio) in rows] + [1.25])
    scale = (right - left) / most
    top = _MARGIN + 26
    bottom = top + len(rows) * 26
    one = left + scale
    wide = text_width("as quick as the quickest other", 11)
    at = min(max(one - wide / 2, left), width - _MARGIN - wide)
    canvas.text(at, _MARGIN + 10, "as quick as the quickest other", size=11, color="faint")
    for number, (name, (label, ratio)) in enumerate(rows):
        y = top + number * 26
        share = 1 / ratio
        color = "blue" if share <= 1 else "red"
        canvas.text(_MARGIN, y + 16, name, size=12)
        with canvas.group(f"{name}: {figure(share)} of the time of {label}"):
            canvas.rect(
                left, y + 4, share * scale, 17, fill=color, stroke=f"{color}-line", radius=2
            )
        canvas.text(right + 44, y + 16.5, figure(share), size=12, anchor="end", bold=True)
        if told:
            words = fitting(f"of {label}", 216, 11)
            canvas.text(right + 52, y + 16, words, size=11, color="faint")
    canvas.line(one, top - 6, one, bottom, stroke="text", width=1.2, dashes="4 3")
    return canvas.svg(width, _dates(canvas, every, bottom, width))


def _legend(canvas: Canvas, libraries: Iterable[str], width: float) -> float:
    """Draw which mark is whose; return where that ends."""
    x, y = _MARGIN, _MARGIN
    for library in libraries:
        title = _TITLES.get(library, library)
        wide = 16 + text_width(title, 11.5) + 16
        if x > _MARGIN and x + wide > width - _MARGIN:
            x, y = _MARGIN, y + _LINE
        _mark(canvas, library, x + 6, y + 6)
        canvas.text(x + 16, y + 10, title, size=11.5)
        x += wide
    return y + _LINE


def _mark(canvas: Canvas, library: str, x: float, y: float) -> None:
    color, shape = _MARKS[library]
    line = f"{color}-line"
    if shape == "disc":
        canvas.circle(x, y, 4.0, fill=line, stroke="ground")
        return
    outline = {
        "square": ((-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)),
        "triangle": ((0.0, -4.6), (4.6, 3.6), (-4.6, 3.6)),
        "diamond": ((0.0, -5.0), (5.0, 0.0), (0.0, 5.0), (-5.0, 0.0)),
        "bar": ((-1.5, -5.0), (1.5, -5.0), (1.5, 5.0), (-1.5, 5.0)),
        "cross": (
            *((-1.4, -4.6), (1.4, -4.6), (1.4, -1.4), (4.6, -1.4), (4.6, 1.4), (1.4, 1.4)),
            *((1.4, 4.6), (-1.4, 4.6), (-1.4, 1.4), (-4.6, 1.4), (-4.6, -1.4), (-1.4, -1.4)),
        ),
    }[shape]
    points = " L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in outline)
    canvas.shape(f"M{points} z", fill=line, stroke="ground")


def _dates(canvas: Canvas, every: Mapping[str, Figures], y: float, width: float) -> float:
    """Write when and where the figures were taken; return the height of the chart."""
    dates = sorted({made["date"] for made in every.values()})
    machines = {
        made["machine"].split("; ", 1)[-1].split("; Headrace")[0] for made in every.values()
    }
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}" if dates else ""
    where = [word for machine in sorted(machines) for word in machine.split("; ")]
    lines = [""]
    for word in filter(None, [f"measured {when}" if when else "", *where]):
        longer = f"{lines[-1]}; {word}" if lines[-1] else word
        if text_width(longer, 10.5) > width - 2 * _MARGIN and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    for number, line in enumerate(lines, start=1):
        text = fitting(line, width - 2 * _MARGIN, 10.5)
        canvas.text(_MARGIN, y + number * _LINE + 4, text, size=10.5, color="faint")
    return y + len(lines) * _LINE + _MARGIN


def charts(every: Mapping[str, Figures]) -> dict[str, str]:
    """Return the charts of figures, by what is added to the name of the figures' file."""
    return {
        "": all_ratios(every, WIDE),
        "-narrow": all_ratios(every, NARROW),
        "-ahead": ahead(every, WIDE),
        "-ahead-narrow": ahead(every, NARROW),
    }


def draw(path: Path) -> list[Path]:
    """Draw the charts of a file of figures beside it; return the files written."""
    found = []
    for name, svg in charts(figures.read(path)).items():
        target = path.with_name(f"{path.stem}{name}.svg")
        target.write_text(svg + "\n", encoding="utf-8")
        found.append(target)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the charts of the file named on the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chart", description=__doc__)
    parser.add_argument("figures", type=Path, help="a file of figures, as a run writes it")
    options = parser.parse_args(arguments)
    if not options.figures.is_file():
        parser.error(f"there is no file {options.figures}")
    for path in draw(options.figures):
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
