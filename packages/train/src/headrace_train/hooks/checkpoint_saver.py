"""``CheckpointSaverHook``: saves checkpoints every so often, at the end, and on an error."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    FailedPreconditionError,
    HeadraceError,
    NumericsError,
)
from headrace.extend.arguments import items
from headrace.extend.runtime import RELAXED
from headrace_io import protos
from headrace_train.hooks.checkpoint_listener import CheckpointSaverListener
from headrace_train.hooks.nan_tensor import NanLossDuringTrainingError
from headrace_train.hooks.session_run_hook import (
    OwningHook,
    SessionRunArgs,
    SessionRunContext,
    SessionRunValues,
)
from headrace_train.hooks.timer import SecondOrStepTimer
from headrace_train.resumption.chief_lock import ChiefLock
from headrace_train.resumption.graph_file import write_graph_file
from headrace_train.resumption.run_state import saved_with_run_state
from headrace_train.saver.snapshot import KEY, MOST_SECS, ONE_MOMENT, PAUSES, one_moment
from headrace_train.steps import global_step_read

_log = logging.getLogger("headrace.train")

# How long a checkpoint waits for others that train, where it is saved because of an error.
_FAILED_SECS = 2.0
# Values that led to one of these are not worth going on from.
_SPOILT = (NanLossDuringTrainingError, NumericsError)


class CheckpointSaverHook(OwningHook):
    """Saves checkpoints at the start, every so many steps or seconds, and at the end.

    It also saves one where the loop ends with an error or a signal, unless the loss is NaN. With
    the variables it saves the positions of iterators and random streams, so that a program that is
    started again goes on as if it had not ended. Only one process at a time may save into a folder.
    """

    def __init__(
        self,
        checkpoint_dir: str | os.PathLike[str],
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Iterable[CheckpointSaverListener] | None = None,
        *,
        consistent: bool | None = None,
    ) -> None:
        """Choose where and how often.

        Args:
            checkpoint_dir: The folder, made where it is not there.
            save_secs: Seconds from one checkpoint to the next.
            save_steps: Steps from one to the next; one of both is given.
            saver: What saves; that of the scaffold, or else of the graph's collection ``SAVERS``,
                if None.
            checkpoint_basename: The name of the files, to which the step is added.
            scaffold: A scaffold whose saver to use.
            listeners: What is called before and after each checkpoint.
            consistent: Whether all that a checkpoint holds is of one moment, even while other
                threads or tasks train; their steps wait meanwhile. None does so where the gradients
                of replicas are applied together, or ``Config(consistency=...)`` bounds how stale
                updates may be.

        Raises:
            AttributeValueError: if saver and scaffold are both given, or not exactly one of
                ``save_secs`` and ``save_steps`` is.
        """
        if saver is not None and scaffold is not None:
            raise AttributeValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(os.fspath(checkpoint_dir), checkpoint_basename)  # noqa: PTH118 - TensorFlow's form of the path
        self._scaffold = scaffold
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = items(listeners, "listeners") if listeners else []
        self._consistent = consistent
        self._lock: ChiefLock | None = None

    def begin(self) -> None:
        """Find the global step, and open the event file.

        Raises:
            FailedPreconditionError: if there is no global step, or another process saves into the
                folder.
        """
        self._step = global_step_read("CheckpointSaverHook")
        self._request = SessionRunArgs(self._step)
        if self._lock is None:
            self._lock = ChiefLock(Path(self._checkpoint_dir), hr.get_default_graph())
        self._summary_writer = hr.summary.FileWriterCache.get(self._checkpoint_dir)
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Write the graph, and the first checkpoint."""
        del coord
        step = session.run(self._step)
        graph = hr.get_default_graph()
        write_graph_file(graph, Path(self._checkpoint_dir))
        self._summary_writer.add_graph(graph)
        self._summary_writer.add_meta_graph(_meta_graph(graph))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Ask for the global step."""
        del run_context
        return self._request

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Save, where it is due."""
        if not self._timer.should_trigger_for_step(run_values.results + 1):
            return
        # The step may have read it before or after it was changed.
        step = run_context.session.run(self._step)
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        """Save, unless that was done at this step."""
        last_step = session.run(self._step)
        if last_step != self._timer.last_triggered_step():
            self._save(session, last_step)
        for listener in self._listeners:
            listener.end(session, last_step)

    def failed(self, session: Any, error: BaseException) -> None:
        """Save, unless that was done at this step or the values are spoilt."""
        if isinstance(error, _SPOILT):
            return
        step = session.run(self._step)
        if step != self._timer.last_triggered_step():
            _log.info("saving a checkpoint at step %s because of %r", step, error)
            self._timer.update_last_triggered_step(step)
            self._save(session, step, _FAILED_SECS)

    def release(self) -> None:
        """Let others save into the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _save(self, session: Any, step: Any, wait_secs: float = MOST_SECS) -> bool:
        """Save a checkpoint; return whether a listener asks for an end."""
        if not self._of_one_moment(session):
            return self._save_as_it_is(session, step)
        with contextlib.ExitStack() as stack:
            notes = {KEY: ONE_MOMENT}
            try:
                stack.enter_context(one_moment(session, wait_secs))
                # Others may have trained since it was read.
                step = session.run(self._step)
            except HeadraceError as error:
                _log.warning("the checkpoint is saved while others train: %s", error)
                notes = {}
            return self._save_as_it_is(session, step, notes)

    def _of_one_moment(self, session: Any) -> bool:
        if self._consistent is not None:
            return self._consistent
        config = getattr(session, "config", None)
        together = session.graph.get_collection(PAUSES)
        return bool(together) or getattr(config, "consistency", RELAXED) != RELAXED

    def _save_as_it_is(
        self, session: Any, step: Any, notes: Mapping[str, Any] | None = None
    ) -> bool:
        _log.info("saving a checkpoint for step %s into %s", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)
        saved_with_run_state(self._get_saver(), session, self._save_path, step, notes)
        self._summary_writer.add_session_log(
            protos.SessionLog(status="CHECKPOINT", checkpoint_path=self._save_path),
            step,
        )
        asked = [listener for listener in self._listeners if listener.after_save(session, step)]
        for listener in asked:
            _log.info("%r requested that the training stops", listener)
        return bool(asked)

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = hr.get_collection(hr.GraphKeys.SAVERS)
        if len(savers) != 1:
            raise FailedPreconditionError(
                f"expected one saver in the collection {hr.GraphKeys.SAVERS!r}, found "
                f"{len(savers)}; pass a saver or a scaffold to CheckpointSaverHook"
            )
        self._saver = savers[0]
        return self._saver


def _meta_graph(graph: hr.Graph) -> Any:
    # lazy: protobuf is imported when a hook writes
    from headrace_io.meta_graph import meta_graph_def_of

    return meta_graph_def_of(graph)
