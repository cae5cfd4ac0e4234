"""Bundles: small tensors of one step, coalesced into one frame to one rank.

The payload of a BUNDLE frame is a *list* of what it carries, and then the elements::

    0  u32 bytes of the list       for each tensor:
    4  u32 number of tensors       0  u32 edge         8  u16 flags (``FLAG_DEAD``)
    8  the tensors, one after      4  u32 iteration   10  u8  dtype code
       the other                  12  u32 zero        11  u8  rank, and 8 bytes for each dimension

Iterations count from the frame's own, so that the list of a bundle is the same whenever the step
runs, as long as shapes are. Both ends remember what follows from a list: who sends packs nothing
but elements then, and who receives checks a list once. Elements of each tensor begin at a multiple
of 64 bytes; dead tensors have none.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, final

import numpy as np

from headrace_mpi.transport.wire import (
    CODE_OF_NUMPY,
    FLAG_DEAD,
    MAX_PAYLOAD_BYTES,
    MAX_RANK,
    NUMPY_OF_CODE,
    RAW,
    STRING,
    Frame,
    Kind,
    WireError,
    frame_of,
)

_HEAD = struct.Struct("<II")
_ENTRY = struct.Struct("<IIHBBI")
_ALIGN = 64
_BUNDLE = Kind.BUNDLE
# How many lists are remembered; a program has one for each round of each of its steps.
_KNOWN_LISTS = 512

# The edge and iteration of a value.
Spot = tuple[int, int]
_Entry = tuple[int, int, int, tuple[int, ...]]


class Value(NamedTuple):
    """A value of a bundle: the number of its edge, which value of it this is, and the array.

    The array is None where the value is dead.
    """

    edge: int
    iteration: int
    array: Any


def is_bundled(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a dtype can be part of a bundle.

    The size of strings is not known before they are packed, and what cannot be sent at all is to
    fail where it is sent.
    """
    return CODE_OF_NUMPY.get(dtype, STRING) != STRING


@final
class BundlePayload:
    """The payload of a bundle that is to be sent: what is not copied before it is known where to.

    Attributes:
        size: Bytes of the payload.
    """

    __slots__ = ("_arrays", "_layout", "size")

    def __init__(self, layout: _Layout, arrays: Sequence[Any]) -> None:
        self._layout = layout
        self._arrays = arrays
        self.size = layout.size

    def tobytes(self) -> bytes:
        """Return the payload."""
        layout = self._layout
        parts = [layout.list]
        for array, pad in zip(self._arrays, layout.pads, strict=True):
            if array is not None:
                parts.append(array.tobytes())
            if pad:
                parts.append(pad)
        return b"".join(parts)

    def write(self, into: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        """Put the payload into memory, [size]."""
        layout = self._layout
        # Most parts are small, and a slice of this is made in a quarter of the time.
        room = into.data
        room[: len(layout.list)] = layout.list
        for array, (start, stop) in zip(self._arrays, layout.places, strict=True):
            if stop > start:
                room[start:stop] = array.reshape(-1).view(np.uint8).data


@final
class _Layout:
    """What follows from the list of a bundle for who sends.

    Attributes:
        list: The list, filled up with zeros to where the first elements begin.
        places: Where the elements of each tensor are in the payload.
        pads: The zeros behind the elements of each.
        size: Bytes of the payload.
    """

    __slots__ = ("list", "pads", "places", "size")

    def __init__(self, entries: Sequence[_Entry]) -> None:
        parts = []
        for edge, iteration, code, dims in entries:
            if len(dims) > MAX_RANK:
                raise WireError(f"tensors of at most {MAX_RANK} dimensions travel, got {len(dims)}")
            flags = 0 if code else FLAG_DEAD
            parts.append(_ENTRY.pack(edge, iteration, flags, code, len(dims), 0))
            parts.append(struct.pack(f"<{len(dims)}Q", *dims))
        told = b"".join(parts)
        nbytes = _HEAD.size + len(told)
        at = _aligned(nbytes)
        self.list = _HEAD.pack(nbytes, len(entries)) + told + bytes(at - nbytes)
        self.places, self.pads = [], []
        for _, _, code, dims in entries:
            stop = at + _size(code, dims)
            self.places.append((at, stop))
            at = _aligned(stop)
            self.pads.append(bytes(at - stop))
        self.size = at


class _Found(NamedTuple):
    """What follows from the list of a bundle for who receives.

    Attributes:
        tensors: Edge and iteration of each, its dtype (None where it is dead), its dimensions and
            where its elements begin.
        size: Bytes of the payload.
    """

    tensors: list[tuple[Spot, np.dtype[Any] | None, tuple[int, ...], int]]
    size: int


# Larger values travel by themselves, at once and without being copied.
BUNDLED_BYTES = 1 << 20
# As much as is held back: what comes after it travels in the next frame.
MAX_BUNDLE_BYTES = 1 << 22
_layouts: dict[tuple[_Entry, ...], _Layout] = {}
_found: dict[bytes, _Found] = {}


def _layout_of(entries: tuple[_Entry, ...]) -> _Layout:
    layout = _layouts.get(entries)
    if layout is None:
        layout = _Layout(entries)
        if len(_layouts) >= _KNOWN_LISTS:
            _layouts.clear()
        _layouts[entries] = layout
    return layout


def bundle(step: int, values: Sequence[Value]) -> Frame:
    """Return a frame that carries values of one step; they are not copied yet.

    Args:
        step: The step.
        values: At least one; their arrays have a dtype that ``is_bundled``.

    Raises:
        WireError: if one of them has more dimensions than travel.
    """
    first = values[0]
    since = first.iteration
    entries = tuple(
        (
            (edge, iteration - since & 0xFFFFFFFF, RAW, ())
            if array is None
            else (edge, iteration - since & 0xFFFFFFFF, CODE_OF_NUMPY[array.dtype], array.shape)
        )
        for edge, iteration, array in values
    )
    payload = BundlePayload(_layout_of(entries), [array for _, _, array in values])
    return Frame(Kind.BUNDLE, step, first.edge, since, 0, payload)


@final
class BundleTemplate:
    """Bundles of the same edges from step to step: what they looked like last is remembered.

    Any thread may use it.
    """

    __slots__ = ("_edges", "_last")

    def __init__(self, edges: Sequence[int]) -> None:
        """Expect values of edges, the first one of each in their step."""
        self._edges = tuple(edges)
        self._last: tuple[list[tuple[np.dtype[Any], tuple[int, ...]]], _Layout] | None = None

    def bundle(self, step: int, arrays: Sequence[Any]) -> Frame | None:
        """Return a frame that carries arrays, None where they cannot be all that a bundle carries.

        Args:
            step: The step.
            arrays: For each edge its value; they are not copied yet.

        Raises:
            WireError: if one of them has more dimensions than travel.
        """
        last = self._last
        if last is None or not _look_alike(arrays, last[0]):
            last = self._known(arrays)
            if last is None:
                return None
            self._last = last
        return frame_of((_BUNDLE, step, self._edges[0], 0, 0, BundlePayload(last[1], arrays)))

    def _known(
        self, arrays: Sequence[Any]
    ) -> tuple[list[tuple[np.dtype[Any], tuple[int, ...]]], _Layout] | None:
        total = 0
        for array in arrays:
            if type(array) is not np.ndarray:
                return None
            nbytes = array.nbytes
            if nbytes > BUNDLED_BYTES or not is_bundled(array.dtype):
                return None
            total += nbytes
        if total > MAX_BUNDLE_BYTES:
            return None
        told = zip(self._edges, arrays, strict=True)
        layout = _layout_of(tuple((n, 0, CODE_OF_NUMPY[a.dtype], a.shape) for n, a in told))
        return [(array.dtype, array.shape) for array in arrays], layout


def _look_alike(
    arrays: Sequence[Any], expected: Sequence[tuple[np.dtype[Any], tuple[int, ...]]]
) -> bool:
    for array, (dtype, shape) in zip(arrays, expected, strict=True):
        if type(array) is not np.ndarray or array.dtype is not dtype or array.shape != shape:
            return False
    return True


def unbundle(frame: Frame) -> list[tuple[Spot, Any]]:
    """Return what a BUNDLE frame carries: edge and iteration of each value, and the value.

    Args:
        frame: The frame; its payload is [nbytes] uint8, whose memory the arrays share.

    Returns:
        For each value its spot and its array, None where it is dead.

    Raises:
        WireError: if the payload is not exactly one list and the elements that it tells of.
    """
    body = frame.payload
    size = 0 if body is None else body.size
    nbytes = _HEAD.unpack_from(body.data)[0] if size >= _HEAD.size else _HEAD.size
    if size < nbytes or nbytes < _HEAD.size:
        raise WireError(f"a BUNDLE frame of {size} bytes ends within its list")
    told = body[:nbytes].tobytes()
    found = _found.get(told)
    if found is None:
        found = _read(told)
        if len(_found) >= _KNOWN_LISTS:
            _found.clear()
        _found[told] = found
    tensors, expected = found
    if size != expected:
        raise WireError(f"a BUNDLE frame has {size} bytes, but lists tensors for {expected}")
    since = frame.iteration
    if since:
        return [
            (
                (edge, iteration + since & 0xFFFFFFFF),
                None if dtype is None else np.ndarray(dims, dtype, body, start),
            )
            for (edge, iteration), dtype, dims, start in tensors
        ]
    return [
        (spot, None if dtype is None else np.ndarray(dims, dtype, body, start))
        for spot, dtype, dims, start in tensors
    ]


def _read(told: bytes) -> _Found:
    """Return what a list tells; it is checked completely."""
    _, count = _HEAD.unpack_from(told)
    at = _HEAD.size
    begin = _aligned(len(told))
    tensors: list[tuple[Spot, np.dtype[Any] | None, tuple[int, ...], int]] = []
    for _ in range(count):
        if at + _ENTRY.size > len(told):
            raise WireError(f"the list of a BUNDLE frame ends before its {count} tensors")
        edge, iteration, flags, code, rank, zero = _ENTRY.unpack_from(told, at)
        at += _ENTRY.size
        dead = flags == FLAG_DEAD
        if zero or flags & ~FLAG_DEAD or rank > MAX_RANK or at + 8 * rank > len(told):
            raise WireError(
                f"a BUNDLE frame lists a tensor with flags {flags:#x}, {rank} dimensions and a "
                f"reserve of {zero}: expected at most {MAX_RANK} dimensions, all of them there"
            )
        dims = struct.unpack_from(f"<{rank}Q", told, at)
        at += 8 * rank
        dtype = NUMPY_OF_CODE.get(code)
        wrong = (code != RAW or rank) if dead else (dtype is None or code == STRING)
        # NumPy bounds products of the dimensions that are not 0, too.
        extent = math.prod(dim for dim in dims if dim)
        if wrong or (dtype is not None and extent * dtype.itemsize > MAX_PAYLOAD_BYTES):
            raise WireError(
                f"a BUNDLE frame lists a {'dead ' if dead else ''}tensor of dtype code {code} and "
                f"dimensions {dims}: expected numbers, at most {MAX_PAYLOAD_BYTES} bytes of them"
            )
        tensors.append(((edge, iteration), None if dead else dtype, dims, begin))
        begin = _aligned(begin + _size(code, dims))
    if at != len(told):
        raise WireError(f"the list of a BUNDLE frame goes on behind its {count} tensors")
    return _Found(tensors, begin)


def _size(code: int, dims: tuple[int, ...]) -> int:
    return math.prod(dims) * NUMPY_OF_CODE[code].itemsize if code else 0


def _aligned(nbytes: int) -> int:
    return -(-nbytes // _ALIGN) * _ALIGN
