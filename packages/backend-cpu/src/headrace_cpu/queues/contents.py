"""What is in a queue as bytes, for checkpoints.

Layout: the magic, the length of a JSON text (8 bytes, little-endian), the text, then the components
of all elements as serialized tensors, one after the other, and a CRC-32 of all of that. The text
has the lengths of the components, whether the queue was closed, and how far it had drawn.
Nothing is pickled.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any, final

import numpy as np

from headrace import DType
from headrace.errors import DataLossError
from headrace.extend.records import dataclass
from headrace_cpu.kernels.tensor_proto import parse, serialize
from headrace_cpu.queues.elements import Element

_MAGIC = b"HRQUE001"
_SMALLEST = len(_MAGIC) + 8 + 4


@final
@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a queue at one moment.

    Attributes:
        elements: The elements, in an order that is the queue's own.
        closed: Whether it was closed.
        drawn: Where a queue that shuffles is in its random numbers, as JSON can hold it.
    """

    elements: Sequence[Element]
    closed: bool
    drawn: Any = None


def encode(contents: Contents, dtypes: Sequence[DType]) -> bytes:
    """Return contents as bytes.

    Args:
        contents: The contents, of arrays on the host.
        dtypes: The dtype of each component.
    """
    parts = [
        serialize(np.asarray(part, dtype.numpy))
        for element in contents.elements
        for part, dtype in zip(element, dtypes, strict=True)
    ]
    head = {
        "dtypes": [dtype.name for dtype in dtypes],
        "sizes": [len(part) for part in parts],
        "closed": contents.closed,
        "drawn": contents.drawn,
    }
    text = json.dumps(head, separators=(",", ":")).encode()
    body = b"".join([_MAGIC, len(text).to_bytes(8, "little"), text, *parts])
    return body + zlib.crc32(body).to_bytes(4, "little")


def decode(data: bytes, label: str, dtypes: Sequence[DType]) -> Contents:
    """Return the contents that ``encode`` gave as ``data``.

    Args:
        data: The bytes.
        label: Whose contents they should be, for errors.
        dtypes: The dtype of each component of this queue.

    Raises:
        DataLossError: if they are damaged, or of elements of other dtypes.
    """
    if len(data) < _SMALLEST or data[:8] != _MAGIC:
        raise DataLossError(f"these {len(data)} bytes are no saved contents of {label}")
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise DataLossError(f"the saved contents of {label} are damaged: their checksum differs")
    size = int.from_bytes(data[8:16], "little")
    head = json.loads(data[16 : 16 + size])
    names = [dtype.name for dtype in dtypes]
    if head["dtypes"] != names:
        raise DataLossError(
            f"{label} holds components of {', '.join(names)}; what was saved has "
            f"{', '.join(head['dtypes'])}"
        )
    place, parts = 16 + size, []
    for number, length in enumerate(head["sizes"]):
        dtype = dtypes[number % len(dtypes)]
        parts.append(parse(data[place : place + length], dtype))
        place += length
    rows = range(0, len(parts), len(dtypes))
    elements = [tuple(parts[row : row + len(dtypes)]) for row in rows]
    return Contents(elements, head["closed"], head["drawn"])
