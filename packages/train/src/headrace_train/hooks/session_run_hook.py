"""The base class of hooks: code that runs at fixed moments of a monitored session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, final

if TYPE_CHECKING:
    from headrace import Session
    from headrace_train.runners import Coordinator


class SessionRunArgs(NamedTuple):
    """What a hook adds to a step, or what the program asked of it.

    Attributes:
        fetches: What to fetch, as for ``Session.run``.
        feed_dict: What to feed besides.
        options: How the step should run, an ``hr.RunOptions``.
    """

    fetches: Any
    feed_dict: Mapping[Any, Any] | None = None
    options: Any = None


class SessionRunValues(NamedTuple):
    """What a step gave a hook.

    Attributes:
        results: The values of the fetches that its ``before_run`` asked for; None if for none.
        options: How the step ran. Steps that nobody asks anything of share one object.
        run_metadata: What was learnt of it; likewise.
    """

    results: Any
    options: Any
    run_metadata: Any


@final
class SessionRunContext:
    """What a hook sees of the step that is about to run, or has just run."""

    __slots__ = ("_original_args", "_session", "_stop_requested")

    def __init__(self, original_args: SessionRunArgs, session: Any) -> None:
        """Say what the program asked for.

        Args:
            original_args: What the program passed to ``run``.
            session: The session, without hooks.
        """
        self._original_args = original_args
        self._session = session
        self._stop_requested = False

    @property
    def original_args(self) -> SessionRunArgs:
        """What the program passed to ``run``."""
        return self._original_args

    @property
    def session(self) -> Any:
        """The session, without hooks: steps that a hook runs by it call none."""
        return self._session

    @property
    def stop_requested(self) -> bool:
        """Whether a hook asked for an end of the loop."""
        return self._stop_requested

    def request_stop(self) -> None:
        """Let ``should_stop`` of the monitored session be True after this step."""
        self._stop_requested = True


class SessionRunHook:
    """Code that runs at fixed moments of a monitored session; subclasses override what they need.

    In the order in which the hooks are listed, the session calls ``begin`` of each, before it is
    made; ``after_create_session``, each time that it was made; ``before_run`` and ``after_run``
    around each step; and ``end``, unless it ends with an error. What a method raises goes to the
    caller of the session.

    Example:
        ::

            class Losses(hr.train.SessionRunHook):
                def before_run(self, run_context):
                    return hr.train.SessionRunArgs(loss)

                def after_run(self, run_context, run_values):
                    print(run_values.results)
    """

    def begin(self) -> None:
        """Add what is needed to the default graph; it is finalized after this."""

    def after_create_session(self, session: Session, coord: Coordinator) -> None:
        """Start what needs the session, which was just made, perhaps anew after an error.

        Args:
            session: The session, without hooks.
            coord: What ends threads that the hook starts.
        """

    def become_chief(self, session: Session, coord: Coordinator) -> None:
        """Do what a chief does from now on: the chief is lost, and this worker takes its place.

        It is called between ``after_create_session`` and ``end``, at most once, perhaps while a
        step runs and by another thread, and may add to the default graph.

        Args:
            session: The session, without hooks.
            coord: What ends threads that the hook starts.
        """

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs | None:
        """Return what to add to the step that is about to run, None for nothing.

        Args:
            run_context: The step.
        """

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Look at what the step gave; it is not called where the step raised.

        Args:
            run_context: The step.
            run_values: The values of what ``before_run`` asked for.
        """

    def end(self, session: Session) -> None:
        """Do what is left to be done; not called where the loop ends with an error.

        Args:
            session: The session, without hooks, still open.
        """


class OwningHook(SessionRunHook):
    """A hook that owns something, or has something to save, however its session ends."""

    def failed(self, session: Session, error: BaseException) -> None:
        """Save what can be saved: the loop ends with an error, and ``end`` is not called.

        Args:
            session: The session, without hooks, still open.
            error: What was raised.
        """

    def release(self) -> None:
        """Give back what the hook owns; called last, also where the session was never made."""
