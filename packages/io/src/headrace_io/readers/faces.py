"""Readers as programs use them: a handle, and the operations that its methods add."""

from __future__ import annotations

from typing import Any, NamedTuple

import headrace as hr
from headrace import Operation, Tensor
from headrace.errors import ArgumentTypeError, DTypeError, GraphError, shown
from headrace.extend.graphs import current_scope
from headrace_io.ops.readers import (
    fixed_length_record_reader,
    identity_reader,
    reader_num_records_produced,
    reader_num_work_units_completed,
    reader_read,
    reader_read_up_to,
    reader_reset,
    reader_restore_state,
    reader_serialize_state,
    text_line_reader,
    tf_record_reader,
    whole_file_reader,
)
from headrace_io.records.options import TFRecordOptions


class ReaderReadV2(NamedTuple):
    """What ``read`` returns: the key [] and the value [] of a record, strings."""

    key: Tensor
    value: Tensor


class ReaderReadUpToV2(NamedTuple):
    """What ``read_up_to`` returns: the keys [n] and the values [n] of records, strings."""

    keys: Tensor
    values: Tensor


class ReaderBase:
    """Makes records, each a key and a value, of the work that a queue gives it.

    Work is a string, mostly the name of a file. A reader takes the next piece from the queue when
    it has read one to the end; a step that finds the queue empty waits. When the queue is closed
    and empty, reading ends with ``errors.OutOfRangeError``. Steps that read with one reader at the
    same time get different records.

    A file that cannot be opened fails one read, and the next goes on with the next piece of work.
    One that is damaged fails all further reads with ``errors.DataLossError``, until ``reset``.
    """

    def __init__(self, reader_ref: Tensor, supports_serialize: bool = False) -> None:
        """Make the face of a handle.

        Args:
            reader_ref: The handle.
            supports_serialize: Whether ``serialize_state`` and ``restore_state`` work.
        """
        self._reader_ref = reader_ref
        self._supports_serialize = supports_serialize

    @property
    def reader_ref(self) -> Tensor:
        """The handle to the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        """Whether its state can be stored and restored."""
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> ReaderReadV2:
        """Return the next record.

        Args:
            queue: A queue of strings, or the handle to one.
            name: The name of the operation.

        Returns:
            The pair ``(key, value)``, each a string [].
        """
        self._check_graph()
        return ReaderReadV2(*reader_read(self._reader_ref, _handle_of(queue), name=name))

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> ReaderReadUpToV2:
        """Return the next records of one piece of work: one at least, and ``num_records`` at most.

        Args:
            queue: A queue of strings, or the handle to one.
            num_records: How many at most, an integer or a scalar tensor.
            name: The name of the operation.

        Returns:
            The pair ``(keys, values)``, each strings [n].
        """
        self._check_graph()
        source = _handle_of(queue)
        found = reader_read_up_to(self._reader_ref, source, num_records, name=name)
        return ReaderReadUpToV2(*found)

    def num_records_produced(self, name: str | None = None) -> Tensor:
        """Return how many records it has made, an int64 scalar.

        Args:
            name: The name of the operation.
        """
        self._check_graph()
        return reader_num_records_produced(self._reader_ref, name=name)

    def num_work_units_completed(self, name: str | None = None) -> Tensor:
        """Return how many pieces of work it has read to the end, an int64 scalar.

        Args:
            name: The name of the operation.
        """
        self._check_graph()
        return reader_num_work_units_completed(self._reader_ref, name=name)

    def serialize_state(self, name: str | None = None) -> Tensor:
        """Return its state, a string scalar.

        Running it raises ``errors.UnimplementedError`` where ``supports_serialize`` is False.

        Args:
            name: The name of the operation.
        """
        self._check_graph()
        return reader_serialize_state(self._reader_ref, name=name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """Return an operation that gives it the state of a reader of its kind.

        Running it raises ``errors.UnimplementedError`` where ``supports_serialize`` is False, and
        ``errors.InvalidArgumentError`` for what is no state.

        Args:
            state: What ``serialize_state`` returned, a string scalar.
            name: The name of the operation.
        """
        self._check_graph()
        return _operation(reader_restore_state(self._reader_ref, state, name=name))

    def reset(self, name: str | None = None) -> Operation:
        """Return an operation that makes it forget the work at hand and all counts.

        Args:
            name: The name of the operation.
        """
        self._check_graph()
        return _operation(reader_reset(self._reader_ref, name=name))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._reader_ref.op.name!r}>"

    def _check_graph(self) -> None:
        if self._reader_ref.graph is not hr.get_default_graph().outermost:
            raise GraphError(
                f"the reader {self._reader_ref.op.name!r} belongs to another graph than the "
                "default one; use it inside 'with graph.as_default():'"
            )


class TextLineReader(ReaderBase):
    """A reader of the lines of files, without their ends.

    Keys are the file's name, a colon, and the number of the line, counted from 1.
    """

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        """Make a reader in the default graph.

        Args:
            skip_header_lines: How many lines of each file to leave out.
            name: Its name; made unique.

        Raises:
            AttributeValueError: if ``skip_header_lines`` is negative.
        """
        super().__init__(_made(text_line_reader, name, skip_header_lines=skip_header_lines or 0))


class FixedLengthRecordReader(ReaderBase):
    """A reader of files with records of one length.

    Keys are the file's name, a colon, and the number of the record, counted from 0. What is left
    before the footer, and is shorter than a record, is left out.
    """

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        """Make a reader in the default graph.

        Args:
            record_bytes: How long each record is.
            header_bytes: How much stands before the first.
            footer_bytes: How much stands after the last.
            hop_bytes: From the beginning of a record to that of the next; ``record_bytes`` if it
                is 0 or None.
            name: Its name; made unique.
            encoding: How files are compressed: ``"ZLIB"``, ``"GZIP"``, or not if None.

        Raises:
            AttributeValueError: if a length is none, or there is no such compression.
        """
        handle = _made(
            fixed_length_record_reader,
            name,
            record_bytes=record_bytes,
            header_bytes=header_bytes or 0,
            footer_bytes=footer_bytes or 0,
            hop_bytes=hop_bytes or 0,
            encoding=encoding or "",
        )
        super().__init__(handle)


class TFRecordReader(ReaderBase):
    """A reader of files of records.

    Keys are the file's name, a colon, and the byte at which the record begins.
    """

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        """Make a reader in the default graph.

        Args:
            name: Its name; made unique.
            options: How files are compressed, a ``TFRecordOptions``.

        Raises:
            AttributeValueError: if there is no such compression.
        """
        compression = TFRecordOptions.get_compression_type_string(options)
        super().__init__(_made(tf_record_reader, name, compression_type=compression))


class WholeFileReader(ReaderBase):
    """A reader of which each record is a file: its name, and its content."""

    def __init__(self, name: str | None = None) -> None:
        """Make a reader in the default graph.

        Args:
            name: Its name; made unique.
        """
        super().__init__(_made(whole_file_reader, name), supports_serialize=True)


class IdentityReader(ReaderBase):
    """A reader whose records are what the queue holds, as key and value."""

    def __init__(self, name: str | None = None) -> None:
        """Make a reader in the default graph.

        Args:
            name: Its name; made unique.
        """
        super().__init__(_made(identity_reader, name), supports_serialize=True)


def _made(declared: Any, name: str | None, **attrs: Any) -> Tensor:
    """Return the handle to a reader of the name that its scope gives it."""
    with (
        hr.control_dependencies(None),
        hr.name_scope(name, declared.schema.node_name) as scope,
    ):
        handle: Tensor = declared(
            **attrs, container=current_scope().container, shared_name=scope[:-1], name=scope
        )
    return handle


def _handle_of(queue: Any) -> Tensor:
    handle = queue if isinstance(queue, Tensor) else getattr(queue, "queue_ref", None)
    if not isinstance(handle, Tensor):
        raise ArgumentTypeError(
            f"a reader takes its work from a queue, or the handle to one, got {shown(queue)}; "
            "hr.train.string_input_producer makes a queue of names"
        )
    dtypes = getattr(queue, "dtypes", None)
    if dtypes is not None and list(dtypes) != [hr.string]:
        raise DTypeError(
            "a reader takes its work from a queue of one component, a string; queue "
            f"{queue.name!r} has {', '.join(map(str, dtypes))}"
        )
    return handle


def _operation(built: Any) -> Operation:
    assert isinstance(built, Operation)
    return built
