"""``client.timeline``: the statistics of a step as a trace for Chrome or Perfetto."""

from __future__ import annotations

import json
from typing import Any


class Timeline:
    """When each operation of a step ran, by device.

    The form is Chrome's Trace Event Format: "complete" events, one process for each device, one
    thread for what runs at a time.
    """

    def __init__(self, step_stats: Any, graph: Any = None) -> None:
        """Take the ``step_stats`` of ``RunMetadata``."""
        del graph
        self._step_stats = step_stats

    def generate_chrome_trace_format(
        self, show_dataflow: bool = True, show_memory: bool = False
    ) -> str:
        """Return the trace as JSON.

        Args:
            show_dataflow: Ignored: there are no arrows.
            show_memory: Ignored.

        Returns:
            An object with ``traceEvents``, times in microseconds.
        """
        del show_dataflow, show_memory
        events: list[dict[str, Any]] = []
        for process, device in enumerate(self._step_stats.dev_stats):
            events.append(_meta(process, "process_name", f"{device.device} Compute"))
            # When each lane is free again: operations that overlap stand in different ones.
            free: list[int] = []
            for node in sorted(device.node_stats, key=lambda node: node.all_start_micros):
                start = node.all_start_micros
                length = max(node.all_end_rel_micros, node.op_end_rel_micros, 0)
                lane = next((i for i, end in enumerate(free) if end <= start), len(free))
                free[lane : lane + 1] = [start + length]
                events.append(_event(process, lane, node, length))
        return json.dumps({"traceEvents": events}, indent=2)


def _meta(process: int, name: str, value: str) -> dict[str, Any]:
    return {"ph": "M", "pid": process, "name": name, "args": {"name": value}}


def _event(process: int, lane: int, node: Any, length: int) -> dict[str, Any]:
    # "name = Op(input, ...)" is what TensorFlow writes into labels.
    _, _, call = node.timeline_label.partition(" = ")
    return {
        "ph": "X",
        "cat": "Op",
        "name": call.partition("(")[0] or node.node_name,
        "pid": process,
        "tid": lane,
        "ts": node.all_start_micros,
        "dur": length,
        "args": {"name": node.node_name},
    }
