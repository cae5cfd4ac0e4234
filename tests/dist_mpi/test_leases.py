"""Payloads lent in shared memory: they arrive unchanged, and go back."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from headrace_mpi.shared_memory import leases
from headrace_mpi.shared_memory.leases import Leases
from headrace_mpi.transport import wire
from headrace_mpi.transport.wire import Frame, Kind, WireError
from tests.dist_mpi.linked import NEEDS_FUTEXES, descriptors, maps

pytestmark = NEEDS_FUTEXES


class Me:
    """This process, as a peer of itself."""

    pid = os.getpid()


def lend(owner: Leases, array: np.ndarray) -> tuple[wire.Header, bytes] | None:
    encoded = wire.encode(Frame(Kind.TENSOR, 3, 1, payload=array))
    handle = owner.lend(1, encoded)
    if handle is None:
        return None
    message = encoded.header(lease=True) + handle
    return wire.parse_header(message), message


def take(reader: Leases, lent: tuple[wire.Header, bytes]) -> np.ndarray:
    header, message = lent
    return wire.decode(header, reader.take(0, header, message)).payload


@pytest.fixture
def lender() -> Iterator[tuple[Leases, Leases]]:
    owner, reader = Leases({1: Me()}), Leases({0: Me()})
    yield owner, reader
    reader.close()
    owner.close()


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.complex128, np.bool_])
def test_what_is_lent_arrives_unchanged(lender: tuple[Leases, Leases], dtype: type) -> None:
    owner, reader = lender
    array = np.random.default_rng(3).integers(0, 2, (300, 401)).astype(dtype)
    lent = lend(owner, array)
    assert lent is not None
    got = take(reader, lent)
    assert got.dtype == array.dtype
    np.testing.assert_array_equal(got, array)


def test_memory_goes_back_with_the_last_view_and_is_used_again(
    lender: tuple[Leases, Leases],
) -> None:
    owner, reader = lender
    array = np.arange(100_000.0)
    whole = take(reader, lend(owner, array))
    part = whole.reshape(100, 1000)[5:7, ::2]
    before = maps()
    del whole
    assert owner.lent == 1
    again = take(reader, lend(owner, array + 1))
    assert maps() == before + 2
    np.testing.assert_array_equal(part, array.reshape(100, 1000)[5:7, ::2])
    del part, again
    assert owner.lent == 0
    for _ in range(20):
        np.testing.assert_array_equal(take(reader, lend(owner, array)), array)
    assert maps() == before + 2


def test_sizes_that_come_and_go_keep_few_pieces(
    lender: tuple[Leases, Leases], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "MOST_PIECES", 4)
    owner, reader = lender
    before, open_before = maps(), descriptors()
    for size in range(20_000, 2_000_000, 90_000):
        array = np.full(size, size % 120, np.int8)
        np.testing.assert_array_equal(take(reader, lend(owner, array)), array)
    assert descriptors() - open_before <= 4
    # Those of the owner, and those that the reader has not looked at since they were given up.
    assert maps() - before <= 2 * 4 + 1


def test_nothing_is_lent_beyond_the_limits(
    lender: tuple[Leases, Leases], monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, reader = lender
    monkeypatch.setattr(leases, "MOST_PIECES", 2)
    kept = [take(reader, lend(owner, np.zeros(50_000))) for _ in range(2)]
    assert lend(owner, np.zeros(50_000)) is None
    kept.pop()
    assert lend(owner, np.zeros(50_000)) is not None
    monkeypatch.setattr(leases, "MOST_BYTES", 1 << 20)
    assert lend(owner, np.zeros(500_000)) is None
    text = wire.encode(Frame(Kind.TENSOR, payload=np.array([b"x" * 90_000], object)))
    assert owner.lend(1, text) is None


def test_where_there_is_no_memory_nothing_is_lent(
    lender: tuple[Leases, Leases], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    before = descriptors()
    monkeypatch.setattr(os, "posix_fallocate", full)
    assert lend(lender[0], np.zeros(50_000)) is None
    assert descriptors() == before


def test_what_a_lost_rank_holds_is_not_used_again(lender: tuple[Leases, Leases]) -> None:
    owner, reader = lender
    got = take(reader, lend(owner, np.ones(50_000)))
    before = maps()
    owner.reclaim(1)
    assert owner.lent == 0
    assert maps() == before - 1
    other = take(reader, lend(owner, np.zeros(50_000)))
    np.testing.assert_array_equal(got, np.ones(50_000))
    reader.reclaim(0)
    np.testing.assert_array_equal(other, np.zeros(50_000))


def test_a_frame_that_lies_about_a_lease_is_reported(lender: tuple[Leases, Leases]) -> None:
    owner, reader = lender
    encoded = wire.encode(Frame(Kind.TENSOR, payload=np.zeros(50_000)))
    handle = owner.lend(1, encoded)
    assert handle is not None
    header = wire.parse_header(encoded.header(lease=True) + handle)
    strange = encoded.header(lease=True) + bytes(8) + handle[8:16] + bytes(16)
    with pytest.raises(WireError, match="what rank 0 lends cannot be mapped"):
        reader.take(0, header, strange)
    with pytest.raises(WireError, match="rank 5 lends memory, but shares none"):
        reader.take(5, header, encoded.header(lease=True) + handle)
    large = wire.encode(Frame(Kind.TENSOR, payload=np.zeros(90_000))).header(lease=True) + handle
    with pytest.raises(WireError, match="lends 720000 bytes in a piece of"):
        reader.take(0, wire.parse_header(large), large)
    with pytest.raises(WireError, match="announces 400000 bytes lent and has 0 inside"):
        wire.parse_header(encoded.header(lease=True))
    text = wire.encode(Frame(Kind.ERROR, payload=b"x" * 9)).header(lease=True) + handle
    with pytest.raises(WireError, match="a payload is lent that cannot be"):
        wire.parse_header(text)
    with pytest.raises(WireError, match="is lent"):
        wire.parse(encoded.header(lease=True) + handle)
