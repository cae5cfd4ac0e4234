"""``ProfilerHook``: writes what a step does, and how long that takes, every so often."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

import headrace as hr
from headrace_train.checkpoint.files import replaced
from headrace_train.hooks.session_run_hook import (
    SessionRunArgs,
    SessionRunContext,
    SessionRunHook,
    SessionRunValues,
)
from headrace_train.hooks.timer import SecondOrStepTimer
from headrace_train.steps import global_step_read

_log = logging.getLogger("headrace.train")


class ProfilerHook(SessionRunHook):
    """Traces a step every so many steps or seconds.

    Each trace is a file ``timeline-<step>.json`` that chrome://tracing and ui.perfetto.dev show,
    and run metadata in the event file, which TensorBoard shows in the graph.
    """

    def __init__(
        self,
        save_steps: int | None = None,
        save_secs: float | None = None,
        output_dir: str | os.PathLike[str] = "",
        show_dataflow: bool = True,
        show_memory: bool = False,
    ) -> None:
        """Choose how often.

        Args:
            save_steps: Steps from one trace to the next.
            save_secs: Seconds from one to the next; one of both is given.
            output_dir: The folder; the current one if empty.
            show_dataflow: Changes nothing: labels name the inputs of each operation.
            show_memory: Changes nothing; ``session.explain`` tells what memory a step needs.

        Raises:
            AttributeValueError: if none or both of the intervals are given.
        """
        del show_dataflow, show_memory
        self._folder = Path(output_dir)
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._file_writer = hr.summary.FileWriterCache.get(output_dir)

    def begin(self) -> None:
        """Find the global step."""
        self._next_step: Any = None
        self._step = global_step_read("ProfilerHook")
        self._plain = SessionRunArgs(self._step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step, and for a trace where it is due."""
        del run_context
        self._request_trace = self._next_step is not None and self._timer.should_trigger_for_step(
            self._next_step
        )
        if not self._request_trace:
            return self._plain
        options = hr.RunOptions(trace_level=hr.RunOptions.FULL_TRACE)
        return SessionRunArgs(self._step, options=options)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Write the trace."""
        stale = run_values.results
        if self._next_step is None:
            # The first one is due when so many steps have passed.
            self._timer.update_last_triggered_step(stale)
        step = stale + 1
        if self._request_trace:
            step = run_context.session.run(self._step)
            self._timer.update_last_triggered_step(step)
            self._save(step, run_values.run_metadata)
        self._next_step = step + 1

    def _save(self, step: Any, metadata: Any) -> None:
        file = self._folder / f"timeline-{step}.json"
        _log.info("saving the timeline of step %s in %s", step, file)
        with replaced(file) as temporary:
            temporary.write_text(json.dumps(timeline(metadata.step_stats)))
        self._file_writer.add_run_metadata(metadata, f"step_{step}")


def timeline(step_stats: Any) -> dict[str, Any]:
    """Return what ran in a step in Chrome's format of traces.

    Args:
        step_stats: The ``step_stats`` of run metadata.
    """
    events: list[dict[str, Any]] = []
    for number, device in enumerate(step_stats.dev_stats):
        name = {"name": "process_name", "ph": "M", "pid": number, "args": {"name": device.device}}
        events.append(name)
        for node in device.node_stats:
            label = node.timeline_label
            _, _, kind = label.partition(" = ")
            events.append(
                {
                    "ph": "X",
                    "cat": "Op",
                    "name": kind.partition("(")[0] or node.node_name,
                    "pid": number,
                    "tid": node.thread_id,
                    "ts": node.all_start_micros,
                    "dur": node.all_end_rel_micros,
                    "args": {"name": node.node_name, "what": label},
                }
            )
    return {"traceEvents": events, "displayTimeUnit": "ms"}
