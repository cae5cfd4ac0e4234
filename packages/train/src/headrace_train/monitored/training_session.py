"""``MonitoredTrainingSession``: a monitored session with the usual hooks of training."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from headrace.extend.arguments import items
from headrace_train.checkpoint import get_checkpoint_state
from headrace_train.hooks.checkpoint_saver import CheckpointSaverHook
from headrace_train.hooks.session_run_hook import SessionRunHook
from headrace_train.hooks.step_counter import StepCounterHook
from headrace_train.hooks.summary_saver import SummarySaverHook
from headrace_train.monitored.chief_failover import SuccessorSessionCreator, may_become_chief
from headrace_train.monitored.monitored_session import MonitoredSession
from headrace_train.monitored.scaffold import Scaffold
from headrace_train.monitored.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)
from headrace_train.resumption.chief_lock import await_free

_log = logging.getLogger("headrace.train")


class _UseDefault:
    """What stands for an argument that is not given."""

    def __repr__(self) -> str:
        return "USE_DEFAULT"


USE_DEFAULT: Final = _UseDefault()


def MonitoredTrainingSession(  # noqa: N802 - TensorFlow's name
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | os.PathLike[str] | None = None,
    scaffold: Scaffold | None = None,
    hooks: Iterable[SessionRunHook] | None = None,
    chief_only_hooks: Iterable[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float | None = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | os.PathLike[str] | None = None,
    *,
    consistent: bool | None = None,
) -> MonitoredSession:
    """Return a monitored session that saves checkpoints and summaries, and goes on from them.

    The chief restores the latest checkpoint of the folder, or initializes the variables; workers
    wait for that. The chief saves every so often, at the end, on SIGTERM and on an error, with the
    variables also the positions of iterators and random streams: the same program, started again,
    goes on where it was.

    In a cluster that goes on without a lost chief, the worker that takes its place goes on with
    what it trained, and saves and summarizes from then on: give all processes the same arguments.

    Args:
        master: The target of the session.
        is_chief: Whether this process is the chief.
        checkpoint_dir: The folder of checkpoints; none are saved or restored if None.
        scaffold: The pieces that the session needs; found or made if None.
        hooks: Hooks of all processes.
        chief_only_hooks: Hooks of the chief, which are called before all others; those of a worker
            begin when it becomes the chief.
        save_checkpoint_secs: Seconds from one checkpoint to the next; 600 if no interval is given.
        save_summaries_steps: Steps from one summary to the next; 100 if no interval is given.
        save_summaries_secs: Seconds from one summary to the next.
        config: The settings of the session.
        stop_grace_period_secs: How many seconds threads may take to end.
        log_step_count_steps: Steps from one measurement of steps per second to the next; None or 0
            for none.
        max_wait_secs: How many seconds a worker waits for the chief.
        save_checkpoint_steps: Steps from one checkpoint to the next. None or 0 for both intervals
            saves none.
        summary_dir: The folder of summaries; ``checkpoint_dir`` if None.
        consistent: Whether checkpoints are of one moment, as for ``CheckpointSaverHook``.

    Returns:
        The session.

    Raises:
        FailedPreconditionError: if there is no global step, or another process saves into the
            folder.
        BaseException: what a hook, or the making of the session, raises.

    Example:
        ::

            with hr.train.MonitoredTrainingSession(checkpoint_dir="run") as session:
                while not session.should_stop():
                    session.run(train)
    """
    summary_steps, summary_secs = _intervals(save_summaries_steps, save_summaries_secs, (100, None))
    steps, secs = _intervals(save_checkpoint_steps, save_checkpoint_secs, (None, 600))
    scaffold = scaffold or Scaffold()
    summary_dir = summary_dir or checkpoint_dir

    def chief_hooks() -> list[SessionRunHook]:
        made = items(chief_only_hooks, "chief_only_hooks") if chief_only_hooks else []
        if summary_dir and _given(log_step_count_steps):
            made.append(StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps))
        if summary_dir and (_given(summary_steps) or _given(summary_secs)):
            made.append(
                SummarySaverHook(
                    scaffold=scaffold,
                    save_steps=summary_steps,
                    save_secs=summary_secs,
                    output_dir=summary_dir,
                )
            )
        if checkpoint_dir and (_given(secs) or _given(steps)):
            made.append(
                CheckpointSaverHook(
                    checkpoint_dir,
                    save_steps=steps,
                    save_secs=secs,
                    scaffold=scaffold,
                    consistent=consistent,
                )
            )
        return made

    def succeeding_hooks() -> list[SessionRunHook]:
        if checkpoint_dir is None:
            _log.warning("this process is the chief now, and saves nothing: no checkpoint_dir")
        else:
            await_free(Path(checkpoint_dir))
            state = get_checkpoint_state(os.fspath(checkpoint_dir))
            if state is not None and hasattr(scaffold.saver, "recover_last_checkpoints"):
                # So that no more are kept than the first chief would have kept.
                scaffold.saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        return chief_hooks()

    used = items(hooks or (), "hooks")
    chief = ChiefSessionCreator(
        scaffold=scaffold, checkpoint_dir=checkpoint_dir, master=master, config=config
    )
    creator: SessionCreator = chief
    if is_chief:
        used = [*chief_hooks(), *used]
    else:
        worker = WorkerSessionCreator(
            scaffold=scaffold, master=master, config=config, max_wait_secs=max_wait_secs
        )
        creator = worker
        if may_become_chief():
            creator = SuccessorSessionCreator(worker, chief, succeeding_hooks)
    return MonitoredSession(
        session_creator=creator, hooks=used, stop_grace_period_secs=stop_grace_period_secs
    )


def _intervals(steps: Any, secs: Any, usual: tuple[Any, Any]) -> tuple[Any, Any]:
    """Return steps and seconds, the usual ones if neither is given."""
    if steps is USE_DEFAULT and secs is USE_DEFAULT:
        return usual
    return (None if steps is USE_DEFAULT else steps), (None if secs is USE_DEFAULT else secs)


def _given(interval: Any) -> bool:
    return interval is not None and interval > 0
