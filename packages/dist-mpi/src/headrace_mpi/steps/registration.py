"""Registrations of steps as bytes: a JSON text, and the large constants of its graphs.

The payload is the length of the text in 8 bytes, little-endian, the text, and the bytes of the
constants that the receiver does not have yet, in the order in which the text names them. A session
sends a constant to a task once, whatever the number of its steps.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, replace
from typing import Any, final

from headrace import Graph
from headrace.errors import ClusterError
from headrace.extend.devices import DeviceName
from headrace.extend.documents import Arrays, arrays_apart, dump
from headrace.extend.runtime import DEFAULT_OPTIONS, Options
from headrace_mpi.steps.rendezvous import NumberedEdge

_LENGTH = struct.Struct("<Q")


def pack_registration(
    session: int,
    partitions: dict[DeviceName, Graph],
    edges: list[NumberedEdge],
    options: Options = DEFAULT_OPTIONS,
    arrays: Arrays | None = None,
) -> bytes:
    """Return the payload of a REGISTER frame.

    Args:
        session: The number of the session.
        partitions: The graphs of the task.
        edges: The transfers of the task.
        options: How the session's steps are planned and run.
        arrays: Knows which constants the task has; takes the others.
    """
    arrays = Arrays(frozenset()) if arrays is None else arrays
    with arrays_apart(arrays):
        # With the user's lines, which errors on this task will name.
        documents = {str(device): dump(graph, sites=True) for device, graph in partitions.items()}
    fields = {
        "session": session,
        "edges": edges,
        "partitions": documents,
        "options": asdict(replace(options, recorder=None)),
        "record": options.recorder is not None,
        "arrays": [[name, len(data)] for name, data in arrays.new.items()],
    }
    text = json.dumps(fields, separators=(",", ":")).encode()
    return b"".join((_LENGTH.pack(len(text)), text, *arrays.new.values()))


@final
class Received:
    """The constants that a session has sent to this task.

    Attributes:
        held: Their bytes, by name.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.held: dict[str, bytes] = {}

    def put(self, name: str, data: bytes) -> None:
        """Keep a constant."""
        self.held[name] = data

    def get(self, name: str) -> bytes | None:
        """Return a constant, None if it did not come."""
        return self.held.get(name)


def unpack_fields(payload: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the text of a registration, and the constants behind it.

    Raises:
        ClusterError: if the payload is no registration.
    """
    view = memoryview(payload)
    end = _LENGTH.size + (_LENGTH.unpack_from(view)[0] if len(view) >= _LENGTH.size else 0)
    if end > len(view) or end <= _LENGTH.size:
        raise ClusterError(f"a registration of {len(view)} bytes is cut off")
    fields = json.loads(bytes(view[_LENGTH.size : end]))
    found: dict[str, bytes] = {}
    for name, size in fields["arrays"]:
        found[name] = bytes(view[end : end + size])
        end += size
    if end != len(view):
        raise ClusterError(f"a registration of {len(view)} bytes announces {end}")
    return fields, found


def read_partitions(fields: dict[str, Any], received: Received) -> dict[DeviceName, Graph]:
    """Return the graphs of a registration, by device.

    Args:
        fields: Its text.
        received: The constants of its session.
    """
    with arrays_apart(received):
        return {
            DeviceName.parse(name): Graph.from_document(text)
            for name, text in fields["partitions"].items()
        }
