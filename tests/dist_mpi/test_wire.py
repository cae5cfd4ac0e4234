"""Frames: they come out as they went in, and anything else is an error."""

from __future__ import annotations

import struct
import tracemalloc
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace_mpi.transport import wire
from headrace_mpi.transport.bundles import Value, bundle
from headrace_mpi.transport.small_frames import small_frame, small_message
from headrace_mpi.transport.wire import FLAG_DEAD, Frame, Kind, WireError


def message(frame: Frame) -> bytes:
    encoded = wire.encode(frame)
    return encoded.header() + (b"" if encoded.body is None else encoded.body.tobytes())


def tensor(payload: Any, **fields: Any) -> Frame:
    return Frame(Kind.TENSOR, payload=payload, **fields)


SAMPLES = [
    np.array(3.5, np.float32),
    np.arange(12, dtype=np.float64).reshape(3, 4),
    np.arange(6, dtype=np.float16).reshape(1, 2, 3),
    np.arange(5).astype(ml_dtypes.bfloat16),
    np.array([True, False]),
    np.array([1 + 2j], np.complex64),
    np.array([[1 + 2j]], np.complex128),
    np.zeros((0, 3), np.int64),
    *[np.array([1, 2], code) for code in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")],
    np.array([[b"", b"abc"], [b"\0\xff", b"x" * 100]], object),
    np.array(b"scalar", object),
    np.zeros((2, 0), object),
]


@pytest.mark.parametrize("array", SAMPLES, ids=lambda a: f"{a.dtype}{list(a.shape)}")
def test_tensors_survive(array: np.ndarray[Any, Any]) -> None:
    got = wire.parse(message(tensor(array, step=2**63 + 5, edge=7, iteration=9)))
    assert (got.kind, got.step, got.edge, got.iteration) == (Kind.TENSOR, 2**63 + 5, 7, 9)
    assert got.payload.dtype == array.dtype
    assert got.payload.shape == array.shape
    assert got.payload.tolist() == array.tolist()


def test_layouts_travel_as_their_values() -> None:
    base = np.arange(24, dtype=np.int32).reshape(4, 6)
    for array in (base.T, base[::2, ::-1], np.asfortranarray(base), base.astype(">i4")):
        got = wire.parse(message(tensor(array)))
        assert got.payload.tolist() == array.tolist()
        assert got.payload.dtype == np.int32


def test_a_contiguous_tensor_is_not_copied() -> None:
    array = np.arange(1000.0)
    assert np.shares_memory(wire.encode(tensor(array)).body, array)


@pytest.mark.parametrize(
    "frame",
    [
        Frame(Kind.REGISTER, edge=4, payload=b'{"nodes": []}'),
        Frame(Kind.REGISTERED, edge=4),
        Frame(Kind.RUN, step=1, edge=4),
        Frame(Kind.DONE, step=1),
        Frame(Kind.ERROR, step=1, payload="fehlschlag: ä".encode()),
        Frame(Kind.ABORT, step=1, payload=b"why"),
        Frame(Kind.RELEASE, edge=4),
        Frame(Kind.SHUTDOWN),
        Frame(Kind.HEALTH, step=12, flags=wire.FLAG_REPLY),
        Frame(Kind.TENSOR, step=1, edge=2, flags=wire.FLAG_DEAD),
    ],
    ids=lambda frame: frame.kind.name,
)
def test_other_frames_survive(frame: Frame) -> None:
    assert wire.parse(message(frame)) == frame


def test_text_and_deadness_can_be_read() -> None:
    assert Frame(Kind.ERROR, payload="ä".encode()).text == "ä"
    assert Frame(Kind.ERROR, payload=b"\xff").text == "\ufffd"
    assert Frame(Kind.DONE).text == ""
    assert Frame(Kind.TENSOR, flags=wire.FLAG_DEAD).dead


def test_the_dtype_table_is_fixed_and_complete() -> None:
    from headrace import dtypes

    # Levels travel as the integers that stand for them.
    sent = [dtype for dtype in dtypes.ALL if not dtype.is_quantized]
    names = {dtype.name for dtype in sent} - {"resource", "tensor_list"}
    assert set(wire.DTYPE_CODES) == names
    assert len(set(wire.DTYPE_CODES.values())) == len(names)
    assert wire.DTYPE_CODES["float32"] == 2
    assert wire.DTYPE_CODES["string"] == 16


@pytest.mark.parametrize(
    ("frame", "match"),
    [
        (Frame(Kind.TENSOR), "a TENSOR frame has no payload"),
        (tensor(np.zeros(1), flags=wire.FLAG_DEAD), "a dead tensor carries no payload"),
        (tensor(np.zeros(1), flags=64), "unknown flags 0x40"),
        (tensor(np.array(["text"])), "an array of <U4 cannot be sent: expected one of float16"),
        (tensor(np.array([object()])), "string tensors hold bytes, got an element of type object"),
        (Frame(Kind.RUN, step=-1), "field out of range"),
        (Frame(Kind.RUN, edge=2**32), "edge and iteration < 2\\*\\*32, got 0, 4294967296, 0"),
        (Frame(Kind.HEALTH, payload=b"x"), "a HEALTH frame carries no payload"),
    ],
)
def test_what_cannot_be_sent_is_refused(frame: Frame, match: str) -> None:
    with pytest.raises(WireError, match=match):
        message(frame)


GOOD = message(tensor(np.arange(6, dtype=np.float32).reshape(2, 3), step=1, edge=2))


def patched(offset: int, fmt: str, value: int, base: bytes = GOOD) -> bytes:
    data = bytearray(base)
    struct.pack_into(fmt, data, offset, value)
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "a message of 0 bytes is no frame"),
        (GOOD[:39], "a message of 39 bytes is no frame: expected at least 40"),
        (b"HTTP" + GOOD[4:], "starts with b'HTTP', expected b'HRMP'"),
        (patched(4, "<B", 3), "a frame of version 3 arrived, expected 2"),
        (patched(5, "<B", 99), "a frame of unknown kind 99"),
        (patched(6, "<H", 0x80), "unknown flags 0x80"),
        (patched(34, "<H", 1), "a used reserve"),
        (patched(33, "<B", 65), "65 dimensions, at most 64 travel"),
        (patched(33, "<B", 9), "ends within its 9 dimensions"),
        (patched(24, "<Q", 2**60), "announces 1152921504606846976 bytes inside and has 24 inside"),
        (GOOD[:-1], "announces 24 bytes inside and has 23 inside"),
        (GOOD + b"x", "announces 24 bytes inside and has 25 inside"),
        (patched(32, "<B", 200), "unknown dtype code 200"),
        (patched(40, "<Q", 3), "of float32 .3, 3. announces 24 bytes, expected 36"),
        (patched(36, "<I", 5), "has tag 5 and the apart flag False"),
        (patched(5, "<B", Kind.DONE), "a DONE frame announces dtype code 2"),
        (patched(6, "<H", wire.FLAG_DEAD), "announces dtype code 2, .* dead"),
    ],
)
def test_bad_frames_are_errors(data: bytes, match: str) -> None:
    with pytest.raises(WireError, match=match):
        wire.parse(data)


def apart_header(dims: tuple[int, ...], nbytes: int, code: int = 2) -> bytes:
    fixed = struct.pack(
        "<4sBBHQIIQBBHI",
        *(
            b"HRMP",
            wire.VERSION,
            Kind.TENSOR,
            wire.FLAG_APART,
            1,
            2,
            0,
            nbytes,
            code,
            len(dims),
            0,
            7,
        ),
    )
    return fixed + struct.pack(f"<{len(dims)}Q", *dims)


def test_a_payload_apart_keeps_its_header() -> None:
    encoded = wire.encode(tensor(np.arange(6, dtype=np.float32).reshape(2, 3), step=1, edge=2))
    header = wire.parse_header(encoded.header(tag=7))
    assert (header.apart, header.tag, header.nbytes, header.dims) == (True, 7, 24, (2, 3))
    array, body = wire.allocate(header)
    body[:] = encoded.body
    assert wire.decode(header, body, array).payload.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("dims", "nbytes", "match"),
    [
        ((2**62, 4), 2**64 - 16, "is over the limit of 1099511627776 bytes"),
        ((2**63, 2**63, 0), 0, "announces an empty payload apart"),
        ((2**40,), 2**42, "is over the limit"),
        ((2**32, 2**32), 16, "is over the limit"),
        ((4,), 2**20, "announces 1048576 bytes, expected 16"),
    ],
)
def test_huge_announcements_allocate_nothing(
    dims: tuple[int, ...], nbytes: int, match: str
) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError, match=match):
            wire.parse_header(apart_header(dims, nbytes))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("lengths", [(1, 1), (2**63, 2**63 + 3), (4, 0)])
def test_string_lengths_must_add_up(lengths: tuple[int, int]) -> None:
    good = message(tensor(np.array([b"ab", b"c"], object)))
    data = good[:48] + struct.pack("<2Q", *lengths) + good[64:]
    with pytest.raises(WireError, match="has lengths that add up to"):
        wire.parse(data)


def test_a_frame_with_its_payload_apart_is_not_whole() -> None:
    with pytest.raises(WireError, match="the payload of a TENSOR frame travels apart"):
        wire.parse(apart_header((6,), 24))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_do_anything_else(data: bytes) -> None:
    with pytest.raises(WireError, match=r"a (message|frame|[A-Z]+ frame) "):
        wire.parse(data)


STRINGS = message(tensor(np.array([[b"ab", b""], [b"cde", b"f"]], object), step=3))
TEXT = message(Frame(Kind.REGISTER, edge=1, payload=b'{"version": 1}'))


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from([GOOD, STRINGS, TEXT]),
    st.lists(st.tuples(st.integers(4, 80), st.integers(0, 255)), min_size=1, max_size=4),
    st.integers(0, 3),
)
def test_damaged_frames_parse_or_raise_wire_errors(
    base: bytes, changes: list[tuple[int, int]], cut: int
) -> None:
    data = bytearray(base)
    for offset, value in changes:
        data[offset % len(data)] = value
    damaged = bytes(data[: len(data) - cut])
    try:
        frame = wire.parse(damaged)
    except WireError:
        return
    if isinstance(frame.payload, np.ndarray):
        assert frame.payload.nbytes <= 64 * len(damaged)
        assert frame.payload.dtype in {np.dtype(object), *wire.NUMPY_OF_CODE.values()}


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 2**64 - 1), max_size=6),
    st.integers(0, 2**64 - 1),
    st.integers(0, 255),
)
def test_headers_of_any_shape_are_refused_or_exact(dims: list[int], nbytes: int, code: int) -> None:
    try:
        header = wire.parse_header(apart_header(tuple(dims), nbytes, code))
    except WireError:
        return
    assert header.nbytes <= wire.MAX_PAYLOAD_BYTES


SMALL = [
    *(tensor(a, step=2**63 + 5, edge=7, iteration=9) for a in SAMPLES if a.dtype != object),
    *(Frame(Kind.COLLECTIVE, 3, 4, 5, payload=a) for a in SAMPLES if a.dtype != object),
    *(Frame(kind, 3, 4, 5) for kind in (Kind.RUN, Kind.DONE, Kind.HEALTH, Kind.PING)),
    bundle(
        2**63 + 5, [Value(7, 9, np.arange(5)), Value(8, 9, None), Value(9, 9, np.ones(3, "f4"))]
    ),
]


@pytest.mark.parametrize("frame", SMALL, ids=range(len(SMALL)))
def test_small_frames_are_the_same_bytes_by_the_short_way(frame: Frame) -> None:
    made = small_message(frame, 1000)
    assert made == message(frame)
    read = small_frame(bytearray(made))
    expected = wire.parse(made)
    if read is None:
        # Only empty tensors take the long way back.
        assert not expected.payload.size
        return
    assert read[:5] == expected[:5]
    if expected.payload is None:
        assert read.payload is None
    else:
        assert read.payload.dtype == expected.payload.dtype
        assert read.payload.shape == expected.payload.shape
        assert read.payload.tobytes() == expected.payload.tobytes()


@pytest.mark.parametrize(
    "frame",
    [
        tensor(np.zeros(200)),
        bundle(1, [Value(1, 0, np.zeros(100)), Value(2, 0, np.zeros(100))]),
        tensor(np.array([b"text"], object)),
        tensor(np.arange(4, dtype=">i4")),
        tensor(2.5),
        tensor(None),
        tensor(None, flags=FLAG_DEAD),
        Frame(Kind.ERROR, payload=b"text"),
        Frame(Kind.COLLECTIVE, payload=np.zeros(200)),
    ],
    ids=[
        "large",
        "bundle",
        "strings",
        "byte order",
        "no array",
        "nothing",
        "dead",
        "text",
        "large collective",
    ],
)
def test_all_other_frames_take_the_long_way(frame: Frame) -> None:
    assert small_message(frame, 1000) is None


def test_numbers_out_of_range_are_refused_by_the_short_way_too() -> None:
    with pytest.raises(WireError, match="a field out of range"):
        small_message(Frame(Kind.DONE, step=2**64), 1000)


@given(data=st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_small_frames_are_read_as_the_long_way_reads_them(data: st.DataObject) -> None:
    made = bytearray(message(data.draw(st.sampled_from(SMALL))))
    for _ in range(data.draw(st.integers(1, 3))):
        made[data.draw(st.integers(0, len(made) - 1))] = data.draw(st.integers(0, 255))
    made = made[: data.draw(st.integers(max(len(made) - 3, 0), len(made)))]
    read = small_frame(made)
    if read is not None:
        expected = wire.parse(made)
        assert read[:5] == expected[:5]
        assert np.array_equal(np.asarray(read.payload).shape, np.asarray(expected.payload).shape)
