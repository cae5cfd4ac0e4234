"""``MonitoredSession`` and ``SingularMonitoredSession``: sessions that call hooks."""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, final

import headrace as hr
from headrace import Graph
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    FailedPreconditionError,
    OutOfRangeError,
    TaskLostError,
    shown,
)
from headrace.extend.arguments import items
from headrace.extend.graphs import unfinalize
from headrace_train.hooks.session_run_hook import OwningHook, SessionRunHook
from headrace_train.monitored.chief_failover import Successor, SuccessorSessionCreator
from headrace_train.monitored.coordinated_session import LOST, CoordinatedSession
from headrace_train.monitored.scaffold import Scaffold
from headrace_train.monitored.session_creators import ChiefSessionCreator, SessionCreator
from headrace_train.resumption.termination import Termination

_log = logging.getLogger("headrace.train")


def _check_hook(hook: Any) -> None:
    if isinstance(hook, type) or not callable(getattr(hook, "begin", None)):
        name = getattr(hook, "__name__", None)
        got = shown(hook) if name is None else f"the {type(hook).__name__} {shown(name)}"
        raise ArgumentTypeError(
            f"hooks must be a list of hr.train.SessionRunHook, got {got} in it; a function becomes "
            "one as a method of a subclass, such as after_run"
        )


@final
class StepContext:
    """What a step function gets: the session, with hooks and without."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        """Join both.

        Args:
            session: The session, without hooks.
            run_with_hooks_fn: Runs a step with hooks.
        """
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    @property
    def session(self) -> Any:
        """The session, without hooks: steps run by it call none."""
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Run a step with hooks; arguments as for ``Session.run``."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """End the loop.

        Raises:
            StopIteration: always; the ``with`` block of the monitored session takes it for the end.
        """
        raise StopIteration("step_fn has requested the iterations to stop.")


class _MonitoredSession:
    """A session with hooks, from ``begin`` of the first to the end of the last."""

    StepContext = StepContext
    # Programs that start the runners of its graph besides do not start them twice.
    _starts_queue_runners = True

    def __init__(
        self,
        session_creator: SessionCreator | None,
        hooks: Iterable[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float = 120,
    ) -> None:
        self._graph = hr.get_default_graph()
        self._graph_was_finalized = self._graph.finalized
        self._hooks = items(hooks, "hooks") if hooks else []
        for hook in self._hooks:
            _check_hook(hook)
        self._should_recover = should_recover
        self._grace = stop_grace_period_secs
        self._current: CoordinatedSession | None = None
        self._closed = False
        self._termination: Termination | None = None
        self._creator = session_creator or ChiefSessionCreator()
        self._successor: Successor | None = None
        try:
            for hook in self._hooks:
                hook.begin()
            if isinstance(self._creator, SuccessorSessionCreator):
                become_chief = functools.partial(self._become_chief, self._creator)
                self._successor = Successor(self._creator, become_chief)
            self._current = self._made()
            if self._successor is not None:
                self._successor.look()
            self._listen()
        except BaseException:
            self._release()
            raise

    @property
    def graph(self) -> Graph | None:
        """The graph, None once the session is closed."""
        session = self._tf_sess()
        return None if session is None else session.graph

    def run(
        self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None
    ) -> Any:
        """Run a step with the hooks.

        Args:
            fetches: As for ``Session.run``.
            feed_dict: As for ``Session.run``.
            options: As for ``Session.run``.
            run_metadata: As for ``Session.run``.

        Returns:
            What was fetched.

        Raises:
            FailedPreconditionError: if a hook requested a stop before, two feed the same tensor,
                or the session is closed.
            SystemExit: if the process was asked to end by SIGTERM and a hook saves checkpoints.
            BaseException: what the step, or a hook, raises.
        """
        if self._termination is not None and self._termination.requested:
            self._termination.check()
        if self._successor is not None:
            self._successor.look()
            self._listen()
        while True:
            current = self._current or self._anew()
            try:
                return current.run(fetches, feed_dict, options, run_metadata)
            except LOST as error:
                self._lose(error)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Call a function that runs steps with hooks and without.

        Args:
            step_fn: A function of one argument ``step_context``, a ``StepContext``; or a method.

        Returns:
            What it returns.

        Raises:
            AttributeValueError: if it takes other arguments.
            StopIteration: if it calls ``step_context.request_stop()``.
        """
        _check_step_fn(step_fn)
        if self._termination is not None:
            self._termination.check()
        while True:
            current = self._current or self._anew()
            try:
                return step_fn(StepContext(current.session, current.run))
            except LOST as error:
                self._lose(error)

    def should_stop(self) -> bool:
        """Return whether the loop should end.

        True where a hook or a thread asked for it, and once the session is closed.
        """
        if self._closed or self._current is None:
            return True
        if not self._should_recover:
            return self._current.should_stop()
        try:
            if self._current.stop_requested():
                return True
        except LOST as error:
            self._lose(error)
            self._anew()
        except Exception:
            # The next step, or the end of the session, raises it.
            return True
        assert self._current is not None
        return self._current.should_stop()

    def close(self) -> None:
        """Call ``end`` of the hooks, end the threads, and close the session.

        Raises:
            FailedPreconditionError: if it is closed.
            BaseException: what a hook, or a thread, raises.
        """
        self._close(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        ended = exception_value is None or isinstance(
            exception_value, OutOfRangeError | StopIteration
        )
        self._close(None if ended else exception_value)
        return ended

    def _made(self) -> CoordinatedSession:
        """Return a new session, made again where the first is lost at once."""
        while True:
            try:
                return CoordinatedSession(self._creator, self._hooks, self._grace)
            except LOST as error:
                if not self._should_recover or isinstance(error, TaskLostError):
                    raise
                _log.info("a session was lost while it was made, and is made again: %s", error)

    def _anew(self) -> CoordinatedSession:
        if self._closed:
            raise FailedPreconditionError("the session is closed; make another one")
        self._current = self._made()
        if self._successor is not None:
            self._successor.look()
        return self._current

    def _listen(self) -> None:
        """Take note of SIGTERM, where a hook has something to save."""
        if self._termination is None and any(isinstance(h, OwningHook) for h in self._hooks):
            self._termination = Termination()

    def _become_chief(self, creator: SuccessorSessionCreator) -> bool:
        """Do what the chief does from now on; False where there is no session to do it in."""
        current = self._current
        if current is None or self._closed:
            return False
        try:
            hooks = creator.chief_hooks()
            with self._graph.as_default(), _open_to_changes(self._graph):
                # Others may wait for these.
                for hook in self._hooks:
                    hook.become_chief(current.session, current.coord)
                for hook in hooks:
                    hook.begin()
            self._hooks = [*hooks, *self._hooks]
            for hook in hooks:
                hook.after_create_session(current.session, current.coord)
            current.use(self._hooks)
        except BaseException as error:
            # The next step, or the end of the session, raises it.
            current.coord.request_stop(error)
        return True

    def _lose(self, error: BaseException) -> None:
        """Close a session that is lost; raise what happened where no other should be made."""
        if not self._should_recover or isinstance(error, TaskLostError):
            # A task that is lost does not come back in this job.
            raise error
        _log.info("the session is lost, and another one is made: %s", error)
        current, self._current = self._current, None
        if current is not None:
            try:
                current.close()
            except LOST as reason:
                _log.warning("the lost session could not be closed: %s", reason)

    def _close(self, error: BaseException | None) -> None:
        """End everything; ``error`` is that of the program, None where all is well."""
        if self._successor is not None:
            self._successor.close(look=error is None)
        session = self._tf_sess()
        try:
            try:
                if error is None:
                    for hook in self._hooks:
                        hook.end(session)
                else:
                    self._tell(session, error)
            except BaseException as reason:
                self._tell(session, reason)
                raise
        finally:
            closed, self._closed = self._closed, True
            current, self._current = self._current, None
            try:
                if closed:
                    raise FailedPreconditionError("Session is already closed.")
                if current is not None:
                    try:
                        current.close()
                    except LOST as reason:
                        if not self._should_recover:
                            raise
                        _log.warning("the session could not be closed: %s", reason)
            finally:
                self._release()
        if error is None and self._termination is not None:
            self._termination.check()

    def _tell(self, session: Any, error: BaseException) -> None:
        """Let hooks save what can be saved."""
        for hook in self._hooks:
            if isinstance(hook, OwningHook) and session is not None:
                try:
                    hook.failed(session, error)
                except Exception as reason:
                    _log.warning("%r could not save its state after %r: %s", hook, error, reason)

    def _release(self) -> None:
        if self._termination is not None:
            self._termination.close()
        for hook in self._hooks:
            if isinstance(hook, OwningHook):
                hook.release()
        if not self._graph_was_finalized:
            unfinalize(self._graph)

    def _is_closed(self) -> bool:
        return self._tf_sess() is None

    def _tf_sess(self) -> Any:
        """Return the session without hooks, as programs written for TensorFlow ask for it."""
        return None if self._current is None else self._current.session


@final
class MonitoredSession(_MonitoredSession):
    """A session that calls hooks, starts queue runners, and is made anew where it is lost.

    When it is made, the hooks begin, the graph is finalized, variables are restored or initialized,
    and the threads of queue runners start. Where a step raises ``AbortedError`` or
    ``UnavailableError``, another session is made, which goes on from the latest checkpoint, and the
    step is run again. At the end of the ``with`` block the hooks end and the threads are joined;
    ``OutOfRangeError`` and ``StopIteration`` leave it as the normal end of a loop.

    Example:
        ::

            with hr.train.MonitoredSession(hooks=[hr.train.StopAtStepHook(1000)]) as session:
                while not session.should_stop():
                    session.run(train)
    """

    def __init__(
        self,
        session_creator: SessionCreator | None = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        """Make the session.

        Args:
            session_creator: What makes sessions; a ``ChiefSessionCreator`` if None.
            hooks: The hooks, in the order in which they are called.
            stop_grace_period_secs: How many seconds threads may take to end.

        Raises:
            BaseException: what a hook, or the making of the session, raises.
        """
        super().__init__(
            session_creator,
            hooks,
            should_recover=True,
            stop_grace_period_secs=stop_grace_period_secs,
        )


@final
class SingularMonitoredSession(_MonitoredSession):
    """A session that calls hooks and starts queue runners, and is not made anew."""

    def __init__(
        self,
        hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | os.PathLike[str] | None = None,
    ) -> None:
        """Make the session.

        Args:
            hooks: The hooks, in the order in which they are called.
            scaffold: The pieces that it needs; found or made if None.
            master: Its target.
            config: Its settings.
            checkpoint_dir: The folder whose latest checkpoint to restore.
            stop_grace_period_secs: How many seconds threads may take to end.
            checkpoint_filename_with_path: The checkpoint to restore, in place of a folder.

        Raises:
            BaseException: what a hook, or the making of the session, raises.
        """
        creator = ChiefSessionCreator(
            scaffold=scaffold,
            master=master,
            config=config,
            checkpoint_dir=checkpoint_dir,
            checkpoint_filename_with_path=checkpoint_filename_with_path,
        )
        super().__init__(
            creator,
            hooks,
            should_recover=False,
            stop_grace_period_secs=stop_grace_period_secs,
        )

    def raw_session(self) -> Any:
        """Return the session without hooks."""
        return self._tf_sess()


@contextlib.contextmanager
def _open_to_changes(graph: Graph) -> Iterator[None]:
    """Let a graph that is finalized take operations for a while."""
    finalized = graph.finalized
    unfinalize(graph)
    try:
        yield
    finally:
        if finalized:
            graph.finalize()


def _check_step_fn(step_fn: Callable[..., Any]) -> None:
    names = tuple(inspect.signature(step_fn).parameters)
    if names not in (("step_context",), ("self", "step_context")):
        raise AttributeValueError(
            "`step_fn` may either have one `step_context` argument, or `self` and `step_context` "
            f"arguments if it's an instance method. Got {names} instead."
        )
