"""Small frames, the short way: most frames are such, and ``wire`` does more than they need.

They are the same bytes. What is not exactly one of them is left to ``wire``, errors included.
"""

from __future__ import annotations

import math
import struct

import numpy as np

from headrace_mpi.transport.wire import (
    CODE_OF_NUMPY,
    HEADER,
    HEADER_BYTES,
    KINDS,
    MAGIC,
    MAX_RANK,
    NUMPY_OF_CODE,
    RAW,
    STRING,
    TENSOR_KINDS,
    VERSION,
    Encoded,
    Frame,
    Kind,
    frame_of,
)

# Dimensions, by their number.
_DIMS = [struct.Struct(f"<{rank}Q") for rank in range(MAX_RANK + 1)]
_PACK, _UNPACK = HEADER.pack, HEADER.unpack_from
# Looking a member of an enumeration up takes as long as comparing five.
_TENSOR, _BUNDLE, _COLLECTIVE = Kind.TENSOR, Kind.BUNDLE, Kind.COLLECTIVE
_BYTES = np.dtype(np.uint8)


def small_message(frame: Frame, most_bytes: int) -> bytes | None:
    """Return a frame with nothing, a small array or a small bundle as a message; None for others.

    That is most frames, for which ``encode`` does more than is needed.

    Raises:
        WireError: if a number of the frame is out of range.
    """
    kind, step, edge, iteration, flags, payload = frame
    if flags:
        return None
    dims: tuple[int, ...] = ()
    code = RAW
    try:
        if payload is None:
            if kind in TENSOR_KINDS:
                return None
            return _PACK(MAGIC, VERSION, kind, 0, step, edge, iteration, 0, RAW, 0, 0, 0)
        if kind is _BUNDLE:
            nbytes = payload.size
            if nbytes > most_bytes:
                return None
            head = _PACK(MAGIC, VERSION, kind, 0, step, edge, iteration, nbytes, RAW, 0, 0, 0)
            message: bytes = head + payload.tobytes()
            return message
        if (kind is not _TENSOR and kind is not _COLLECTIVE) or type(payload) is not np.ndarray:
            return None
        nbytes = payload.nbytes
        code = CODE_OF_NUMPY.get(payload.dtype, STRING)
        if code == STRING or nbytes > most_bytes:
            return None
        dims = payload.shape
        rank = len(dims)
        head = _PACK(MAGIC, VERSION, kind, 0, step, edge, iteration, nbytes, code, rank, 0, 0)
    except struct.error:
        # It says what is wrong.
        return Encoded(frame, code, dims, None).header()
    return head + (_DIMS[rank].pack(*dims) if rank else b"") + payload.tobytes()


def small_frame(message: bytearray) -> Frame | None:
    """Return the frame in a message as ``small_message`` makes them; None for all others.

    What is not exactly right is one of the others: ``parse_header`` says what is wrong with it.
    """
    size = len(message)
    if size < HEADER_BYTES:
        return None
    fields = _UNPACK(message)
    magic, version, kind_code, flags, step, edge, iteration, nbytes, code, rank, zero, tag = fields
    if magic != MAGIC or version != VERSION or flags or zero or tag:
        return None
    kind = KINDS.get(kind_code)
    if size == HEADER_BYTES:
        # Tensors without elements have dimensions.
        if nbytes or code or rank or kind is None or kind in TENSOR_KINDS:
            return None
        return frame_of((kind, step, edge, iteration, 0, None))
    start = HEADER_BYTES + 8 * rank
    if kind is _BUNDLE:
        if size != start + nbytes or code or rank:
            return None
        payload = np.frombuffer(message, _BYTES, nbytes, HEADER_BYTES)
        return frame_of((kind, step, edge, iteration, 0, payload))
    if kind is not _TENSOR and kind is not _COLLECTIVE:
        return None
    if size != start + nbytes or rank > MAX_RANK:
        return None
    dtype = NUMPY_OF_CODE.get(code)
    if dtype is None or code == STRING or not nbytes:
        return None
    itemsize = dtype.itemsize
    payload = np.frombuffer(message, dtype, nbytes // itemsize, start)
    if rank == 1:
        if _DIMS[1].unpack_from(message, HEADER_BYTES)[0] * itemsize != nbytes:
            return None
    else:
        dims = _DIMS[rank].unpack_from(message, HEADER_BYTES) if rank else ()
        if math.prod(dims) * itemsize != nbytes:
            return None
        payload = payload.reshape(dims)
    return frame_of((kind, step, edge, iteration, 0, payload))
