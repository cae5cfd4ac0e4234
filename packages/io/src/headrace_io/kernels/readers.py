"""Kernels of readers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import InvalidArgumentError
from headrace.extend import KernelContext, KernelTable
from headrace_io.kernels.strings import one_string, string_array, string_scalar
from headrace_io.readers.kinds import (
    FixedLengthRecords,
    Identity,
    Records,
    TextLines,
    WholeFiles,
)
from headrace_io.readers.reader import Reader

KERNELS = KernelTable()

KERNELS.resource("TextLineReader")(TextLines)
KERNELS.resource("FixedLengthRecordReader")(FixedLengthRecords)
KERNELS.resource("TFRecordReader")(Records)
KERNELS.resource("WholeFileReader")(WholeFiles)
KERNELS.resource("IdentityReader")(Identity)


@KERNELS.blocking("ReaderRead")
def read(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    reader: Reader,
    queue: Any,
    *,
    keyed: bool,
) -> None:
    """Read one record."""

    def answer(result: Any) -> None:
        if isinstance(result, BaseException):
            done(result)
        else:
            keys, values = result
            (value,) = values if isinstance(values, list) else values.tolist()
            done((string_scalar(keys[0] if keyed else b""), string_scalar(value)))

    reader.read(
        reader.check_queue(queue), 1, answer, step.cancellation, keyed=keyed, borrowed=step.borrowed
    )


@KERNELS.blocking("ReaderReadUpTo")
def read_up_to(
    ctx: KernelContext,
    step: Any,
    done: Callable[[Any], None],
    reader: Reader,
    queue: Any,
    num_records: Any,
    *,
    keyed: bool,
    in_rows: bool,
) -> None:
    """Read some records."""
    limit = int(np.asarray(num_records).item())
    if limit < 0:
        raise InvalidArgumentError(f"num_records must be >= 0, got {limit}")

    def answer(result: Any) -> None:
        if isinstance(result, BaseException):
            done(result)
        else:
            keys, values = result
            if not (in_rows or isinstance(values, list)):
                values = values.tolist()
            done((string_array(keys), string_array(values) if isinstance(values, list) else values))

    reader.read(
        reader.check_queue(queue),
        limit,
        answer,
        step.cancellation,
        keyed=keyed,
        borrowed=step.borrowed,
    )


@KERNELS.stateful("ReaderNumRecordsProduced")
def num_records_produced(ctx: KernelContext, reader: Reader) -> Any:
    """Return the number of records."""
    return np.asarray(reader.records_produced, np.int64)


@KERNELS.stateful("ReaderNumWorkUnitsCompleted")
def num_work_units_completed(ctx: KernelContext, reader: Reader) -> Any:
    """Return the number of pieces of work."""
    return np.asarray(reader.work_finished, np.int64)


@KERNELS.stateful("ReaderSerializeState")
def serialize_state(ctx: KernelContext, reader: Reader) -> Any:
    """Return the state."""
    return string_scalar(reader.state())


@KERNELS.stateful("ReaderRestoreState")
def restore_state(ctx: KernelContext, reader: Reader, state: Any) -> None:
    """Restore a state."""
    reader.restore(one_string(state, "state"))


@KERNELS.stateful("ReaderReset")
def reset(ctx: KernelContext, reader: Reader) -> None:
    """Start anew."""
    reader.restart()
