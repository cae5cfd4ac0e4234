"""Threads that fill queues: ``hr.train.queue_runner``."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Sequence
from typing import Any

import headrace as hr
from headrace import Operation, Session
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CancelledError,
    GraphError,
    OpError,
    OutOfRangeError,
    SessionClosedError,
    shown,
)
from headrace.extend.arguments import items
from headrace_train.queues import QueueBase
from headrace_train.runners.coordinator import Coordinator

__all__ = ["QueueRunner", "add_queue_runner", "start_queue_runners"]

_log = logging.getLogger("headrace.train")


class QueueRunner:
    """Fills a queue: a thread for each of its operations runs it again and again.

    When an operation finds the end of its input, which it tells as ``errors.OutOfRangeError``, its
    thread ends; the last one closes the queue, so that the end travels on. With a coordinator,
    another error stops all of its threads, and a stop closes the queue, which ends threads that
    wait.
    """

    def __init__(
        self,
        queue: QueueBase | None = None,
        enqueue_ops: Sequence[Operation] | None = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: tuple[type[OpError], ...] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        """Make a runner; ``add_queue_runner`` lets ``start_queue_runners`` find it.

        Args:
            queue: The queue.
            enqueue_ops: Operations that fill it, one for each thread; one may stand in it several
                times.
            close_op: Closes the queue at the end of the input; ``queue.close()`` if None.
            cancel_op: Closes the queue when a stop is requested;
                ``queue.close(cancel_pending_enqueues=True)`` if None.
            queue_closed_exception_types: Errors that mean the end of the input;
                ``(errors.OutOfRangeError,)`` if None.
            queue_runner_def: What ``to_proto`` returned, in place of all others.
            import_scope: The scope under which its operations stand.

        Raises:
            AttributeValueError: if there is no queue or operation, or others are given beside
                ``queue_runner_def``.
            ArgumentTypeError: if ``queue_closed_exception_types`` is no tuple of classes of
                errors.
        """
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise AttributeValueError(
                    "queue_runner_def and queue or enqueue_ops are mutually exclusive"
                )
            made = QueueRunner.from_proto(queue_runner_def, import_scope)
            queue, enqueue_ops = made.queue, made.enqueue_ops
            close_op, cancel_op = made.close_op, made.cancel_op
            queue_closed_exception_types = made.queue_closed_exception_types
        if queue is None or not enqueue_ops:
            raise AttributeValueError("a QueueRunner needs a queue and at least one operation")
        kinds: Any = queue_closed_exception_types
        if kinds is not None and not (
            isinstance(kinds, tuple)
            and kinds
            and all(isinstance(kind, type) and issubclass(kind, OpError) for kind in kinds)
        ):
            raise ArgumentTypeError(
                "queue_closed_exception_types must be a tuple of classes of hr.errors, such as "
                f"(hr.errors.OutOfRangeError,), got {shown(kinds)}"
            )
        self._queue = queue
        self._enqueue_ops = items(enqueue_ops, "enqueue_ops")
        self._close_op = queue.close() if close_op is None else close_op
        self._cancel_op = (
            queue.close(cancel_pending_enqueues=True) if cancel_op is None else cancel_op
        )
        self._ends = kinds or (OutOfRangeError,)
        self._lock = threading.Lock()
        self._running: weakref.WeakKeyDictionary[Session, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []

    @property
    def queue(self) -> QueueBase:
        """The queue."""
        return self._queue

    @property
    def enqueue_ops(self) -> list[Operation]:
        """The operations that fill it."""
        return self._enqueue_ops

    @property
    def close_op(self) -> Operation:
        """What closes the queue at the end of the input."""
        return self._close_op

    @property
    def cancel_op(self) -> Operation:
        """What closes the queue when a stop is requested."""
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[OpError], ...]:
        """Errors that mean the end of the input."""
        return self._ends

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """What threads without a coordinator raised since they were made."""
        return self._exceptions_raised

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._queue.name

    def to_proto(self, export_scope: str | None = None) -> Any:
        """Return the runner as a ``QueueRunnerDef``; None where the queue is not in a scope.

        Args:
            export_scope: The scope, which names are written without.
        """
        # lazy: only programs that write graphs need messages
        from headrace_train.runners.definition import write_runner

        made = write_runner(self)
        if not export_scope:
            return made
        prefix = f"{export_scope.rstrip('/')}/"
        if not made.queue_name.startswith(prefix):
            return None
        for field in ("queue_name", "close_op_name", "cancel_op_name"):
            setattr(made, field, getattr(made, field).removeprefix(prefix))
        names = [name.removeprefix(prefix) for name in made.enqueue_op_name]
        made.enqueue_op_name[:] = names
        return made

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """Return the runner that a ``QueueRunnerDef`` describes, in the default graph.

        Args:
            queue_runner_def: The message.
            import_scope: The scope under which its operations stand.

        Raises:
            AttributeValueError: if it is no such message.
            DataLossError: if the graph does not have them.
        """
        # lazy: only programs that read graphs need messages
        from headrace_io import protos
        from headrace_train.runners.definition import read_arguments

        if not isinstance(queue_runner_def, protos.QueueRunnerDef):
            raise AttributeValueError(
                "expected a QueueRunnerDef, as to_proto() returns it, got "
                f"{shown(queue_runner_def)}"
            )
        stored = queue_runner_def.SerializeToString()
        return QueueRunner(**read_arguments(stored, hr.get_default_graph(), import_scope or ""))

    def started(self, session: Session) -> bool:
        """Whether threads were made for a session, even if they have ended since."""
        with self._lock:
            return session in self._running

    def create_threads(
        self,
        sess: Session,
        coord: Coordinator | None = None,
        daemon: bool = False,
        start: bool = False,
    ) -> list[threading.Thread]:
        """Make the threads that fill the queue in a session.

        Args:
            sess: The session.
            coord: What ends them, and is told of errors. Without one, errors are logged, and kept
                in ``exceptions_raised``.
            daemon: Whether the program may end while they run.
            start: Whether to start them.

        Returns:
            The threads; none where those of an earlier call still run in the session.
        """
        with self._lock:
            if self._running.get(sess, 0) > 0:
                return []
            self._running[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        name = f"QueueRunnerThread-{self.name}"
        threads = [
            threading.Thread(target=self._fill, args=(sess, op, coord), name=f"{name}-{op.name}")
            for op in self._enqueue_ops
        ]
        if coord is not None:
            arguments = (sess, coord)
            closing = f"{name}-close_on_stop"
            threads.append(
                threading.Thread(target=self._close_on_stop, args=arguments, name=closing)
            )
        for i, thread in enumerate(threads):
            # What waits for a stop does not keep a program whose others are done.
            thread.daemon = daemon or i == len(self._enqueue_ops)
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def _fill(self, sess: Session, op: Operation, coord: Coordinator | None) -> None:
        """Run an operation until its input or the program ends; the body of a thread."""
        ended = False
        try:
            sess.run_while(op, lambda: coord is None or not coord.should_stop())
        except self._ends:
            ended = True
        except (CancelledError, SessionClosedError) as error:
            # That the session was closed, or the queue because of a stop, is no fault.
            stopped = coord is not None and coord.should_stop()
            if not stopped and not _is_closed(sess):
                self._report(error, coord)
        except BaseException as error:
            self._report(error, coord)
        finally:
            with self._lock:
                self._running[sess] -= 1
                last = not self._running[sess]
            if ended and last:
                _quietly(sess, self._close_op)

    def _report(self, error: BaseException, coord: Coordinator | None) -> None:
        if coord is not None:
            coord.request_stop(error)
            return
        _log.error("a thread that fills the queue %r ended: %s", self.name, error)
        with self._lock:
            self._exceptions_raised.append(error)

    def _close_on_stop(self, sess: Session, coord: Coordinator) -> None:
        coord.wait_for_stop()
        _quietly(sess, self._cancel_op)

    def __repr__(self) -> str:
        return f"<QueueRunner of {self._queue!r}, {len(self._enqueue_ops)} threads>"


def _is_closed(sess: Session) -> bool:
    try:
        sess.make_callable([])
    except SessionClosedError:
        return True
    return False


def _quietly(sess: Session, op: Operation) -> None:
    """Run an operation that closes a queue, which may have ended with its session."""
    try:
        sess.run(op)
    except Exception as error:
        _log.debug("%r could not be run: %s", op.name, error)


def add_queue_runner(qr: QueueRunner, collection: str = hr.GraphKeys.QUEUE_RUNNERS) -> None:
    """Let ``start_queue_runners`` find a runner in the default graph.

    Args:
        qr: The runner.
        collection: The collection of the graph into which it goes.
    """
    hr.add_to_collection(collection, qr)


def start_queue_runners(
    sess: Session | None = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = hr.GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Make, and start, the threads of all runners of a session's graph.

    Args:
        sess: The session; the default one if None. Monitored sessions start the threads of their
            graph by themselves: for them there is nothing to do.
        coord: What ends them, and is told of errors.
        daemon: Whether the program may end while they run.
        start: Whether to start them.
        collection: The collection in which the runners are.

    Returns:
        The threads.

    Raises:
        GraphError: if ``sess`` is None, and there is no default session.
        ArgumentTypeError: if ``sess`` is no session.
    """
    if sess is None:
        sess = hr.get_default_session()
        if sess is None:
            raise GraphError(
                "there is no default session in which to start queue runners; pass sess, or call "
                "this inside 'with hr.Session() as session:'"
            )
    if not isinstance(sess, Session):
        if getattr(sess, "_starts_queue_runners", False):
            return []
        raise ArgumentTypeError(f"sess must be an hr.Session, got {shown(sess)}")
    runners = sess.graph.get_collection(collection)
    if not runners:
        _log.warning(
            "start_queue_runners found no queue runners in the collection %r of the session's "
            "graph; there is nothing to start",
            collection,
        )
    threads: list[threading.Thread] = []
    with sess.graph.as_default():
        for runner in runners:
            threads += runner.create_threads(sess, coord=coord, daemon=daemon, start=start)
    return threads
