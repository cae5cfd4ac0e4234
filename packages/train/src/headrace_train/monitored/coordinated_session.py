"""A session with hooks and threads, all of which end together."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, final

import headrace as hr
from headrace import GraphKeys
from headrace.errors import AbortedError, UnavailableError
from headrace_train.hooks.session_run_hook import SessionRunHook
from headrace_train.monitored.hooked_session import HookedSession
from headrace_train.monitored.session_creators import SessionCreator
from headrace_train.runners import Coordinator, start_queue_runners

_log = logging.getLogger("headrace.train")

# What a session that is made anew may get over.
LOST = (AbortedError, UnavailableError)


@final
class CoordinatedSession:
    """One session of a monitored session, from its making until it is lost or closed.

    Attributes:
        session: The session, without hooks.
        coord: The coordinator of its threads.
    """

    def __init__(
        self,
        creator: SessionCreator,
        hooks: Sequence[SessionRunHook],
        stop_grace_period_secs: float,
    ) -> None:
        """Make a session, start the queue runners of the graph, and tell the hooks.

        Args:
            creator: What makes it.
            hooks: The hooks.
            stop_grace_period_secs: How many seconds threads may take to end.

        Raises:
            BaseException: what the creator or a hook raises; nothing is left open then.
        """
        self._grace = stop_grace_period_secs
        self.session: Any = creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=[])
        try:
            if hr.get_collection(GraphKeys.QUEUE_RUNNERS):
                start_queue_runners(sess=self.session, coord=self.coord)
            for hook in hooks:
                hook.after_create_session(self.session, self.coord)
        except BaseException:
            with suppress(Exception):
                self.close()
            raise
        self._hooked = HookedSession(self.session, hooks)

    def use(self, hooks: Sequence[SessionRunHook]) -> None:
        """Call other hooks from the next step on, which know of the session already."""
        self._hooked.hooks = hooks

    def stop_requested(self) -> bool:
        """Return whether the coordinator was asked to stop.

        Raises:
            BaseException: what a thread passed to it.
        """
        self.coord.raise_requested_exception()
        return self.coord.should_stop()

    def should_stop(self) -> bool:
        """Return whether the coordinator was asked to stop, or a hook requested it.

        Raises:
            BaseException: what a thread passed to the coordinator.
        """
        return self.stop_requested() or self._hooked.stopped

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Run a step with hooks.

        Raises:
            FailedPreconditionError: if a hook requested a stop before.
            AbortedError: or UnavailableError, in place of what was raised, where a thread ended
                with it: that is the cause, and a new session may get over it.
        """
        try:
            return self._hooked.run(fetches, feed_dict, options, run_metadata)
        except LOST:
            raise
        except Exception:
            try:
                self.coord.raise_requested_exception()
            except LOST:
                raise
            except Exception as error:
                _log.debug("a thread ended with %r besides", error)
            raise

    def close(self) -> None:
        """End the threads, and close the session.

        Raises:
            BaseException: what a thread passed to the coordinator.
        """
        self.coord.request_stop()
        try:
            self.coord.join(stop_grace_period_secs=self._grace, ignore_live_threads=True)
        finally:
            # What threads raised tells more than what closing does.
            with suppress(Exception):
                self.session.close()
