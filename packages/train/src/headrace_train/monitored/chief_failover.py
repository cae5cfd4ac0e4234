"""Chief failover: the session of a worker that takes the place of a lost chief."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, final

from headrace.errors import CancelledError
from headrace.extend.runtime import is_chief, outlives_tasks, watch_chief
from headrace_train.hooks.session_run_hook import SessionRunHook
from headrace_train.monitored.session_creators import (
    ChiefSessionCreator,
    SessionCreator,
    WorkerSessionCreator,
)


def may_become_chief() -> bool:
    """Whether this process is a worker of a cluster that goes on where its chief is lost."""
    return outlives_tasks() and not is_chief()


@final
class SuccessorSessionCreator(SessionCreator):
    """Makes sessions as a worker does, and as the chief once this process is the chief.

    Attributes:
        chief_hooks: Returns the hooks that the chief has besides.
    """

    def __init__(
        self,
        worker: WorkerSessionCreator,
        chief: ChiefSessionCreator,
        chief_hooks: Callable[[], Sequence[SessionRunHook]],
    ) -> None:
        """Join both.

        Args:
            worker: Makes the sessions of a worker.
            chief: Makes those of the chief, with the same scaffold.
            chief_hooks: Returns the hooks that the chief has besides; called at most once.
        """
        self._worker = worker
        self._chief = chief
        self.chief_hooks = chief_hooks

    def create_session(self) -> Any:
        """Make a session; where the chief is lost before the model is ready, prepare that.

        Raises:
            DeadlineExceededError: if the model is not ready in time.
            CheckpointError: if a checkpoint cannot be restored.
        """
        if not is_chief():
            try:
                return self._worker.create_session()
            except CancelledError:
                if not is_chief():
                    raise
        return self._chief.take_over_session()

    def stop_waiting(self) -> None:
        """Let whoever waits for the chief do so no longer."""
        self._worker.stop_waiting()


@final
class Successor:
    """Lets a monitored session become the chief's, once, when this process is the chief.

    The session may be waiting in a step for what the chief was to do, so a thread does it.
    """

    def __init__(
        self,
        creator: SuccessorSessionCreator,
        become_chief: Callable[[], bool],
    ) -> None:
        """Begin to watch.

        Args:
            creator: What makes the session.
            become_chief: Makes the session the chief's; returns whether there was one.
        """
        self._creator = creator
        self._become_chief = become_chief
        self._lock = threading.Lock()
        self._done = False
        watch_chief(self._told)

    def _told(self) -> None:
        threading.Thread(target=self._take_over, name="headrace-chief", daemon=True).start()

    def _take_over(self) -> None:
        self._creator.stop_waiting()
        self.look()

    def look(self) -> None:
        """Become the chief if it is time, and the session is there."""
        if self._done or not is_chief():
            return
        with self._lock:
            if not self._done:
                self._done = self._become_chief()

    def close(self, *, look: bool) -> None:
        """Watch no longer, when what has begun is done.

        Args:
            look: Whether to become the chief before, if it is time: it saves at the end.
        """
        if look:
            self.look()
        with self._lock:
            self._done = True
