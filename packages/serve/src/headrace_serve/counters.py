"""Counters, and their text in the form that Prometheus and people read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Name -> (kind, what it counts).
_METRICS = {
    "requests": ("counter", "Requests answered, by path kind and status."),
    "request_seconds": ("counter", "Seconds from the head of a request to its answer, summed."),
    "steps": ("counter", "Steps started."),
    "step_requests": ("counter", "Requests in the steps started."),
    "step_rows": ("counter", "Rows in the steps started, of requests that may be joined."),
    "waiting": ("gauge", "Requests that wait for a step."),
    "in_flight": ("gauge", "Requests that are not answered yet."),
}
_PREFIX = "headrace_serve_"

Labels = tuple[tuple[str, str], ...]


class Counters:
    """Numbers by name and labels. All methods belong to one event loop."""

    def __init__(self) -> None:
        """Start with none."""
        self._values: dict[tuple[str, Labels], float] = {}

    def add(self, name: str, labels: Mapping[str, str], amount: float = 1) -> None:
        """Add to a number."""
        key = name, tuple(labels.items())
        self._values[key] = self._values.get(key, 0) + amount

    def text(self, gauges: Iterable[tuple[str, Mapping[str, str], float]] = ()) -> str:
        """Return all numbers, in Prometheus' text format.

        Args:
            gauges: Names, labels and values of what is not counted but looked at now.
        """
        values = dict(self._values)
        values.update({(name, tuple(labels.items())): value for name, labels, value in gauges})
        lines = []
        for name, (kind, doc) in _METRICS.items():
            full = _PREFIX + name + ("_total" if kind == "counter" else "")
            found = sorted((labels, value) for (n, labels), value in values.items() if n == name)
            lines += [f"# HELP {full} {doc}", f"# TYPE {full} {kind}"] if found else []
            lines += [f"{full}{_labels(labels)} {value:.12g}" for labels, value in found]
        return "".join(f"{line}\n" for line in lines)


def _labels(labels: Labels) -> str:
    shown = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{shown}}}" if shown else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
