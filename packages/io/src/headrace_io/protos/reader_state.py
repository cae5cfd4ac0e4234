"""The state of readers as a message, in the form of TensorFlow's ``ReaderBaseState``."""

from __future__ import annotations

from headrace.errors import DataLossError, InvalidArgumentError, shown


def pack(started: int, finished: int, produced: int, work: bytes) -> bytes:
    """Return a state as a string.

    Args:
        started: How many pieces of work were begun.
        finished: How many were read to their end.
        produced: How many records were made.
        work: The piece of work begun last.
    """
    # lazy: few programs save readers
    from headrace_io.protos.pool import message_class

    state = message_class("ReaderBaseState")(
        work_started=started,
        work_finished=finished,
        num_records_produced=produced,
        current_work=work,
    )
    packed: bytes = state.SerializeToString()
    return packed


def unpack(state: bytes) -> tuple[int, int, int, bytes]:
    """Return what ``pack`` was given.

    Raises:
        InvalidArgumentError: if the string is no state.
    """
    # lazy: few programs restore readers
    from headrace_io.protos.pool import parsed

    try:
        found = parsed("ReaderBaseState", state, "it")
    except DataLossError as error:
        raise InvalidArgumentError(f"{shown(state)} is no state of a reader: {error}") from error
    started, finished = found.work_started, found.work_finished
    if not 0 <= finished <= started <= finished + 1 or found.num_records_produced < 0:
        raise InvalidArgumentError(
            f"{shown(state)} is no state of a reader: {started} pieces of work begun, {finished} "
            f"finished, {found.num_records_produced} records made"
        )
    return started, finished, found.num_records_produced, found.current_work
