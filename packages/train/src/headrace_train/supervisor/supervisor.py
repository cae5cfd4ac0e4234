"""``Supervisor``: a session, and threads that save and summarize beside the loop."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import headrace as hr
from headrace import Graph, GraphKeys, Session
from headrace.errors import AttributeValueError, FailedPreconditionError
from headrace_io import protos
from headrace_io.meta_graph import meta_graph_def_of
from headrace_train.monitored.session_manager import SessionManager
from headrace_train.resumption.chief_lock import ChiefLock
from headrace_train.resumption.graph_file import write_graph_file
from headrace_train.resumption.run_state import prepare
from headrace_train.runners import Coordinator, LooperThread
from headrace_train.steps import global_step as global_step_in
from headrace_train.steps import named_global_step
from headrace_train.supervisor.services import (
    CheckpointThread,
    StepCounterThread,
    SummaryThread,
)

_log = logging.getLogger("headrace.train")


class Supervisor:
    """Makes a session that is restored or initialized, and saves and summarizes beside the loop.

    ``MonitoredTrainingSession`` does the same between the steps, and saves besides on errors and
    signals; new programs use that.

    Example:
        ::

            supervisor = hr.train.Supervisor(logdir="run")
            with supervisor.managed_session() as session:
                while not supervisor.should_stop():
                    session.run(train)
    """

    USE_DEFAULT: Final = 0

    def __init__(
        self,
        graph: Graph | None = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: Mapping[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | os.PathLike[str] | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = 30,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: SessionManager | None = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Session], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        """Find or make what sessions need, and finalize the graph.

        Of ``ready_op``, ``init_op``, ``local_init_op``, ``summary_op``, ``saver`` and
        ``global_step``, None stands for none; what is not given is found in the graph's collection
        of its name, or made.

        Args:
            graph: The graph; the default graph if None.
            ready_op: [n], string: yields the names of variables without a value.
            ready_for_local_init_op: [n], string: yields what ``local_init_op`` waits for; none is
                made.
            is_chief: Whether this process restores, initializes, saves and summarizes.
            init_op: Initializes the variables of a new model.
            init_feed_dict: What to feed for it.
            local_init_op: Initializes what belongs to each session, such as tables.
            logdir: The folder of checkpoints and summaries; neither are written if None.
            summary_op: [], string: the summaries.
            saver: Saves and restores the variables.
            global_step: Counts steps.
            save_summaries_secs: Seconds from one summary to the next; 0 for none.
            save_model_secs: Seconds from one checkpoint to the next; 0 for none.
            recovery_wait_secs: Seconds between two looks at a model that the chief initializes.
            stop_grace_secs: How many seconds threads may take to end.
            checkpoint_basename: The name of checkpoints, to which the step is added.
            session_manager: What makes sessions; one of the pieces above if None.
            summary_writer: What writes summaries; one for ``logdir`` if not given, None for none.
            init_fn: Called with the session after ``init_op``.
            local_init_run_options: With which ``hr.RunOptions`` to run ``local_init_op``.

        Raises:
            AttributeValueError: if this is not the chief and variables have no device.
            OpError: if the event file cannot be made.
        """
        self._graph = graph if graph is not None else hr.get_default_graph()
        with self._graph.as_default():
            self._ready_op = _found(ready_op, GraphKeys.READY_OP, hr.report_uninitialized_variables)
            self._ready_for_local_init_op = _found(
                ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP, None
            )
            self._init_op = _found(init_op, GraphKeys.INIT_OP, hr.global_variables_initializer)
            self._init_feed_dict = init_feed_dict
            self._local_init_op = _found(
                local_init_op, GraphKeys.LOCAL_INIT_OP, _default_local_init_op
            )
            self._saver = _found(saver, GraphKeys.SAVERS, _default_saver)
            self._summary_op = _found(summary_op, GraphKeys.SUMMARY_OP, hr.summary.merge_all)
            self._global_step = _found(global_step, GraphKeys.GLOBAL_STEP, named_global_step)
        self._is_chief = is_chief
        self._coord = Coordinator()
        self._stop_grace_secs = stop_grace_secs
        self._init_fn = init_fn
        self._logdir: str | None = None
        self._save_summaries_secs: float | None = None
        self._save_model_secs: float | None = None
        self._save_path: str | None = None
        self._summary_writer: Any = None
        self._graph_added = False
        self._lock: ChiefLock | None = None
        if is_chief:
            self._logdir = os.fspath(logdir) if logdir else None
            self._save_summaries_secs = save_summaries_secs
            self._save_model_secs = save_model_secs
            if self._logdir:
                # As it was given: a Path would drop "./".
                self._save_path = os.path.join(self._logdir, checkpoint_basename)  # noqa: PTH118
            if summary_writer is not Supervisor.USE_DEFAULT:
                self._summary_writer = summary_writer
            elif self._logdir:
                self._summary_writer = hr.summary.FileWriter(self._logdir)
        else:
            _check_devices(self._graph)
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        prepare(self._graph)
        self._graph.finalize()

    @property
    def is_chief(self) -> bool:
        """Whether this process restores, initializes, saves and summarizes."""
        return self._is_chief

    @property
    def session_manager(self) -> SessionManager:
        """What makes sessions."""
        return self._session_manager

    @property
    def coord(self) -> Coordinator:
        """What ends the threads."""
        return self._coord

    @property
    def init_op(self) -> Any:
        """What initializes the variables of a new model."""
        return self._init_op

    @property
    def init_feed_dict(self) -> Mapping[Any, Any] | None:
        """What to feed for ``init_op``."""
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        """What yields the names of variables without a value."""
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        """What yields the names that the initialization of each session waits for."""
        return self._ready_for_local_init_op

    @property
    def summary_writer(self) -> Any:
        """What writes summaries, None for none."""
        return self._summary_writer

    @property
    def summary_op(self) -> Any:
        """The summaries, None for none."""
        return self._summary_op

    @property
    def save_summaries_secs(self) -> float | None:
        """Seconds from one summary to the next; None where this is not the chief."""
        return self._save_summaries_secs

    @property
    def global_step(self) -> Any:
        """What counts steps, None for nothing."""
        return self._global_step

    @property
    def saver(self) -> Any:
        """What saves and restores the variables, None for nothing."""
        return self._saver

    @property
    def save_model_secs(self) -> float | None:
        """Seconds from one checkpoint to the next; None where this is not the chief."""
        return self._save_model_secs

    @property
    def save_path(self) -> str | None:
        """The path of checkpoints without their step, None where none are saved."""
        return self._save_path

    def start_standard_services(self, sess: Session) -> list[threading.Thread] | None:
        """Start the threads that summarize and save.

        Args:
            sess: The session.

        Returns:
            The threads; None where there is no ``logdir``.

        Raises:
            FailedPreconditionError: if this is not the chief.
        """
        if not self._is_chief:
            raise FailedPreconditionError(
                "Only chief supervisor can start standard services. Because only chief "
                "supervisors can write events."
            )
        if not self._logdir:
            _log.warning("a Supervisor without a logdir has no standard services")
            return None
        if self._global_step is not None and self._summary_writer is not None:
            self._summary_writer.add_session_log(
                protos.SessionLog(status="START"),
                global_step_in(sess, self._global_step),
            )
        threads: list[threading.Thread] = []
        if self._save_summaries_secs and self._summary_writer is not None:
            if self._summary_op is not None:
                threads.append(SummaryThread(self, sess))
            if self._global_step is not None:
                threads.append(StepCounterThread(self, sess))
        if self._saver is not None and self._save_model_secs:
            threads.append(CheckpointThread(self, sess))
        for thread in threads:
            thread.start()
        return threads

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Session:
        """Make a session that is ready, and start the threads.

        Args:
            master: Its target.
            config: Its settings.
            wait_for_checkpoint: Whether to wait for a checkpoint to restore.
            max_wait_secs: How many seconds to wait for it, or for the chief.
            start_standard_services: Whether to start the threads, and those of queue runners.

        Returns:
            The session.

        Raises:
            FailedPreconditionError: if variables have no value, or another process saves into the
                folder.
            CheckpointError: if a checkpoint cannot be restored.
            DeadlineExceededError: if the chief does not initialize the model in time.
        """
        self._coord.clear_stop()
        if self._is_chief and self._logdir and self._lock is None:
            self._lock = ChiefLock(Path(self._logdir), self._graph)
        if self._summary_writer is not None:
            self._summary_writer.reopen()
        if self._is_chief:
            session = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                self.start_standard_services(session)
        else:
            session = self._session_manager.wait_for_session(
                master, config=config, max_wait_secs=max_wait_secs
            )
        if start_standard_services:
            self.start_queue_runners(session)
        return session

    def start_queue_runners(
        self, sess: Session, queue_runners: Sequence[Any] | None = None
    ) -> list[threading.Thread]:
        """Start the threads of queue runners.

        Args:
            sess: The session.
            queue_runners: The runners; those of the graph if None.

        Returns:
            The threads.
        """
        if queue_runners is None:
            queue_runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS)
        threads: list[threading.Thread] = []
        for runner in queue_runners:
            threads += runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        return threads

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
    ) -> LooperThread:
        """Start a thread that calls a function again and again.

        Args:
            timer_interval_secs: Seconds from one call to the next; None to call again at once.
            target: The function.
            args: With which positional arguments.
            kwargs: With which arguments by name.

        Returns:
            The thread.
        """
        return LooperThread.loop(self._coord, timer_interval_secs, target, args, kwargs)

    def stop(
        self,
        threads: Sequence[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """End the threads; the session stays open.

        Args:
            threads: Threads to wait for besides those that it started.
            close_summary_writer: Whether to close the writer of summaries.
            ignore_live_threads: Whether to log, instead of raise, that some have not ended.

        Raises:
            BaseException: what a thread raised.
            RuntimeError: if threads have not ended in time.
        """
        self._coord.request_stop()
        try:
            self._coord.join(
                threads,
                stop_grace_period_secs=self._stop_grace_secs,
                ignore_live_threads=ignore_live_threads,
            )
        finally:
            if close_summary_writer and self._summary_writer is not None:
                self._summary_writer.add_session_log(protos.SessionLog(status="STOP"))
                self._summary_writer.close()
                self._graph_added = False
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def request_stop(self, ex: Any = None) -> None:
        """Ask all threads to end.

        Args:
            ex: The error for which they should; ``stop`` raises the first one.
        """
        self._coord.request_stop(ex)

    def should_stop(self) -> bool:
        """Return whether a stop was requested."""
        return self._coord.should_stop()

    def stop_on_exception(self) -> AbstractContextManager[None]:
        """Return a context manager that requests a stop with what is raised in its block."""
        return self._coord.stop_on_exception()

    def wait_for_stop(self) -> None:
        """Wait until a stop is requested."""
        self._coord.wait_for_stop()

    def summary_computed(self, sess: Session, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Args:
            sess: The session.
            summary: A ``Summary``, or a serialized one.
            global_step: The step; the present one if None.

        Raises:
            FailedPreconditionError: if there is no writer.
            DTypeError: if it is no summary.
        """
        if self._summary_writer is None:
            raise FailedPreconditionError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = global_step_in(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    @contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Session]:
        """Give a session for the block, and end everything after it.

        What the block or a thread raises ends the threads and the session, and is raised then;
        ``OutOfRangeError`` is the normal end of a loop.

        Args:
            master: The target of the session.
            config: Its settings.
            start_standard_services: Whether to start the threads.
            close_summary_writer: Whether to close the writer of summaries at the end.

        Yields:
            The session.
        """
        session: Session | None = None
        try:
            session = self.prepare_or_wait_for_session(
                master=master, config=config, start_standard_services=start_standard_services
            )
            yield session
        except Exception as error:
            self.request_stop(error)
        finally:
            try:
                # Threads that wait for the session end when it is closed.
                self.stop(close_summary_writer=close_summary_writer)
            finally:
                if session is not None:
                    with suppress(Exception):
                        session.close()

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph_file(self._graph, Path(self._logdir))
        if self._summary_writer is not None and not self._graph_added:
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(meta_graph_def_of(self._graph))
            self._graph_added = True

    # As older programs call them.
    Loop = loop
    PrepareSession = prepare_or_wait_for_session
    RequestStop = request_stop
    ShouldStop = should_stop
    StartQueueRunners = start_queue_runners
    StartStandardServices = start_standard_services
    Stop = stop
    StopOnException = stop_on_exception
    SummaryComputed = summary_computed
    WaitForStop = wait_for_stop


def _found(given: Any, key: str, make: Callable[[], Any] | None) -> Any:
    """Return a piece: what is given, or the first of its collection, or a new one."""
    if given is not Supervisor.USE_DEFAULT:
        return given
    listed = hr.get_collection(key)
    if listed:
        return listed[0]
    made = None if make is None else make()
    if made is not None:
        hr.add_to_collection(key, made)
    return made


def _default_local_init_op() -> Any:
    return hr.group(hr.local_variables_initializer(), hr.tables_initializer())


def _default_saver() -> Any:
    return hr.train.Saver() if hr.global_variables() else None


def _check_devices(graph: Graph) -> None:
    """Refuse variables that every worker would have for itself."""
    for variable in graph.variables:
        if not variable.op.device:
            raise AttributeValueError(
                f"When using replicas, all Variables must have their device set: {variable.name}"
            )
