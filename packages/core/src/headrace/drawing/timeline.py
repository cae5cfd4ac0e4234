"""Timelines as pictures: which kernels and operations ran when, in one step of a trace.

References:
    Trace Event Format, Google, 2016: the JSON that ``Config(trace=)`` writes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headrace.drawing.axis import marks
from headrace.drawing.canvas import Canvas, fitting, text_width
from headrace.errors import DocumentError, told
from headrace.records import dataclass
from headrace.runtime.profiling.report import duration

_MARGIN = 16.0
_LANE = 24.0
_LINE = 16.0
_LONGEST = 8
_COLORS = {"step": "grey", "kernel": "blue", "operation": "amber", "waiting": "violet"}
_WORDS = {
    "kernel": ("kernel", "kernels"),
    "operation": ("operation by itself", "operations by themselves"),
    "waiting": ("wait", "waits"),
}


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took time.

    Attributes:
        name: The kernel's name, or the operation's type.
        kind: "step", "kernel", "operation" or "waiting".
        track: The device and the thread.
        begin: In seconds.
        end: In seconds.
        told: What else is known: the types that it computes, and the user's line.
    """

    name: str
    kind: str
    track: tuple[str, str]
    begin: float
    end: float
    told: Mapping[str, Any]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.begin


def to_svg(trace: object, *, step: int | None = None, width: float = 760.0) -> str:
    """Return a drawing of one step of a trace.

    Args:
        trace: The document that ``Config(trace=file)`` writes, as ``json.load`` returns it.
        step: Number of the step, from 1; the last one if None.
        width: Of the drawing, in pixels.

    Raises:
        DocumentError: if it is no trace of Headrace's, or has no such step.
    """
    spans = read_spans(trace)
    steps = [span for span in spans if span.kind == "step"]
    if not steps:
        raise DocumentError("the trace has no step in it: expected an event of category 'step'")
    if step is not None and not 1 <= step <= len(steps):
        raise DocumentError(f"the trace has {len(steps)} steps, and no step {told(step)}")
    chosen = steps[-1 if step is None else step - 1]
    inside = [
        span
        for span in spans
        if span.kind != "step" and span.begin < chosen.end and span.end > chosen.begin
    ]
    return _Timeline(chosen, inside, width).svg()


def read_spans(trace: object) -> list[Span]:
    """Return what happened in a trace, in the order in which it began."""
    events = trace.get("traceEvents") if isinstance(trace, dict) else None
    if not isinstance(events, list):
        raise DocumentError(
            "this is no trace: expected an object with a list 'traceEvents', as "
            "Config(trace='file.json') writes it"
        )
    try:
        return _spans(events)
    except (KeyError, TypeError, AttributeError) as error:
        raise DocumentError(f"an event of the trace lacks or mistakes {error}") from error


def _spans(events: list[dict[str, Any]]) -> list[Span]:
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {
        (e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"
    }
    ends = {e["id"]: e["ts"] for e in events if e["ph"] == "e"}
    found = []
    for event in events:
        waits = event["ph"] == "b"
        if event["ph"] != "X" and not (waits and event["id"] in ends):
            continue
        place = event["pid"], event["tid"]
        begin = event["ts"] / 1e6
        end = ends[event["id"]] / 1e6 if waits else begin + event["dur"] / 1e6
        track = str(processes.get(place[0], place[0])), str(threads.get(place, place[1]))
        kind = "waiting" if waits else event["cat"]
        found.append(Span(event["name"], kind, track, begin, end, event.get("args", {})))
    return sorted(found, key=lambda span: (span.begin, -span.end))


class _Timeline:
    """The drawing of one step."""

    def __init__(self, step: Span, spans: Sequence[Span], width: float) -> None:
        self._step = step
        self._spans = spans
        self._width = width
        self._canvas = Canvas(f"Timeline of {step.name}")
        self._scale = (width - 2 * _MARGIN) / max(step.seconds, 1e-9)

    def svg(self) -> str:
        """Return the drawing."""
        room = self._width - 2 * _MARGIN
        title = fitting(f"{self._step.name}, {duration(self._step.seconds)}", room, 13)
        self._canvas.text(_MARGIN, _MARGIN + 12, title, size=13, bold=True)
        top = self._legend(_MARGIN + 20) + 12
        tracks: dict[tuple[str, str], list[Span]] = {}
        for span in self._spans:
            tracks.setdefault(span.track, []).append(span)
        lanes = {track: _lanes(spans) for track, spans in tracks.items()}
        bottom = top + _LINE + sum(len(found) * _LANE + 22 for found in lanes.values())
        self._axis(top, bottom)
        y = top + _LINE
        for track, found in lanes.items():
            y = self._track(track, found, y)
        y = self._longest(y + 10)
        return self._canvas.svg(self._width, y + _MARGIN)

    def _legend(self, y: float) -> float:
        x = _MARGIN
        for kind, words in _WORDS.items():
            found = [span.seconds for span in self._spans if span.kind == kind]
            if not found:
                continue
            text = f"{len(found)} {words[len(found) > 1]}, {duration(sum(found))}"
            wide = 16 + text_width(text, 11) + 14
            if x > _MARGIN and x + wide > self._width - _MARGIN:
                x, y = _MARGIN, y + _LINE
            color = _COLORS[kind]
            self._canvas.rect(x, y + 2, 10, 10, fill=color, stroke=f"{color}-line", radius=2)
            self._canvas.text(x + 16, y + 11, text, size=11, color="faint")
            x += wide
        return y + _LINE

    def _x(self, seconds: float) -> float:
        """Return where a point in time is; what began before the step is cut off."""
        inside = min(max(seconds, self._step.begin), self._step.end)
        return _MARGIN + (inside - self._step.begin) * self._scale

    def _axis(self, top: float, bottom: float) -> None:
        for mark in marks(max(self._step.seconds, 1e-9), max(2, int(self._width / 110))):
            x = _MARGIN + mark * self._scale
            self._canvas.line(x, top + 4, x, bottom, stroke="grid", width=1)
            text = duration(mark) if mark else "0"
            wide = text_width(text, 11)
            at = min(max(x - wide / 2, _MARGIN), self._width - _MARGIN - wide)
            self._canvas.text(at, top, text, size=11, color="faint")

    def _track(self, track: tuple[str, str], lanes: list[list[Span]], y: float) -> float:
        name = fitting(f"{track[0]}, {track[1]}", self._width - 2 * _MARGIN, 11)
        self._canvas.text(_MARGIN, y + 12, name, size=11, color="faint")
        y += 18
        for lane in lanes:
            for span in lane:
                self._span(span, y)
            y += _LANE
        return y + 4

    def _span(self, span: Span, y: float) -> None:
        x = self._x(span.begin)
        wide = max(self._x(span.end) - x, 0.6)
        color = _COLORS.get(span.kind, "grey")
        lines = [f"{span.name}, {duration(span.seconds)}"]
        lines += [str(span.told[key]) for key in ("computes", "line") if span.told.get(key)]
        with self._canvas.group("\n".join(lines)):
            self._canvas.rect(x, y, wide, _LANE - 4, fill=color, stroke=f"{color}-line", radius=1.5)
            label = fitting(span.name, wide - 6, 10.5)
            if label:
                self._canvas.text(x + 3, y + 14, label, size=10.5)

    def _longest(self, y: float) -> float:
        """Draw the names and times of what took longest, by kernel."""
        sums: dict[tuple[str, str, str], list[float]] = {}
        for span in self._spans:
            if span.kind in ("kernel", "operation"):
                key = (span.name, span.kind, str(span.told.get("computes", "")))
                sums.setdefault(key, []).append(span.seconds)
        if not sums:
            return y
        self._canvas.text(_MARGIN, y + 12, "what took longest", size=11, color="faint")
        y += 18
        longest = sorted(sums.items(), key=lambda entry: -sum(entry[1]))[:_LONGEST]
        most = sum(longest[0][1])
        bar = min(150.0, self._width * 0.22)
        for (name, kind, computes), times in longest:
            color = _COLORS[kind]
            took = sum(times)
            self._canvas.rect(
                _MARGIN, y + 3, max(took / most * bar, 1), 10, fill=color, stroke=f"{color}-line"
            )
            x = _MARGIN + bar + 8
            self._canvas.text(x + 58, y + 12, duration(took), size=11, anchor="end")
            text = (f"{len(times)} x " if len(times) > 1 else "") + name
            text += f": {computes}" if computes not in ("", name) else ""
            room = self._width - _MARGIN - x - 68
            self._canvas.text(x + 68, y + 12, fitting(text, room, 11), size=11)
            y += _LINE + 2
        return y


def _lanes(spans: Sequence[Span]) -> list[list[Span]]:
    """Return the spans of a track in rows, so that none hides another: nested ones go below."""
    lanes: list[list[Span]] = []
    for span in spans:
        for lane in lanes:
            if lane[-1].end <= span.begin:
                lane.append(span)
                break
        else:
            lanes.append([span])
    return lanes
