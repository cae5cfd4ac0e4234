"""The threads of a supervisor: they write summaries, steps per second and checkpoints."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, final

from headrace_io import protos
from headrace_train.resumption.run_state import saved_with_run_state
from headrace_train.runners import LooperThread
from headrace_train.steps import global_step

if TYPE_CHECKING:
    from headrace_train.supervisor.supervisor import Supervisor

_log = logging.getLogger("headrace.train")


@final
class SummaryThread(LooperThread):
    """Computes the summaries every so many seconds, and writes them."""

    def __init__(self, supervisor: Supervisor, session: Any) -> None:
        """Make it for a session."""
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor = supervisor
        self._session = session

    def run_loop(self) -> None:
        """Write once."""
        supervisor = self._supervisor
        step = None
        if supervisor.global_step is None:
            summary = self._session.run(supervisor.summary_op)
        else:
            summary, step = self._session.run([supervisor.summary_op, supervisor.global_step])
        if supervisor.summary_writer is not None:
            supervisor.summary_writer.add_summary(summary, step)


@final
class StepCounterThread(LooperThread):
    """Measures steps per second, and writes them as a summary."""

    def __init__(self, supervisor: Supervisor, session: Any) -> None:
        """Make it for a session."""
        super().__init__(supervisor.coord, supervisor.save_summaries_secs)
        self._supervisor = supervisor
        self._session = session
        self._tag = f"{supervisor.global_step.op.name}/sec"
        self._last_time = 0.0
        self._last_step = 0

    def start_loop(self) -> None:
        """Count from here."""
        self._last_time = time.monotonic()
        self._last_step = global_step(self._session, self._supervisor.global_step)

    def run_loop(self) -> None:
        """Measure once."""
        step, now = global_step(self._session, self._supervisor.global_step), time.monotonic()
        seconds = now - self._last_time
        rate = (step - self._last_step) / seconds if seconds > 0 else float("inf")
        self._last_step, self._last_time = step, now
        summary = protos.Summary()
        summary.value.add(tag=self._tag, simple_value=rate)
        if self._supervisor.summary_writer is not None:
            self._supervisor.summary_writer.add_summary(summary, step)
        _log.info("%s: %g", self._tag, rate)


@final
class CheckpointThread(LooperThread):
    """Saves a checkpoint every so many seconds."""

    def __init__(self, supervisor: Supervisor, session: Any) -> None:
        """Make it for a session."""
        super().__init__(supervisor.coord, supervisor.save_model_secs)
        self._supervisor = supervisor
        self._session = session

    def run_loop(self) -> None:
        """Save once."""
        supervisor = self._supervisor
        _log.info("saving a checkpoint to %s", supervisor.save_path)
        step = supervisor.global_step
        saved_with_run_state(supervisor.saver, self._session, str(supervisor.save_path), step)
        if supervisor.summary_writer is not None and step is not None:
            supervisor.summary_writer.add_session_log(
                protos.SessionLog(status="CHECKPOINT", checkpoint_path=supervisor.save_path),
                global_step(self._session, step),
            )
