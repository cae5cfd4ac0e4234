"""Reading files of events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headrace_io.records import read_records


def summary_iterator(path: Any) -> Iterator[Any]:
    """Yield the events of a file.

    Example:
        ::

            for event in hr.train.summary_iterator("logs/events.out.tfevents..."):
                for value in event.summary.value:
                    if value.tag == "loss":
                        print(event.step, value.simple_value)

    Args:
        path: The file, as ``hr.summary.FileWriter`` or TensorFlow writes it.

    Yields:
        Messages ``Event``.

    Raises:
        NotFoundError: if the file is not there.
        DataLossError: if it is damaged, or no such file; what comes before was yielded.
    """
    # lazy: protobuf is imported when a program first names a message
    from headrace_io.protos.pool import parsed

    for at, _, record in read_records(path):
        yield parsed("Event", record, f"the record at byte {at} of {str(path)!r}")
