"""Memory plans as pictures: what lies where in an arena, from the first kernel to the last."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.drawing.axis import marks
from headrace.drawing.canvas import Canvas, fitting, fitting_name, text_width
from headrace.runtime.profiling.report import Buffer, ProgramReport, Work, amount

_MARGIN = 16.0
_ARENA = 230.0
_STRIP = 44.0
_LINE = 16.0
# With more work than this the list below the picture would be longer than the picture.
_LISTED = 48


def to_svg(reports: Mapping[str, ProgramReport], *, width: float = 760.0) -> str:
    """Return a drawing of the arenas of compiled programs, one below the other.

    Work goes on from left to right, one column each; upwards are the bytes of the arena. A box is a
    range of it, from the work that fills it to the last that reads it.

    Args:
        reports: What each program does, by its title.
        width: Of the drawing, in pixels.
    """
    canvas = Canvas("Memory plan of a step: ranges of the arena over the work of the step")
    y = _MARGIN
    for title, report in reports.items():
        y = _Plan(canvas, title, report, width).draw(y) + _MARGIN
    return canvas.svg(width, y)


class _Plan:
    """The drawing of one program."""

    def __init__(self, canvas: Canvas, title: str, report: ProgramReport, width: float) -> None:
        self._canvas = canvas
        self._title = title
        self._report = report
        self._works = report.works
        self._width = width
        self._left = _MARGIN + 58.0
        self._column = (width - self._left - _MARGIN) / max(1, len(self._works))

    def draw(self, y: float) -> float:
        """Draw the program below ``y``; return where it ends."""
        report, canvas = self._report, self._canvas
        head = (
            f"arena {amount(report.arena_bytes, 'B')}, at most "
            f"{amount(report.peak_bytes, 'B')} in use at one time"
        )
        room = self._width - 2 * _MARGIN
        canvas.text(_MARGIN, y + 12, fitting(self._title, room, 13), size=13, bold=True)
        canvas.text(_MARGIN, y + 29, fitting(head, room, 12), color="faint")
        y = self._legend(y + 36) + 10
        self._scale(y)
        for buffer in report.buffers:
            self._buffer(buffer, y)
        y = self._in_use(y + _ARENA + 8)
        return self._list(y)

    def _legend(self, y: float) -> float:
        entries = [("blue", "one value"), ("green", "values that follow each other in place")]
        entries.append(("grey", "scratch memory"))
        x = _MARGIN
        for color, text in entries:
            wide = 16 + text_width(text, 11) + 14
            if x > _MARGIN and x + wide > self._width - _MARGIN:
                x, y = _MARGIN, y + _LINE
            self._canvas.rect(x, y + 2, 10, 10, fill=color, stroke=f"{color}-line", radius=2)
            self._canvas.text(x + 16, y + 11, text, size=11, color="faint")
            x += wide
        return y + _LINE

    def _height(self, size: float) -> float:
        return size / max(1, self._report.arena_bytes) * _ARENA

    def _scale(self, y: float) -> None:
        right = self._width - _MARGIN
        self._canvas.rect(self._left, y, right - self._left, _ARENA, fill="panel")
        for mark in marks(self._report.arena_bytes, 5):
            at = y + _ARENA - self._height(mark)
            self._canvas.line(self._left, at, right, at, stroke="grid", width=1)
            text = amount(mark, "B") if mark else "0"
            self._canvas.text(self._left - 6, at + 4, text, size=11, color="faint", anchor="end")

    def _buffer(self, buffer: Buffer, y: float) -> None:
        x = self._left + buffer.first * self._column
        wide = (buffer.last - buffer.first + 1) * self._column
        high = self._height(buffer.size)
        top = y + _ARENA - self._height(buffer.offset) - high
        names = buffer.name.split(", ")
        color = "grey" if buffer.scratch else "green" if len(names) > 1 else "blue"
        when = f"work {buffer.first + 1} to {buffer.last + 1}"
        where = f"{amount(buffer.size, 'B')} at byte {buffer.offset}"
        with self._canvas.group(f"{buffer.name}\n{where}, {when}"):
            # What is too small to see is drawn as a hair line all the same.
            self._canvas.rect(
                x, top, wide, max(high, 0.75), fill=color, stroke=f"{color}-line", radius=1.5
            )
            label = fitting_name(names[-1], wide - 8, 10.5)
            if label and high >= 14:
                self._canvas.text(x + 4, top + min(high / 2 + 4, 13), label, size=10.5)

    def _in_use(self, y: float) -> float:
        """Draw below the arena how much of it is in use while each work runs."""
        count = len(self._works)
        used = [
            sum(b.size for b in self._report.buffers if b.first <= index <= b.last)
            for index in range(count)
        ]
        most = max([*used, 1])
        self._canvas.text(
            self._left - 6, y + _STRIP, "in use", size=11, color="faint", anchor="end"
        )
        for index, size in enumerate(used):
            high = size / most * _STRIP
            with self._canvas.group(f"work {index + 1}: {amount(size, 'B')} in use"):
                self._canvas.rect(
                    self._left + index * self._column + 0.5,
                    y + _STRIP - high,
                    max(self._column - 1, 0.5),
                    high,
                    fill="red" if size == most else "amber",
                    stroke="red-line" if size == most else "amber-line",
                )
        every = next(n for n in (1, 2, 5, 10, 20, 50, 100, 1000) if n * self._column >= 20)
        for index in range(0, count, every):
            middle = self._left + (index + 0.5) * self._column
            number = str(index + 1)
            self._canvas.text(
                middle, y + _STRIP + 14, number, size=10.5, color="faint", anchor="middle"
            )
        return y + _STRIP + 24

    def _list(self, y: float) -> float:
        """Draw the names of the work, in columns."""
        if len(self._works) > _LISTED:
            text = f"{len(self._works)} pieces of work: point at a box to see its values"
            self._canvas.text(_MARGIN, y + 10, fitting(text, self._width - 32, 11), size=11)
            return y + _LINE
        columns = max(1, int((self._width - 2 * _MARGIN) / 230))
        rows = -(-len(self._works) // columns)
        wide = (self._width - 2 * _MARGIN) / columns
        for index, work in enumerate(self._works):
            x = _MARGIN + index // rows * wide
            at = y + (index % rows + 1) * _LINE - 4
            self._canvas.text(x + 18, at, f"{index + 1}", size=11, color="faint", anchor="end")
            self._canvas.text(x + 24, at, fitting(_told(work), wide - 32, 11), size=11)
        return y + rows * _LINE


def _told(work: Work) -> str:
    return f"{work.name}: {work.types}" if work.fused and work.types != work.name else work.types
