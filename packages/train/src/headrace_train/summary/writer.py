"""``FileWriter``: what programs hand summaries, graphs and other events to."""

from __future__ import annotations

import logging
import os
import time
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, final

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    OpError,
    shown,
)
from headrace.extend.arguments import real, text, whole
from headrace.extend.state import when_collected
from headrace_io import protos
from headrace_io.graph_protos import graph_def_of
from headrace_io.meta_graph import meta_graph_def_of
from headrace_io.protos.convert import as_message
from headrace_train.settings import SUMMARY_RANKS
from headrace_train.summary.event_writer import PATIENCE_S, EventWriter
from headrace_train.summary.shared_writer import SharedWriter, shared_writer

_LOG = logging.getLogger("headrace.train")
_CLOSED = (
    "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is "
    "explicitly reopened."
)


@final
class FileWriter:
    """Writes summaries, graphs and other events to a file that TensorBoard reads.

    Methods return at once: events wait in a queue, from which a thread of the writer takes them.
    What was flushed is in the file whatever becomes of the process. A writer that is dropped, or
    left open when the program ends, writes what waits.

    Of the processes of a job only the chief writes; on others the methods do nothing, unless
    ``HEADRACE_SUMMARY_RANKS=all``. See ``hr.dist.Cluster.is_chief``.

    Example:
        ::

            loss_summary = hr.summary.scalar("loss", loss)
            with hr.summary.FileWriter("logs", session.graph) as writer:
                for step in range(1000):
                    _, told = session.run([train, loss_summary])
                    writer.add_summary(told, step)
    """

    def __init__(
        self,
        logdir: str | os.PathLike[str],
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        """Begin a file.

        Args:
            logdir: Its folder, made where it is not there.
            graph: A graph to add, with its description as a ``MetaGraphDef``.
            max_queue: How many events may wait for the disk before those that add more wait, too;
                any number if not positive.
            flush_secs: Seconds after which events are written, however few they are.
            graph_def: The graph as a ``GraphDef``, in place of ``graph``.
            filename_suffix: What the file's name ends in.
            session: Writers of one session and one folder share a file, which the last one of them
                closes; each has a file of its own if None.

        Raises:
            OpError: if the file cannot be made: ``PermissionDeniedError``, ``NotFoundError``,
                ``ResourceExhaustedError`` and others, by what the system says.
            DTypeError: if ``session`` is none.
        """
        if session is not None and not callable(getattr(session, "run", None)):
            raise DTypeError(f"session must be a Session, got {shown(session)}")
        self._session = None if session is None else weakref.ref(session)
        self._logdir = text(
            os.fspath(logdir) if isinstance(logdir, os.PathLike) else logdir, "logdir"
        )
        whole(max_queue, "max_queue")
        real(flush_secs, "flush_secs")
        self._arguments = (Path(self._logdir), max_queue, flush_secs, filename_suffix or "")
        self._all_write = SUMMARY_RANKS.read() == "all"
        if not self._writes:
            _LOG.info("this process is not the chief: nothing is written to %s", self._logdir)
        self._tags_of_runs: set[str] = set()
        self._seen_tags: set[str] = set()
        self._closed = True
        self._shared: SharedWriter | None = None
        self._at_end: weakref.finalize[..., FileWriter] | None = None
        self._open()
        if graph is not None or graph_def is not None:
            self.add_graph(graph, graph_def=graph_def)
            self.add_meta_graph(meta_graph_def_of(graph if graph is not None else graph_def))

    def get_logdir(self) -> str:
        """Return the folder of the file."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Write a summary.

        Metadata are written with the first value of each tag only.

        Args:
            summary: A ``Summary``, or a serialized one, as a step returns it.
            global_step: The number of the step.

        Raises:
            DataLossError: if the bytes are no serialized ``Summary``.
            DTypeError: if it is something else.
            OpError: if earlier events could not be written; see ``flush``.
        """
        found = as_message("Summary", summary, "the summary")
        for value in found.value:
            if not value.HasField("metadata"):
                continue
            if value.tag in self._seen_tags:
                value.ClearField("metadata")
            else:
                self._seen_tags.add(value.tag)
        self._add(protos.Event(summary=found), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Write that a session started, stopped or made a checkpoint.

        Args:
            session_log: A ``SessionLog``.
            global_step: The number of the step.

        Raises:
            DTypeError: if it is something else.
            OpError: if earlier events could not be written; see ``flush``.
        """
        log = as_message("SessionLog", session_log, "the session's log")
        self._add(protos.Event(session_log=log), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Write a graph, which TensorBoard draws.

        Args:
            graph: The graph.
            global_step: The number of the step.
            graph_def: The graph as a ``GraphDef``, in place of ``graph``.

        Raises:
            AttributeValueError: if both are given.
            DTypeError: if it is neither.
            OpError: if earlier events could not be written; see ``flush``.
        """
        if graph is not None and graph_def is not None:
            raise AttributeValueError(
                "Please pass only graph, or graph_def (deprecated), but not both."
            )
        given = graph if graph is not None else graph_def
        if isinstance(given, hr.Graph):
            found = graph_def_of(given, shapes=True)
        else:
            found = as_message("GraphDef", given, "the graph: a Graph or")
        self._add(protos.Event(graph_def=found.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Write a graph with its collections.

        Args:
            meta_graph_def: A ``MetaGraphDef``.
            global_step: The number of the step.

        Raises:
            DTypeError: if it is something else.
            OpError: if earlier events could not be written; see ``flush``.
        """
        found = as_message("MetaGraphDef", meta_graph_def, "meta_graph_def")
        self._add(protos.Event(meta_graph_def=found.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Write what was measured of a step; TensorBoard shows it in its drawing of the graph.

        Args:
            run_metadata: A ``RunMetadata``.
            tag: What the step is called, another for each.
            global_step: The number of the step.

        Raises:
            AttributeValueError: if the tag was used before.
            DTypeError: if it is no ``RunMetadata``.
            OpError: if earlier events could not be written; see ``flush``.
        """
        if tag in self._tags_of_runs:
            raise AttributeValueError(
                f"The provided tag was already used for this event type: {tag!r}"
            )
        found = as_message("RunMetadata", run_metadata, "run_metadata")
        tagged = protos.TaggedRunMetadata(tag=tag, run_metadata=found.SerializeToString())
        self._add(protos.Event(tagged_run_metadata=tagged), global_step)
        self._tags_of_runs.add(tag)

    def add_event(self, event: Any) -> None:
        """Write an event as it is.

        Args:
            event: An ``Event``.

        Raises:
            DTypeError: if it is something else.
            OpError: if earlier events could not be written; see ``flush``.
        """
        found = as_message("Event", event, "the event")
        if self._check_open() and (shared := self._begun()) is not None:
            shared.writer.add(found.SerializeToString())

    def flush(self) -> None:
        """Return when all events so far are in the file.

        Raises:
            OpError: if the disk refuses them, of the family of what the system says. They are
                tried again later; closing the writer tries once more.
            DeadlineExceededError: if the disk takes nothing for a minute.
        """
        if self._check_open() and self._shared is not None:
            self._shared.writer.flush()

    def close(self) -> None:
        """Write what waits, and close the file; once more does nothing.

        Raises:
            OpError: if the disk refuses events, which are lost then.
            DeadlineExceededError: if the disk takes nothing for a minute.
        """
        if self._closed:
            return
        self._closed = True
        shared, self._shared = self._shared, None
        if shared is not None and self._at_end is not None:
            self._at_end.detach()
            shared.leave()

    def reopen(self) -> None:
        """Go on in another file of the same folder; does nothing where it is open.

        Raises:
            OpError: if the file cannot be made.
        """
        if self._closed:
            self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FileWriter to {self._logdir!r}{', closed' if self._closed else ''}>"

    def _open(self) -> None:
        if self._writes:
            session = None if self._session is None else self._session()
            self._shared = shared_writer(
                session,
                self._arguments[0],
                lambda: EventWriter(*self._arguments, patience_s=PATIENCE_S),
            )
            self._at_end = when_collected(self, _close, self._shared)
        self._closed = False

    @property
    def _writes(self) -> bool:
        # lazy: what runs steps is imported when a program first makes a session
        from headrace.extend.runtime import is_chief

        return self._all_write or is_chief()

    def _begun(self) -> SharedWriter | None:
        """Return what writes, None in a process that writes nothing.

        A process that has become the chief begins its file with the first event.
        """
        if self._shared is None and self._writes:
            self._open()
        return self._shared

    def _check_open(self) -> bool:
        if self._closed:
            warnings.warn(_CLOSED, stacklevel=3)
        return not self._closed

    def _add(self, event: Any, global_step: Any) -> None:
        if global_step is not None:
            try:
                event.step = int(global_step)
            except (TypeError, ValueError, ArithmeticError) as error:
                raise DTypeError(
                    f"global_step is a number, got {shown(global_step, 60)}"
                ) from error
        event.wall_time = time.time()
        if self._closed:
            warnings.warn(_CLOSED, stacklevel=3)
        elif (shared := self._begun()) is not None:
            shared.writer.add(event.SerializeToString())


def _close(shared: SharedWriter) -> None:
    # Nobody is there to be told.
    with suppress(OpError):
        shared.leave()
