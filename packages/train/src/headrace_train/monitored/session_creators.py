"""Creators of the sessions of monitored sessions."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from typing import Any

import headrace as hr
from headrace import Session
from headrace_train.monitored.scaffold import Scaffold
from headrace_train.monitored.session_manager import SessionManager


class SessionCreator(ABC):
    """Makes the session of a monitored session, and another where that one is lost."""

    @abstractmethod
    def create_session(self) -> Any:
        """Make a session."""
        raise NotImplementedError(f"create_session is not implemented for {self}.")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions that are restored or initialized."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Choose how.

        Args:
            scaffold: The pieces that it needs; found or made if None.
            master: The target of sessions.
            config: Their settings.
            checkpoint_dir: The folder whose latest checkpoint to restore.
            checkpoint_filename_with_path: The checkpoint to restore, in place of a folder.
        """
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._scaffold = scaffold or Scaffold()
        self._session_manager: SessionManager | None = None
        self._master = master
        self._config = config

    def create_session(self) -> Session:
        """Make a session.

        Raises:
            FailedPreconditionError: if variables have no value then.
            CheckpointError: if the checkpoint cannot be restored.
        """
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _manager(self._scaffold)
        return self._session_manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )

    def take_over_session(self) -> Session:
        """Make the session of a worker that becomes the chief.

        The model stays as it is if it is ready, for others train it. Otherwise the chief was lost
        before it was, and the session is made as ``create_session`` makes it.

        Raises:
            FailedPreconditionError: if variables have no value then.
            CheckpointError: if the checkpoint cannot be restored.
        """
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _manager(self._scaffold)
        ready = self._session_manager.ready_session(self._master, self._config)
        return self.create_session() if ready is None else ready


class WorkerSessionCreator(SessionCreator):
    """Makes sessions of a model that the chief restores or initializes."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float | None = 30 * 60,
    ) -> None:
        """Choose how.

        Args:
            scaffold: The pieces that it needs; found or made if None.
            master: The target of sessions.
            config: Their settings.
            max_wait_secs: How many seconds to wait for the chief.
        """
        self._scaffold = scaffold or Scaffold()
        self._session_manager: SessionManager | None = None
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs

    def create_session(self) -> Session:
        """Make a session.

        Raises:
            DeadlineExceededError: if the model is not ready in time.
        """
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _manager(self._scaffold)
        return self._session_manager.wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )

    def stop_waiting(self) -> None:
        """Let ``create_session`` raise ``CancelledError`` where it waits for the model."""
        if self._session_manager is not None:
            self._session_manager.stop_waiting()


def _manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=hr.get_default_graph(),
    )
