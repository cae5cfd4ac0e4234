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
)

# Dimensions, by their number.
_DIMS = [struct.Struct(f"<{rank}Q") for rank in range(MAX_RANK + 1)]


def small_message(frame: Frame, most_bytes: int) -> bytes | None:
    """Return a frame without a payload, or with a small array, as a message; None for others.

    That is most frames, for which ``encode`` does more than is needed.

    Raises:
        WireError: if a number of the frame is out of range.
    """
    kind, step, edge, iteration, flags, payload = frame
    dims: tuple[int, ...] = ()
    if payload is None:
        if flags or kind in TENSOR_KINDS:
            return None
        code, body = RAW, b""
    else:
        if flags or kind is not Kind.TENSOR or type(payload) is not np.ndarray:
            return None
        code = CODE_OF_NUMPY.get(payload.dtype, STRING)
        if code == STRING or payload.nbytes > most_bytes:
            return None
        dims = payload.shape
        body = payload.tobytes()
    try:
        return (
            HEADER.pack(
                *(MAGIC, VERSION, kind, 0, step, edge, iteration),
                *(len(body), code, len(dims), 0, 0),
            )
            + (_DIMS[len(dims)].pack(*dims) if dims else b"")
            + body
        )
    except struct.error:
        # It says what is wrong.
        return Encoded(frame, code, dims, None).header()


def small_frame(message: bytearray) -> Frame | None:
    """Return the frame in a message as ``small_message`` makes them; None for all others.

    What is not exactly right is one of the others: ``parse_header`` says what is wrong with it.
    """
    if len(message) < HEADER_BYTES:
        return None
    fields = HEADER.unpack_from(message)
    magic, version, kind_code, flags, step, edge, iteration, nbytes, code, rank, zero, tag = fields
    kind = KINDS.get(kind_code)
    if magic != MAGIC or version != VERSION or flags or zero or tag or kind is None:
        return None
    start = HEADER_BYTES + 8 * rank
    if len(message) != start + nbytes:
        return None
    payload = None
    if kind is Kind.TENSOR:
        dtype = NUMPY_OF_CODE.get(code)
        if dtype is None or code == STRING or not nbytes:
            return None
        elems = nbytes // dtype.itemsize
        payload = np.frombuffer(message, dtype, elems, start)
        if rank != 1:
            if rank > MAX_RANK:
                return None
            dims = _DIMS[rank].unpack_from(message, HEADER_BYTES)
            if math.prod(dims) * dtype.itemsize != nbytes:
                return None
            payload = payload.reshape(dims)
        elif _DIMS[1].unpack_from(message, HEADER_BYTES)[0] * dtype.itemsize != nbytes:
            return None
    elif nbytes or code or rank or kind in TENSOR_KINDS:
        return None
    return Frame(kind, step, edge, iteration, 0, payload)
