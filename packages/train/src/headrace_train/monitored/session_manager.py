"""``SessionManager``: makes sessions whose variables have values."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

import headrace as hr
from headrace import Graph, Session
from headrace.errors import (
    AttributeValueError,
    CancelledError,
    DeadlineExceededError,
    FailedPreconditionError,
    OpError,
    UninitializedError,
    told,
)
from headrace_train.checkpoint import get_checkpoint_state, latest_checkpoint
from headrace_train.resumption.event import ready_event
from headrace_train.resumption.run_state import restore_run_state

_log = logging.getLogger("headrace.train")


class SessionManager:
    """Makes sessions that are ready to train: restored, initialized, or waited for."""

    def __init__(
        self,
        local_init_op: Any = None,
        ready_op: Any = None,
        ready_for_local_init_op: Any = None,
        graph: Graph | None = None,
        recovery_wait_secs: float = 30,
        local_init_run_options: Any = None,
    ) -> None:
        """Choose what sessions need.

        Args:
            local_init_op: Run in each session before it is used; None for nothing.
            ready_op: [n], string: yields the names of what has no value. None if all is ready.
            ready_for_local_init_op: Likewise for what ``local_init_op`` needs.
            graph: The graph; the default graph if None.
            recovery_wait_secs: Seconds between two looks at a checkpoint folder, or at a model that
                another process initializes; where that is a chief of a monitored session, which
                tells when it has done so, nobody waits so long.
            local_init_run_options: With which ``hr.RunOptions`` to run ``local_init_op``.

        Raises:
            AttributeValueError: if there is a ``ready_for_local_init_op`` for no
                ``local_init_op``.
        """
        if ready_for_local_init_op is not None and local_init_op is None:
            raise AttributeValueError(
                "If you pass a ready_for_local_init_op you must also pass a local_init_op , "
                f"ready_for_local_init_op [{told(ready_for_local_init_op)}]"
            )
        self._local_init_op = local_init_op
        self._ready_op = ready_op
        self._ready_for_local_init_op = ready_for_local_init_op
        self._graph = graph if graph is not None else hr.get_default_graph()
        self._recovery_wait_secs = recovery_wait_secs
        self._local_init_run_options = local_init_run_options
        # The session that waits for the model, and whether none should.
        self._waiting: Session | None = None
        self._stopped = False

    def prepare_session(
        self,
        master: str,
        init_op: Any = None,
        saver: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
        init_feed_dict: Mapping[Any, Any] | None = None,
        init_fn: Callable[[Session], Any] | None = None,
    ) -> Session:
        """Make a session with the values of a checkpoint, or else with initial ones.

        Args:
            master: The target of the session.
            init_op: Initializes the variables where there is no checkpoint.
            saver: Restores them.
            checkpoint_dir: The folder whose latest sound checkpoint to restore.
            checkpoint_filename_with_path: The checkpoint to restore, in place of a folder.
            wait_for_checkpoint: Whether to wait for the first checkpoint of the folder.
            max_wait_secs: How many seconds to wait for it.
            config: The settings of the session.
            init_feed_dict: What to feed for ``init_op``.
            init_fn: Called with the session after ``init_op``.

        Returns:
            The session.

        Raises:
            FailedPreconditionError: if variables have no value after all that.
            AttributeValueError: if a folder and a checkpoint are both given.
            CheckpointError: if a checkpoint cannot be restored.
        """
        session, restored = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        try:
            if restored is None:
                if init_op is None and init_fn is None and self._local_init_op is None:
                    raise FailedPreconditionError(
                        "Model is not initialized and no init_op or init_fn or local_init_op was "
                        "given"
                    )
                if init_op is not None:
                    session.run(init_op, feed_dict=init_feed_dict)
                if init_fn is not None:
                    init_fn(session)
            what = f"Init op: {_name(init_op)}, init fn: {init_fn}"
            reason = self._initialize_local(session)
            if reason is not None:
                raise FailedPreconditionError(
                    f"Init operations did not make model ready for local_init.  {what}, error: "
                    f"{reason}"
                )
            reason = not_ready(self._ready_op, session)
            if reason is not None:
                raise FailedPreconditionError(
                    f"Init operations did not make model ready.  {what}, local_init_op: "
                    f"{_name(self._local_init_op)}, error: {reason}"
                )
            if restored is not None:
                restore_run_state(session, restored)
            self._tell(session)
        except BaseException:
            session.close()
            raise
        return session

    def recover_session(
        self,
        master: str,
        saver: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        config: Any = None,
    ) -> tuple[Session, bool]:
        """Make a session, with the values of a checkpoint if there is one.

        Args:
            master: The target of the session.
            saver: Restores the variables.
            checkpoint_dir: The folder whose latest sound checkpoint to restore.
            checkpoint_filename_with_path: The checkpoint to restore, in place of a folder.
            wait_for_checkpoint: Whether to wait for the first checkpoint of the folder.
            max_wait_secs: How many seconds to wait for it.
            config: The settings of the session.

        Returns:
            The session, and whether it is restored and ready.

        Raises:
            AttributeValueError: if a folder and a checkpoint are both given.
            CheckpointError: if a checkpoint cannot be restored.
        """
        session, restored = self._restored(
            master,
            saver,
            checkpoint_dir,
            checkpoint_filename_with_path,
            wait_for_checkpoint,
            max_wait_secs,
            config,
        )
        try:
            reason = self._initialize_local(session)
            if restored is None:
                return session, False
            if reason is None:
                reason = not_ready(self._ready_op, session)
            if reason is not None:
                _log.info("restoring the model from %s did not make it ready: %s", restored, reason)
                return session, False
            restore_run_state(session, restored)
            self._tell(session)
        except BaseException:
            session.close()
            raise
        return session, True

    def wait_for_session(
        self, master: str, config: Any = None, max_wait_secs: float | None = math.inf
    ) -> Session:
        """Make a session when another process has initialized the model.

        Args:
            master: The target of the session.
            config: Its settings.
            max_wait_secs: How many seconds to wait; None for any time.

        Returns:
            The session.

        Raises:
            DeadlineExceededError: if the model is not ready in time.
            CancelledError: if it is not to wait any longer.
        """
        most = math.inf if max_wait_secs is None else max_wait_secs
        until = time.monotonic() + most
        while True:
            session = self._waiting = Session(master, graph=self._graph, config=config)
            event = ready_event(self._graph)
            try:
                if self._stopped:
                    raise CancelledError("the chief is not waited for any longer")
                told = 0 if event is None else event.told(session)
                reason = self._initialize_local(session)
                if reason is None:
                    reason = not_ready(self._ready_op, session)
                if reason is None:
                    return session
                left = until - time.monotonic()
                if left <= (self._recovery_wait_secs if event is None else 0):
                    raise DeadlineExceededError(
                        f"Session was not ready after waiting {most:g} secs: {reason}"
                    )
                _log.info("waiting for the model to be ready: %s", reason)
                if event is not None:
                    # Who prepared it otherwise does not tell, so that it is to be looked at again.
                    event.await_next(session, told, min(self._recovery_wait_secs, left))
            except BaseException as error:
                session.close()
                if self._stopped and isinstance(error, OpError):
                    # What was cancelled fails in one way or another.
                    raise CancelledError("the chief is not waited for any longer") from error
                raise
            finally:
                self._waiting = None
            with suppress(Exception):
                session.close()
            if event is None:
                time.sleep(self._recovery_wait_secs)

    def stop_waiting(self) -> None:
        """Let ``wait_for_session`` raise ``CancelledError``, now and later."""
        self._stopped = True
        waiting = self._waiting
        if waiting is not None:
            with suppress(Exception):
                waiting.close()

    def ready_session(self, master: str, config: Any = None) -> Session | None:
        """Make a session of a model that is ready; None if it is not.

        Args:
            master: The target of the session.
            config: Its settings.
        """
        session = Session(master, graph=self._graph, config=config)
        try:
            reason = self._initialize_local(session) or not_ready(self._ready_op, session)
            if reason is None:
                # Who prepared it may have been lost before it told of that.
                self._tell(session)
                return session
        except BaseException:
            session.close()
            raise
        session.close()
        return None

    def _tell(self, session: Session) -> None:
        """Tell whoever waits for the model that it is ready."""
        event = ready_event(self._graph)
        if event is not None:
            session.run(event.signal)

    def _restored(
        self,
        master: str,
        saver: Any,
        checkpoint_dir: Any,
        checkpoint_filename_with_path: Any,
        wait_for_checkpoint: bool,
        max_wait_secs: float,
        config: Any,
    ) -> tuple[Session, str | None]:
        """Return a new session, and the checkpoint that it was restored from, if any."""
        if checkpoint_dir and checkpoint_filename_with_path:
            raise AttributeValueError(
                "Can not provide both checkpoint_dir and checkpoint_filename_with_path."
            )
        session = Session(master, graph=self._graph, config=config)
        if not saver or not (checkpoint_dir or checkpoint_filename_with_path):
            return session, None
        try:
            path = checkpoint_filename_with_path
            if not path:
                path = self._awaited(checkpoint_dir, max_wait_secs if wait_for_checkpoint else 0)
            if path is not None:
                saver.restore(session, path)
            if checkpoint_dir and path is not None:
                state = get_checkpoint_state(checkpoint_dir)
                if state is not None:
                    saver.recover_last_checkpoints(state.all_model_checkpoint_paths)
        except BaseException:
            session.close()
            raise
        return session, None if path is None else os.fspath(path)

    def _awaited(self, folder: Any, seconds: float) -> str | None:
        """Return the latest checkpoint of a folder, waiting for the first one for a while."""
        waited = 0.0
        while (path := latest_checkpoint(folder)) is None and waited < seconds:
            _log.info("waiting for a checkpoint in %s", folder)
            time.sleep(self._recovery_wait_secs)
            waited += self._recovery_wait_secs
        return path

    def _initialize_local(self, session: Session) -> str | None:
        """Run ``local_init_op`` if the model is ready for it; else return why not."""
        if self._local_init_op is None:
            return None
        reason = not_ready(self._ready_for_local_init_op, session)
        if reason is None:
            session.run(self._local_init_op, options=self._local_init_run_options)
        return reason


def not_ready(op: Any, session: Session) -> str | None:
    """Return why a model is not ready, None if it is."""
    if op is None:
        return None
    try:
        found = session.run(op)
    except UninitializedError as error:
        return str(error)
    # An operation yields nothing, and old programs a number.
    if found is None or found.dtype == np.int32 or not found.size:
        return None
    names = ", ".join(name.decode() for name in np.ravel(found))
    return f"Variables not initialized: {names}"


def _name(item: Any) -> str:
    return "None" if item is None else str(getattr(item, "name", f"<no name for {type(item)}>"))
