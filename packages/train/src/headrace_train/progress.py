"""Progress of a long loop: a bar on a terminal, a line now and then in a log."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, Self, TextIO, final

from headrace.errors import told
from headrace.extend.arguments import real, whole

_ON_TERMINAL_S = 0.1
_IN_LOG_S = 10.0
_BAR_CELLS = 24
# Beyond it shares are no floats.
_MOST_STEPS = 1 << 63


@final
class Progress:
    """Shows how far a loop is, how fast it goes, when it will be done, and values such as the loss.

    On a terminal one line is redrawn ten times a second; elsewhere a line is written every ten
    seconds and at the end, so that logs stay readable. Of the ranks of a job only the chief
    shows it, unless asked for. A call of ``update`` costs well under a microsecond
    unless it draws, so that it can stand in the tightest loop.

    Example:
        >>> with Progress(1000, "training", enabled=False) as progress:
        ...     for step in range(1000):
        ...         progress.update(loss=1 / (step + 1))
        >>> progress.done
        1000
    """

    def __init__(
        self,
        total: int,
        label: str = "",
        *,
        stream: TextIO | None = None,
        enabled: bool | None = None,
        interval_s: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        begun: int = 0,
    ) -> None:
        """Start the clock.

        Args:
            total: The number of steps.
            label: What the line begins with.
            stream: Where to write; standard error if None.
            enabled: Whether to show anything; if None, on the chief only.
            interval_s: Least seconds between two lines; chosen by the kind of ``stream`` if None.
            clock: Returns the time in seconds.
            begun: How many of the steps were made before, by an earlier run.

        Raises:
            AttributeValueError: if ``total`` is negative, or no step of 64 bits.
            ArgumentTypeError: if a number is none.
        """
        self.total = whole(total, "the total of a progress", 0, _MOST_STEPS)
        self.done = self._begun = whole(begun, "begun", -_MOST_STEPS, _MOST_STEPS)
        self._label = f"{told(label)} " if label else ""
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._enabled = _is_chief() if enabled is None else enabled
        usual = _ON_TERMINAL_S if self._terminal else _IN_LOG_S
        self._interval_s = usual if interval_s is None else real(interval_s, "interval_s")
        self._clock = clock
        self._start = clock()
        self._due = self._start + self._interval_s if self._enabled else float("inf")
        self._values: dict[str, Any] = {}
        self._drawn = 0
        self._shown = -1
        self._closed = False

    def update(self, steps: int = 1, **values: Any) -> None:
        """Count steps.

        Args:
            steps: How many were made since the last call.
            **values: What to show beside the progress, by name; numbers or what prints well.
        """
        self.done += steps
        self._values = values
        now = self._clock()
        if now >= self._due:
            self._due = now + self._interval_s
            self._show(self.line(now))

    def is_due(self) -> bool:
        """Return whether the next ``update`` draws, for values that are costly to get."""
        return self._clock() >= self._due

    def line(self, now: float | None = None) -> str:
        """Return the text for the state at the time ``now``; the present if None."""
        elapsed = max((self._clock() if now is None else now) - self._start, 1e-9)
        made = self.done - self._begun
        rate = made / elapsed
        left = max(self.total - self.done, 0)
        share = min(self.done / self.total, 1.0) if self.total else 1.0
        filled = round(share * _BAR_CELLS)
        bar = f"[{'#' * filled}{'.' * (_BAR_CELLS - filled)}] " if self._terminal else ""
        parts = [f"{self._label}{bar}{self.done}/{self.total} ({share:.0%})"]
        if made:
            parts.append(_rate(rate))
            parts.append(f"{_duration(left / rate)} left" if left else f"in {_duration(elapsed)}")
        parts += [f"{name} {_value(value)}" for name, value in self._values.items()]
        return ", ".join(parts)

    def close(self) -> None:
        """Show the last state and end the line."""
        if self._closed or not self._enabled:
            return
        self._closed = True
        if self._terminal or self._shown != self.done:
            self._show(self.line())
        self._due = float("inf")
        if self._terminal:
            self._stream.write("\n")
            self._stream.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _show(self, line: str) -> None:
        self._shown = self.done
        if self._terminal:
            width = shutil.get_terminal_size().columns - 1
            line = line[:width]
            # Blanks cover what is left of a longer line.
            self._stream.write("\r" + line.ljust(min(self._drawn, width)))
            self._drawn = len(line)
        else:
            self._stream.write(line + "\n")
        self._stream.flush()


def _is_chief() -> bool:
    # lazy: what runs steps is imported when a program first makes a session
    from headrace.extend.runtime import is_chief

    return is_chief()


def _rate(rate: float) -> str:
    return f"{rate:,.0f} steps/s" if rate >= 10 else f"{rate:.2g} steps/s"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _value(value: Any) -> str:
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)
