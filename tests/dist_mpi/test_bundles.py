"""Bundles: what goes in comes out, whichever way they travel, and anything else is an error."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from headrace_mpi.transport import bundles, wire
from headrace_mpi.transport.bundles import (
    BUNDLED_BYTES,
    MAX_BUNDLE_BYTES,
    BundleTemplate,
    Value,
    bundle,
    is_bundled,
    unbundle,
)
from headrace_mpi.transport.wire import FLAG_DEAD, Frame, Kind, WireError

ARRAYS = [
    np.arange(3, dtype=np.int8),
    np.zeros((0, 2)),
    np.array(1.5),
    np.ones((2, 3), bool),
    np.arange(5).astype(ml_dtypes.bfloat16),
    np.arange(24, dtype=np.int32).reshape(4, 6)[::2, ::-1],
    np.arange(12, dtype=np.float32).reshape(3, 4).T,
    np.array([1 + 2j]),
]
VALUES = [
    *(Value(i + 1, 4 + i % 2, array) for i, array in enumerate(ARRAYS)),
    Value(2**32 - 1, 3, None),
]


def travelled(frame: Frame) -> Frame:
    """Return a frame as it arrives."""
    return wire.parse(wire.encode(frame).message())


def written(frame: Frame) -> Frame:
    """Return a frame as it arrives through memory that is lent, which was used before."""
    memory = np.full(frame.payload.size, 0xAB, np.uint8)
    frame.payload.write(memory)
    return frame._replace(payload=memory)


def check(values: list[Value], found: list[tuple[tuple[int, int], Any]]) -> None:
    for (edge, iteration, before), (spot, after) in zip(values, found, strict=True):
        assert spot == (edge, iteration)
        assert (before is None) == (after is None)
        if before is not None:
            assert (after.dtype, after.shape) == (before.dtype, before.shape)
            assert after.tobytes() == before.tobytes()
            assert after.flags.aligned


def turned(array: Any, places: int) -> Any:
    """Return an array of the same layout with other elements."""
    out = np.empty_like(array)
    out[...] = np.roll(array, places)
    return out


@pytest.mark.parametrize("way", [travelled, written])
def test_a_bundle_gives_back_its_values(way: Any) -> None:
    # The second one goes by what is remembered of the first.
    for turn in range(2):
        values = [v if v.array is None else v._replace(array=turned(v.array, turn)) for v in VALUES]
        made = bundle(7, values)
        assert (made.kind, made.step, made.edge, made.iteration) == (Kind.BUNDLE, 7, 1, 4)
        check(values, unbundle(way(made)))


ANY = arrays_of.arrays(
    st.sampled_from([np.dtype(c) for c in ("f4", "f8", "i1", "u2", "i8", "?", "c8")]),
    arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.builds(Value, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.none() | ANY),
        min_size=1,
        max_size=9,
    )
)
def test_any_values_travel_together(values: list[Value]) -> None:
    check(values, unbundle(travelled(bundle(1, values))))


def test_elements_lie_apart_and_whatever_comes_shares_the_memory_of_the_frame() -> None:
    frame = written(bundle(1, VALUES))
    found = [array for _, array in unbundle(frame) if array is not None and array.size]
    places = {array.ctypes.data - frame.payload.ctypes.data for array in found}
    assert len(places) == sum(a.size > 0 for a in ARRAYS)
    assert all(place % 64 == 0 for place in places)


def test_strings_and_what_cannot_be_sent_are_not_bundled() -> None:
    assert not is_bundled(np.dtype(object))
    assert not is_bundled(np.dtype("datetime64[s]"))
    assert not is_bundled(np.dtype(">f4"))
    assert all(is_bundled(array.dtype) for array in ARRAYS)


def test_only_so_many_lists_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundles, "_KNOWN_LISTS", 4)
    monkeypatch.setattr(bundles, "_layouts", {})
    monkeypatch.setattr(bundles, "_found", {})
    for edge in range(20):
        values = [Value(edge, 0, np.arange(3)), Value(edge + 1, 0, None)]
        check(values, unbundle(travelled(bundle(1, values))))
        assert len(bundles._layouts) <= 4
        assert len(bundles._found) <= 4


@pytest.mark.parametrize("way", [travelled, written])
def test_a_form_follows_what_the_arrays_of_a_step_look_like(way: Any) -> None:
    template = BundleTemplate(range(1, len(ARRAYS) + 1))
    # As in the step before, in other dtypes and shapes, and as in the first step again.
    for step, turn in enumerate([0, 0, 1, 1, 0]):
        arrays = ARRAYS[turn:] + ARRAYS[:turn]
        values = [Value(i + 1, 0, array) for i, array in enumerate(arrays)]
        made = template.bundle(step, arrays)
        assert made is not None
        assert made[:5] == bundle(step, values)[:5]
        assert made.payload.tobytes() == bundle(step, values).payload.tobytes()
        check(values, unbundle(way(made)))


@pytest.mark.parametrize(
    "other",
    [
        np.zeros(BUNDLED_BYTES + 1, np.uint8),
        np.array([b"a"], object),
        np.zeros(3, ">f4"),
        np.float32(1),
        None,
    ],
    ids=["large", "string", "byte order", "no array", "dead"],
)
def test_a_form_takes_nothing_that_cannot_be_all_of_a_bundle(other: Any) -> None:
    template = BundleTemplate([3, 4])
    good = [np.zeros(3, np.float32), np.zeros(3, np.float32)]
    assert template.bundle(1, good) is not None
    assert template.bundle(2, [good[0], other]) is None
    assert template.bundle(3, good) is not None


def test_a_form_takes_no_more_than_a_bundle_holds_back() -> None:
    count = MAX_BUNDLE_BYTES // BUNDLED_BYTES
    part = np.zeros(BUNDLED_BYTES, np.uint8)
    assert BundleTemplate(range(count)).bundle(1, [part] * count) is not None
    assert BundleTemplate(range(count + 1)).bundle(1, [part] * count + [np.zeros(1)]) is None


def damaged(change: Any) -> Frame:
    frame = written(bundle(7, [Value(1, 0, np.arange(4.0)), Value(2, 0, np.arange(4.0))]))
    payload = bytearray(frame.payload.tobytes())
    return frame._replace(payload=np.frombuffer(bytes(change(payload)), np.uint8))


def put(at: int, code: str, value: int) -> Any:
    def change(payload: bytearray) -> bytearray:
        struct.pack_into(f"<{code}", payload, at, value)
        return payload

    return change


# The list has 8 bytes in front and 24 for each tensor, of which the dimension is the last 8.
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda p: p[:3], "of 3 bytes ends within its list"),
        (lambda p: p[:20], "of 20 bytes ends within its list"),
        (lambda p: p[:-1], "has 191 bytes, but lists tensors for 192"),
        (lambda p: p + bytes(64), "has 256 bytes, but lists tensors for 192"),
        (put(0, "I", 0), "ends within its list"),
        (put(0, "I", 48), "dimensions, all of them there|ends before its 2 tensors"),
        (put(0, "I", 64), "goes on behind its 2 tensors"),
        (put(4, "I", 3), "ends before its 3 tensors"),
        (put(4, "I", 1), "goes on behind its 1 tensors"),
        (put(16, "H", 4), "flags 0x4"),
        (put(16, "H", FLAG_DEAD), "lists a dead tensor of dtype code 3"),
        (put(18, "B", 99), "dtype code 99"),
        (put(18, "B", wire.STRING), "dtype code 16"),
        (put(18, "B", wire.RAW), "dtype code 0"),
        (put(19, "B", 255), "255 dimensions"),
        (put(20, "I", 1), "reserve of 1"),
        (put(24, "Q", 9), "has 192 bytes, but lists tensors for 256"),
        (put(24, "Q", 2**62), "at most 1099511627776 bytes"),
    ],
)
def test_a_damaged_bundle_is_refused(change: Any, message: str) -> None:
    with pytest.raises(WireError, match=message):
        unbundle(damaged(change))


def test_an_empty_bundle_is_refused() -> None:
    with pytest.raises(WireError, match="of 0 bytes ends within its list"):
        unbundle(Frame(Kind.BUNDLE, 7))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 8))
def test_any_bytes_are_refused_or_exact(data: bytes, cut: int) -> None:
    head = struct.pack("<II", len(data) - len(data) * cut // 10 + 8, cut)
    payload = np.frombuffer(head + data, np.uint8)
    try:
        found = unbundle(Frame(Kind.BUNDLE, 1, payload=payload))
    except WireError:
        return
    assert len(found) == cut
