"""Readers: resources that make records of the work that a queue gives them."""

from __future__ import annotations

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError, told
from headrace.extend import Index, Resource, Shape, Spec, String, TensorSpec, op, require
from headrace_io.fixed_length_records import check_lengths
from headrace_io.ops.files import STRING, STRINGS, one
from headrace_io.streams import check_compression

_READ = "what is in files does not depend on tensors"
_HANDLE = TensorSpec(hr.resource, Shape([]))
_COUNT = TensorSpec(hr.int64, Shape([]))


@op(
    "TextLineReader",
    node_name="TextLineReaderV2",
    concurrent=True,
    effects="reads",
    public="",
    no_gradient=_READ,
)
def text_line_reader(skip_header_lines: int, container: str, shared_name: str) -> Spec:
    """A handle to a reader of the lines of files.

    Args:
        skip_header_lines: How many lines of each file to leave out.
        container: The container; empty for the default one.
        shared_name: The reader's name in the container.

    Returns:
        [], a resource handle.
    """
    if skip_header_lines < 0:
        raise AttributeValueError(f"skip_header_lines must be >= 0, got {told(skip_header_lines)}")
    return _HANDLE


@op(
    "FixedLengthRecordReader",
    node_name="FixedLengthRecordReaderV2",
    concurrent=True,
    effects="reads",
    public="",
    no_gradient=_READ,
)
def fixed_length_record_reader(
    record_bytes: int,
    header_bytes: int,
    footer_bytes: int,
    hop_bytes: int,
    encoding: str,
    container: str,
    shared_name: str,
) -> Spec:
    """A handle to a reader of files with records of one length.

    Args:
        record_bytes: How long each record is.
        header_bytes: How much stands before the first.
        footer_bytes: How much stands after the last.
        hop_bytes: From the beginning of a record to that of the next; ``record_bytes`` if 0.
        encoding: How files are compressed: ``""``, ``"ZLIB"`` or ``"GZIP"``.
        container: The container; empty for the default one.
        shared_name: The reader's name in the container.

    Returns:
        [], a resource handle.
    """
    check_lengths(
        record_bytes, header_bytes=header_bytes, footer_bytes=footer_bytes, hop_bytes=hop_bytes
    )
    check_compression(encoding)
    return _HANDLE


@op(
    "TFRecordReader",
    node_name="TFRecordReaderV2",
    concurrent=True,
    effects="reads",
    public="",
    no_gradient=_READ,
)
def tf_record_reader(compression_type: str, container: str, shared_name: str) -> Spec:
    """A handle to a reader of files of records.

    Args:
        compression_type: How files are compressed: ``""``, ``"ZLIB"`` or ``"GZIP"``.
        container: The container; empty for the default one.
        shared_name: The reader's name in the container.

    Returns:
        [], a resource handle.
    """
    check_compression(compression_type)
    return _HANDLE


@op(
    "WholeFileReader",
    node_name="WholeFileReaderV2",
    concurrent=True,
    effects="reads",
    public="",
    no_gradient=_READ,
)
def whole_file_reader(container: str, shared_name: str) -> Spec:
    """A handle to a reader of which each record is a file.

    Args:
        container: The container; empty for the default one.
        shared_name: The reader's name in the container.

    Returns:
        [], a resource handle.
    """
    return _HANDLE


@op(
    "IdentityReader",
    node_name="IdentityReaderV2",
    concurrent=True,
    effects="reads",
    public="",
    no_gradient=_READ,
)
def identity_reader(container: str, shared_name: str) -> Spec:
    """A handle to a reader whose records are what the queue holds.

    Args:
        container: The container; empty for the default one.
        shared_name: The reader's name in the container.

    Returns:
        [], a resource handle.
    """
    return _HANDLE


@op(
    "ReaderRead",
    node_name="ReaderReadV2",
    effects="changes",
    blocking=True,
    public="",
    no_gradient=_READ,
)
def reader_read(reader: Resource, queue: Resource, keyed: bool = True) -> tuple[Spec, Spec]:
    """The next record; waits for the queue where the reader needs new work.

    Args:
        reader: [], the reader.
        queue: [], a queue of one component, a string.
        keyed: Whether somebody looks at the key, which is empty otherwise.

    Returns:
        The key [] and the value [] of the record. Raises when it runs on a queue that is closed
        and empty.
    """
    return STRING, STRING


@op(
    "ReaderReadUpTo",
    node_name="ReaderReadUpToV2",
    effects="changes",
    blocking=True,
    public="",
    no_gradient=_READ,
)
def reader_read_up_to(
    reader: Resource,
    queue: Resource,
    num_records: Index,
    keyed: bool = True,
    in_rows: bool = False,
) -> tuple[Spec, Spec]:
    """The next records of one piece of work; waits for the queue where the reader needs new work.

    Args:
        reader: [], the reader.
        queue: [], a queue of one component, a string.
        num_records: [], how many at most.
        keyed: Whether somebody looks at the keys; there are none otherwise.
        in_rows: Whether values of one length may be ``StringRows``.

    Returns:
        The keys [n] and the values [n] of the records. Raises when it runs on a queue that is
        closed and empty.
    """
    require(
        num_records.rank in (None, 0),
        f"num_records must be a scalar, got {num_records.shape}",
        ShapeError,
    )
    return STRINGS, STRINGS


@op(
    "ReaderNumRecordsProduced",
    node_name="ReaderNumRecordsProducedV2",
    effects="reads",
    public="",
    no_gradient=_READ,
)
def reader_num_records_produced(reader: Resource) -> Spec:
    """How many records a reader has made.

    Args:
        reader: [], the reader.

    Returns:
        [], int64.
    """
    return _COUNT


@op(
    "ReaderNumWorkUnitsCompleted",
    node_name="ReaderNumWorkUnitsCompletedV2",
    effects="reads",
    public="",
    no_gradient=_READ,
)
def reader_num_work_units_completed(reader: Resource) -> Spec:
    """How many pieces of work a reader has read to the end.

    Args:
        reader: [], the reader.

    Returns:
        [], int64.
    """
    return _COUNT


@op(
    "ReaderSerializeState",
    node_name="ReaderSerializeStateV2",
    effects="reads",
    public="",
    no_gradient=_READ,
)
def reader_serialize_state(reader: Resource) -> Spec:
    """The state of a reader.

    Args:
        reader: [], the reader. Raises when it runs on one that cannot be restored.

    Returns:
        [], string.
    """
    return STRING


@op(
    "ReaderRestoreState",
    node_name="ReaderRestoreStateV2",
    effects="changes",
    public="",
    no_gradient=_READ,
)
def reader_restore_state(reader: Resource, state: String) -> None:
    """Bring a reader into the state that an equal one had.

    Args:
        reader: [], the reader. Raises when it runs on one that cannot be restored.
        state: [], the state.
    """
    one(state, "state")


@op("ReaderReset", node_name="ReaderResetV2", effects="changes", public="", no_gradient=_READ)
def reader_reset(reader: Resource) -> None:
    """Bring a reader into the state in which it was made.

    Args:
        reader: [], the reader.
    """
