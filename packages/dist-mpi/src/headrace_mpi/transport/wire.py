"""Frames: what ranks say to each other, as bytes of a fixed schema.

A frame is a header of 40 bytes, the dimensions of its tensor (8 bytes each), and its payload.
All numbers are little-endian::

    0  4s magic "HRMP"      16 u32 edge            32 u8  dtype code
    4  u8 version           20 u32 iteration       33 u8  rank of the tensor
    5  u8 kind              24 u64 payload bytes   34 u16 zero
    6  u16 flags                                   36 u32 tag of a payload that travels apart
    8  u64 step

A payload is the raw elements of a tensor in C order, or plain bytes (a JSON document, UTF-8 text).
String tensors are their lengths (8 bytes each) followed by their bytes. Nothing is ever pickled,
and a frame is checked completely before anything is allocated for it: a frame that is not exactly
right raises ``WireError`` and has no other effect.

A BUNDLE carries small tensors of one step to one rank; ``bundles`` says how.
"""

from __future__ import annotations

import enum
import functools
import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace import as_dtype
from headrace.errors import ClusterError

MAGIC = b"HRMP"
VERSION = 2
MAX_RANK = 64
MAX_PAYLOAD_BYTES = 1 << 40
MAX_TEXT_BYTES = 1 << 30

HEADER = struct.Struct("<4sBBHQIIQBBHI")
HEADER_BYTES = HEADER.size
MAX_HEADER_BYTES = HEADER_BYTES + 8 * MAX_RANK

FLAG_DEAD = 1
FLAG_REPLY = 2
FLAG_APART = 4
FLAG_LEASED = 8
_ALL_FLAGS = FLAG_DEAD | FLAG_REPLY | FLAG_APART | FLAG_LEASED
# What stands in place of a payload that is lent: where it is in shared memory.
LEASE_BYTES = 32

RAW = 0
STRING = 16

# The codes are part of the format: never renumber, only append.
DTYPE_CODES: dict[str, int] = {
    "float16": 1,
    "float32": 2,
    "float64": 3,
    "bfloat16": 4,
    "int8": 5,
    "int16": 6,
    "int32": 7,
    "int64": 8,
    "uint8": 9,
    "uint16": 10,
    "uint32": 11,
    "uint64": 12,
    "bool": 13,
    "complex64": 14,
    "complex128": 15,
    "string": STRING,
}
NUMPY_OF_CODE = {code: as_dtype(name).numpy for name, code in DTYPE_CODES.items()}
CODE_OF_NUMPY = {dtype: code for code, dtype in NUMPY_OF_CODE.items()}


class WireError(ClusterError):
    """A frame that is damaged, inconsistent, or of another version of Headrace."""


class Kind(enum.IntEnum):
    """What a frame says. The numbers are part of the format."""

    REGISTER = 1
    REGISTERED = 2
    RUN = 3
    DONE = 4
    ERROR = 5
    TENSOR = 6
    ABORT = 7
    RELEASE = 8
    SHUTDOWN = 9
    HEALTH = 10
    LEAVING = 11
    BUNDLE = 12
    COLLECTIVE = 13
    COLLECTIVE_PLAN = 14
    COLLECTIVE_FAILED = 15
    DUMP = 16
    TRACE = 17
    PING = 18
    PONG = 19
    ENTER = 20
    ENTERED = 21
    ENDED = 22
    FENCE = 23
    FENCED = 24
    UNFENCE = 25
    ENDING = 26
    SAVING = 27


KINDS = {int(kind): kind for kind in Kind}

# Which kinds carry plain bytes, and which a tensor; the others carry nothing.
_TEXT_KINDS = frozenset(
    {
        *(Kind.REGISTER, Kind.REGISTERED, Kind.RUN, Kind.ERROR, Kind.ABORT, Kind.BUNDLE),
        *(Kind.COLLECTIVE_PLAN, Kind.COLLECTIVE_FAILED),
        *(Kind.DUMP, Kind.TRACE, Kind.LEAVING),
    }
)
TENSOR_KINDS = frozenset({Kind.TENSOR, Kind.COLLECTIVE})


class Frame(NamedTuple):
    """One message.

    Attributes:
        kind: What it says.
        step: The step it belongs to, unique over all clients.
        edge: The edge whose tensor it carries, or the handle that it is about.
        iteration: How many values the edge has carried before, as it does in loops; 0 outside.
        flags: ``FLAG_DEAD``, ``FLAG_REPLY``.
        payload: An array (TENSOR, COLLECTIVE), bytes (text kinds), or None; of a BUNDLE that is
            sent what ``Packed`` says, and its bytes as an array of one that has come.
    """

    kind: Kind
    step: int = 0
    edge: int = 0
    iteration: int = 0
    flags: int = 0
    payload: Any = None

    @property
    def dead(self) -> bool:
        """Whether the tensor is dead: the branch that would have made it was not taken."""
        return bool(self.flags & FLAG_DEAD)

    @property
    def text(self) -> str:
        """The payload as text; damaged characters are replaced."""
        return bytes(self.payload or b"").decode("utf-8", "replace")


# Returns a frame of a tuple of all its fields, in a third of the time that ``Frame`` takes.
frame_of: Callable[[tuple[Kind, int, int, int, int, Any]], Frame] = functools.partial(
    tuple.__new__, Frame
)


class Header(NamedTuple):
    """A checked header: what is known of a frame before its payload is there."""

    kind: Kind
    step: int
    edge: int
    iteration: int
    flags: int
    dtype_code: int
    dims: tuple[int, ...]
    nbytes: int
    tag: int
    header_bytes: int

    @property
    def apart(self) -> bool:
        """Whether the payload travels as a message of its own."""
        return bool(self.flags & FLAG_APART)

    @property
    def leased(self) -> bool:
        """Whether the payload lies in memory that the sender lends."""
        return bool(self.flags & FLAG_LEASED)


class Packed(Protocol):
    """A payload of several parts, which is put together where it goes."""

    @property
    def size(self) -> int:
        """Its bytes."""

    def tobytes(self) -> bytes:
        """Return the payload."""

    def write(self, into: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Put the payload into memory, [size]."""


class Encoded(NamedTuple):
    """A frame as it is sent: its header fields, and its payload as one run of bytes."""

    frame: Frame
    dtype_code: int
    dims: tuple[int, ...]
    body: np.ndarray[Any, np.dtype[np.uint8]] | Packed | None

    @property
    def nbytes(self) -> int:
        """Bytes of the payload."""
        return 0 if self.body is None else self.body.size

    def message(self) -> bytes:
        """Return header and payload as one message."""
        body = self.body
        return self.header() if body is None else self.header() + body.tobytes()

    def header(self, tag: int = 0, *, lease: bool = False) -> bytes:
        """Return the packed header.

        Args:
            tag: Says that the payload travels apart, under this tag.
            lease: Whether the payload is lent.
        """
        frame = self.frame
        try:
            fixed = HEADER.pack(
                MAGIC,
                VERSION,
                frame.kind,
                frame.flags | (FLAG_APART if tag else 0) | (FLAG_LEASED if lease else 0),
                frame.step,
                frame.edge,
                frame.iteration,
                self.nbytes,
                self.dtype_code,
                len(self.dims),
                0,
                tag,
            )
        except struct.error as reason:
            raise WireError(
                f"a {frame.kind.name} frame has a field out of range ({reason}): expected step < "
                f"2**64, edge and iteration < 2**32, got {frame.step}, {frame.edge}, "
                f"{frame.iteration}"
            ) from None
        dims = self.dims
        return fixed + struct.pack(f"<{len(dims)}Q", *dims) if dims else fixed


def dtype_of(code: int) -> np.dtype[Any]:
    """Return the dtype of a code.

    Raises:
        WireError: if there is no such code.
    """
    dtype = NUMPY_OF_CODE.get(code)
    if dtype is None:
        raise WireError(f"there is no dtype code {code}")
    return dtype


def code_of(dtype: np.dtype[Any]) -> int:
    """Return the code of a dtype.

    Raises:
        WireError: if arrays of it cannot be sent.
    """
    code = CODE_OF_NUMPY.get(dtype)
    if code is None:
        raise WireError(
            f"an array of {dtype} cannot be sent: expected one of {', '.join(DTYPE_CODES)}"
        )
    return code


def encode(frame: Frame) -> Encoded:
    """Return ``frame`` ready for sending; its payload is not copied where it is contiguous.

    Raises:
        WireError: if the payload does not belong to the kind, or cannot be sent.
    """
    payload = frame.payload
    if frame.flags & ~(FLAG_DEAD | FLAG_REPLY):
        raise WireError(f"a {frame.kind.name} frame has unknown flags {frame.flags:#x}")
    if payload is None:
        if frame.kind in TENSOR_KINDS and not frame.dead:
            raise WireError(
                f"a {frame.kind.name} frame has no payload: only dead tensors have none"
            )
        return Encoded(frame, RAW, (), None)
    if frame.kind in TENSOR_KINDS:
        return _encode_tensor(frame, np.asarray(payload))
    if frame.kind is Kind.BUNDLE:
        return Encoded(frame, RAW, (), payload)
    if frame.kind not in _TEXT_KINDS:
        raise WireError(f"a {frame.kind.name} frame carries no payload, got {type(payload)}")
    body = np.frombuffer(payload, np.uint8)
    if body.size > MAX_TEXT_BYTES:
        raise WireError(
            f"a {frame.kind.name} frame carries at most {MAX_TEXT_BYTES} bytes, got {body.size}"
        )
    return Encoded(frame, RAW, (), body)


def _encode_tensor(frame: Frame, array: np.ndarray[Any, Any]) -> Encoded:
    if frame.dead:
        raise WireError("a dead tensor carries no payload")
    if array.ndim > MAX_RANK:
        raise WireError(f"tensors of at most {MAX_RANK} dimensions travel, got {array.ndim}")
    dims = array.shape
    dtype = array.dtype
    if not dtype.isnative:
        dtype = dtype.newbyteorder("=")
        array = array.astype(dtype)
    code = code_of(dtype)
    if code == STRING:
        return Encoded(frame, code, dims, _pack_strings(array))
    flat = np.ascontiguousarray(array).reshape(-1)
    return Encoded(frame, code, dims, flat.view(np.uint8))


def _pack_strings(array: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    items = array.reshape(-1).tolist()
    wrong = next((item for item in items if not isinstance(item, bytes)), None)
    if wrong is not None:
        raise WireError(f"string tensors hold bytes, got an element of type {type(wrong).__name__}")
    lengths = np.fromiter(map(len, items), "<u8", len(items))
    return np.frombuffer(lengths.tobytes() + b"".join(items), np.uint8)


def parse_header(message: Any) -> Header:
    """Return the checked header at the start of ``message``.

    Args:
        message: A buffer of bytes: the header, and the payload where it does not travel apart.

    Raises:
        WireError: if anything is not as it must be. Nothing was allocated then.
    """
    view = memoryview(message)
    if view.nbytes < HEADER_BYTES:
        raise WireError(
            f"a message of {view.nbytes} bytes is no frame: expected at least {HEADER_BYTES}"
        )
    fields = HEADER.unpack_from(view)
    magic, version, kind_code, flags, step, edge, iteration, nbytes, code, rank, zero, tag = fields
    if magic != MAGIC:
        raise WireError(f"a message starts with {magic!r}, expected {MAGIC!r}: not from Headrace")
    if version != VERSION:
        raise WireError(
            f"a frame of version {version} arrived, expected {VERSION}: install the same "
            f"headrace-dist-mpi on every rank"
        )
    kind = KINDS.get(kind_code)
    if kind is None:
        raise WireError(f"a frame of unknown kind {kind_code} arrived")
    if flags & ~_ALL_FLAGS or zero:
        raise WireError(f"a {kind.name} frame has unknown flags {flags:#x} or a used reserve")
    if rank > MAX_RANK:
        raise WireError(f"a {kind.name} frame has {rank} dimensions, at most {MAX_RANK} travel")
    header_bytes = HEADER_BYTES + 8 * rank
    if view.nbytes < header_bytes:
        raise WireError(f"a {kind.name} frame ends within its {rank} dimensions")
    dims = struct.unpack_from(f"<{rank}Q", view, HEADER_BYTES) if rank else ()
    apart = bool(flags & FLAG_APART)
    if apart != bool(tag):
        raise WireError(f"a {kind.name} frame has tag {tag} and the apart flag {apart}")
    inside = view.nbytes - header_bytes
    leased = bool(flags & FLAG_LEASED)
    if leased and (apart or (code == RAW and kind is not Kind.BUNDLE)):
        raise WireError(f"a {kind.name} frame says that a payload is lent that cannot be")
    if inside != (0 if apart else LEASE_BYTES if leased else nbytes):
        raise WireError(
            f"a {kind.name} frame announces {nbytes} bytes "
            f"{'apart' if apart else 'lent' if leased else 'inside'} and has {inside} inside"
        )
    if (apart or leased) and not nbytes:
        raise WireError(
            f"a {kind.name} frame announces an empty payload {'apart' if apart else 'lent'}"
        )
    _check_body(kind, flags, code, dims, nbytes)
    return Header(kind, step, edge, iteration, flags, code, dims, nbytes, tag, header_bytes)


def _check_body(kind: Kind, flags: int, code: int, dims: tuple[int, ...], nbytes: int) -> None:
    dead = bool(flags & FLAG_DEAD)
    if kind not in TENSOR_KINDS or dead:
        limit = MAX_TEXT_BYTES if kind in _TEXT_KINDS else 0
        if code != RAW or dims or nbytes > limit or (dead and kind is not Kind.TENSOR):
            raise WireError(
                f"a {kind.name} frame announces dtype code {code}, dimensions {dims}, {nbytes} "
                f"bytes{', dead' if dead else ''}: expected at most {limit} plain bytes"
            )
        return
    dtype = NUMPY_OF_CODE.get(code)
    if dtype is None:
        raise WireError(f"a TENSOR frame has the unknown dtype code {code}")
    elems = math.prod(dims)
    # Products of the nonzero dimensions alone are bounded too: numpy refuses larger shapes.
    extent = math.prod(dim for dim in dims if dim)
    item_bytes = 8 if code == STRING else dtype.itemsize
    if nbytes > MAX_PAYLOAD_BYTES or extent * item_bytes > MAX_PAYLOAD_BYTES:
        raise WireError(
            f"a TENSOR frame of shape {dims} and {nbytes} bytes is over the limit of "
            f"{MAX_PAYLOAD_BYTES} bytes"
        )
    fits = nbytes >= elems * 8 if code == STRING else nbytes == elems * item_bytes
    if not fits or (code == STRING and not elems and nbytes):
        raise WireError(
            f"a TENSOR frame of {dtype} {dims} announces {nbytes} bytes, expected "
            f"{'at least ' if code == STRING else ''}{elems * item_bytes}"
        )


def allocate(
    header: Header, empty: Callable[..., np.ndarray[Any, Any]] = np.empty
) -> tuple[Any, np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return room for a payload that travels apart: the future array, and its bytes.

    For strings and plain bytes the first is None; ``decode`` makes the payload from the bytes.

    Args:
        header: From ``parse_header``.
        empty: Makes the array of a tensor of numbers from its shape and dtype.
    """
    if header.dtype_code in (RAW, STRING):
        return None, np.empty(header.nbytes, np.uint8)
    array = empty(header.dims, NUMPY_OF_CODE[header.dtype_code])
    return array, array.reshape(-1).view(np.uint8)


def decode(header: Header, body: np.ndarray[Any, np.dtype[np.uint8]], array: Any = None) -> Frame:
    """Return the frame of a checked ``header`` and its payload bytes.

    Args:
        header: From ``parse_header``.
        body: [nbytes], the payload. Numeric tensors share its memory.
        array: What ``allocate`` returned beside ``body``, if that is where it comes from.

    Raises:
        WireError: if the lengths inside a string tensor do not fit.
    """
    payload: Any = None
    if header.kind in TENSOR_KINDS:
        if header.dtype_code == STRING:
            payload = _unpack_strings(header, body)
        elif header.dtype_code != RAW:
            payload = array
            if array is None:
                payload = body.view(NUMPY_OF_CODE[header.dtype_code]).reshape(header.dims)
    elif header.nbytes:
        payload = body if header.kind is Kind.BUNDLE else body.tobytes()
    return Frame(
        header.kind,
        header.step,
        header.edge,
        header.iteration,
        header.flags & ~(FLAG_APART | FLAG_LEASED),
        payload,
    )


def _unpack_strings(
    header: Header, body: np.ndarray[Any, np.dtype[np.uint8]]
) -> np.ndarray[Any, Any]:
    elems = math.prod(header.dims)
    data = body.tobytes()
    lengths = struct.unpack_from(f"<{elems}Q", data)
    start = 8 * elems
    if sum(lengths) != len(data) - start:
        raise WireError(
            f"a string tensor of shape {header.dims} has lengths that add up to {sum(lengths)} "
            f"bytes, but carries {len(data) - start}"
        )
    out = np.empty(elems, object)
    for index, length in enumerate(lengths):
        out[index] = data[start : start + length]
        start += length
    return out.reshape(header.dims)


_NOTHING = np.empty(0, np.uint8)


def parse(message: Any) -> Frame:
    """Return the frame in ``message``, which must hold its payload.

    Raises:
        WireError: if it is not exactly one good frame.
    """
    header = parse_header(message)
    if header.leased:
        raise WireError(f"the payload of a {header.kind.name} frame is lent")
    return parse_body(header, message)


def parse_body(header: Header, message: Any) -> Frame:
    """Return the frame in ``message``, of which the header is checked.

    Raises:
        WireError: if the message does not hold the payload.
    """
    if header.apart:
        raise WireError(f"the payload of a {header.kind.name} frame travels apart")
    if not header.nbytes:
        return decode(header, _NOTHING)
    return decode(header, np.frombuffer(message, np.uint8)[header.header_bytes :])
