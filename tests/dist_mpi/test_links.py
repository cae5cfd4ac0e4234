"""Memory that ranks of a host share: rings, bells, leases, and what is left of them at the end."""

from __future__ import annotations

import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headrace.extend.runtime import Wakeup
from headrace_mpi.links import doorbell, leases, memory
from headrace_mpi.links.doorbell import Doorbell
from headrace_mpi.links.in_turn import (
    FIRST_WAIT_S,
    LONGEST_PAUSE_S,
    TURN_S,
    WAIT_S,
    InTurn,
)
from headrace_mpi.links.leases import Leases
from headrace_mpi.links.links import Links, open_links
from headrace_mpi.links.ring import (
    MAX_MESSAGE_BYTES,
    RING_BYTES,
    TOTAL_BYTES,
    RingReader,
    RingWriter,
)
from headrace_mpi.transport import wire
from headrace_mpi.transport.patience import Patience
from headrace_mpi.transport.wire import Frame, Kind, WireError

if TYPE_CHECKING:
    from dist_mpi.conftest import RunProgram

pytestmark = pytest.mark.skipif(
    not doorbell.is_supported(), reason="this system has no futexes that Headrace knows"
)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def maps() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:headrace")


# -- rings


def a_ring() -> tuple[RingWriter, RingReader]:
    room, count = memoryview(bytearray(TOTAL_BYTES)), memoryview(bytearray(8))
    return RingWriter(room, count), RingReader(room, count)


def test_messages_come_out_as_they_went_in_whatever_their_sizes() -> None:
    writer, reader = a_ring()
    draw = random.Random(7)
    sent: list[bytes] = []
    came: list[bytes] = []
    sizes = [0, 1, 7, 8, 9, 40, 4095, MAX_MESSAGE_BYTES]
    for _ in range(3000):
        message = draw.randbytes(draw.choice([*sizes, draw.randrange(2000)]))
        while not writer.put(message):
            took = reader.get()
            assert took is not None
            came.append(bytes(took))
        sent.append(message)
    while (took := reader.get()) is not None:
        came.append(bytes(took))
    assert sum(map(len, sent)) > 10 * RING_BYTES
    assert came == sent


def test_a_full_ring_takes_nothing_and_loses_nothing() -> None:
    writer, reader = a_ring()
    put = 0
    while writer.put(bytes([put % 251]) * 1000):
        put += 1
    assert put == RING_BYTES // 1008
    for index in range(put):
        took = reader.get()
        assert took == bytes([index % 251]) * 1000
    assert reader.get() is None
    assert not reader.waiting


def test_a_ring_gives_several_messages_at_once() -> None:
    writer, reader = a_ring()
    sent = [bytes([number]) * (100 * number) for number in range(60)]
    came: list[bytes] = []
    for start in range(0, 600, 3):
        for number in range(start, start + 3):
            assert writer.put(sent[number % 60])
        most = 1 + start % 5
        took = reader.drain(most)
        assert len(took) <= most
        came += map(bytes, took)
        came += map(bytes, reader.drain(100))
        assert reader.drain(1) == []
    assert came == sent * 10


def test_a_ring_with_a_length_that_cannot_be_is_reported() -> None:
    room, count = memoryview(bytearray(TOTAL_BYTES)), memoryview(bytearray(8))
    writer, reader = RingWriter(room, count), RingReader(room, count)
    writer.put(b"good")
    room[64:72].cast("Q")[0] = 1 << 40
    with pytest.raises(ValueError, match="its next message has 1099511627776 bytes"):
        reader.get()


# -- bells


def a_bell() -> Doorbell:
    return Doorbell(memoryview(bytearray(doorbell.WORDS_BYTES)))


def test_a_bell_ends_a_sleep_at_once_also_when_it_rang_before() -> None:
    bell = a_bell()
    heard = bell.listen()
    bell.ring()
    start = time.monotonic()
    bell.sleep(heard, 20.0)
    heard = bell.listen()
    threading.Timer(0.05, bell.ring).start()
    bell.sleep(heard, 20.0)
    assert time.monotonic() - start < 10.0


def test_a_sleep_ends_with_its_time_and_others_may_not_ring_then() -> None:
    bell = a_bell()
    heard = bell.listen()
    bell.sleep(heard, 0.01)
    bell.ring()
    assert bell.listen() == heard


def test_a_bell_wakes_all_threads_that_sleep_on_it() -> None:
    bell, done = a_bell(), []

    def sleep(seconds: float) -> None:
        bell.sleep(bell.listen(), seconds)
        done.append(seconds)

    # One that gives up does not make the bell forget the others.
    threads = [threading.Thread(target=sleep, args=(s,)) for s in (0.01, 20.0, 20.0)]
    for thread in threads:
        thread.start()
    threads[0].join(10)
    start = time.monotonic()
    while len(done) < 3 and time.monotonic() - start < 10.0:
        bell.ring()
        time.sleep(0.01)
    assert sorted(done) == [0.01, 20.0, 20.0]
    for thread in threads:
        thread.join(10)


@pytest.mark.parametrize("before", [True, False])
def test_a_waiter_that_sleeps_on_a_bell_is_woken_by_threads(before: bool) -> None:
    bell, waiter = a_bell(), Wakeup()
    start = time.monotonic()
    heard = bell.listen()
    if before:
        waiter.wake()
    else:
        threading.Timer(0.05, waiter.wake).start()
    waiter.sleep_by(bell, heard, 20.0)
    assert waiter.woken
    assert time.monotonic() - start < 10.0


def test_a_system_without_futexes_has_no_bells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorbell, "_calls", lambda: None)
    with pytest.raises(OSError, match="no futexes"):
        a_bell()
    assert open_links(0, ["a", "a"], lambda card: [card, card]) is None


# -- memory


def test_memory_is_found_by_its_word_and_not_without() -> None:
    made = memory.make(10_000)
    found = memory.find(made.address)
    found.view[5] = 7
    found.words[3] = 1 << 50
    assert (made.view[5], made.words[3]) == (7, 1 << 50)
    wrong = made.address._replace(word="00" * 16)
    with pytest.raises(OSError, match="other memory"):
        memory.find(wrong)
    with pytest.raises(OSError, match="another size"):
        memory.find(made.address._replace(nbytes=4096))
    with pytest.raises(FileNotFoundError):
        memory.find(made.address._replace(descriptor=9999))
    count = maps()
    found.close()
    made.close()
    assert maps() == count - 2


# -- links


class Pair:
    """Two ranks of a host in one process."""

    def __init__(self) -> None:
        cards: list[bytes] = [b"", b""]
        here = threading.Barrier(2, timeout=20)
        made: list[Links | None] = [None, None]

        def begin(rank: int) -> None:
            def exchange(card: bytes) -> list[bytes]:
                cards[rank] = card
                here.wait()
                return list(cards)

            made[rank] = open_links(rank, ["a", "a"], exchange)

        threads = [threading.Thread(target=begin, args=(rank,)) for rank in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        assert made[0] is not None
        assert made[1] is not None
        self.ends = (made[0], made[1])

    def close(self) -> None:
        for end in self.ends:
            end.close()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


def test_ranks_of_a_host_are_linked_and_leave_nothing_behind() -> None:
    before = descriptors(), maps()
    pair = Pair()
    for rank, end in enumerate(pair.ends):
        assert end.to[1 - rank].send(b"hello")
        assert end.ranks == 2
    for rank, end in enumerate(pair.ends):
        assert end.waiting
        assert end.receive(8) == [(1 - rank, bytearray(b"hello"))]
        assert not end.waiting
    pair.close()
    assert (descriptors(), maps()) == before


def test_a_look_sees_what_is_there_and_takes_nothing(pair: Pair) -> None:
    reader, peer = pair.ends
    assert not reader.look(3)
    peer.to[0].send(b"one")
    assert reader.look(3)
    assert reader.look(1)
    assert reader.receive(8) == [(1, bytearray(b"one"))]
    assert not reader.look(3)


def test_who_answers_at_once_is_read_first_and_others_are_told(pair: Pair) -> None:
    reader, peer = pair.ends
    in_turn = InTurn(reader)
    assert in_turn.receive(8) == ()
    assert not peer.to[0].passed_over
    peer.to[0].send(b"one")
    peer.to[0].send(b"two")
    assert in_turn.receive(1) == [(1, bytearray(b"one"))]
    assert reader.waiting, "one message is left"
    assert in_turn.receive(8) == [(1, bytearray(b"two"))]
    assert not reader.waiting
    assert not peer.to[0].passed_over
    reader.give_turn(5)
    assert peer.to[0].passed_over


class Rings:
    """Two rings of which the second always has a message, and a clock that looking moves on."""

    ranks = 3
    waiting = True

    def __init__(self) -> None:
        self.now = 0.0
        self.comes_at = float("inf")

    def monotonic(self) -> float:
        return self.now

    def has(self, index: int) -> bool:
        self.now += 1e-5
        return index == 1 or self.now >= self.comes_at

    def give_turn(self, index: int) -> None:
        """Tell nobody."""

    def receive_from(self, index: int, most: int) -> list[tuple[int, bytearray]]:
        if index == 0:
            self.comes_at = float("inf")
        return [(index, bytearray())]


def test_who_lets_the_server_wait_in_vain_is_not_waited_for_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rings = Rings()
    monkeypatch.setattr("headrace_mpi.links.in_turn.time", rings)
    reader = InTurn(rings)  # type: ignore[arg-type]

    def turn() -> tuple[int, float]:
        """Let the first ring have one message; return who is read after it, and how late."""
        rings.comes_at = 0.0
        while reader.receive(1)[0][0] != 0:
            rings.now += TURN_S
        begin = rings.now
        return reader.receive(1)[0][0], rings.now - begin

    waited, ended = [], []
    for _ in range(40):
        index, seconds = turn()
        assert index == 1
        waited.append(seconds > FIRST_WAIT_S)
        ended.append(rings.now)
    assert waited[0]
    ends = [end for end, was in zip(ended, waited, strict=True) if was]
    gaps = [later - earlier for earlier, later in itertools.pairwise(ends)]
    pauses = [min(0.002 * 2**k, LONGEST_PAUSE_S) for k in range(len(gaps))]
    assert pauses.count(LONGEST_PAUSE_S) >= 3
    # Each time it is waited for in the first turn after a pause twice as long, up to the longest.
    for gap, pause in zip(gaps, pauses, strict=True):
        assert pause <= gap < pause + TURN_S + 2 * FIRST_WAIT_S
    # In the end that is in one of many turns, each of which takes one of another rank's.
    assert sum(waited[20:]) <= 4 < sum(waited)
    # Who answers again is waited for again, the first time longer than later.
    rings.now += LONGEST_PAUSE_S
    rings.comes_at = 0.0
    while reader.receive(1)[0][0] != 0:
        rings.now += TURN_S
    rings.comes_at = rings.now + (WAIT_S + FIRST_WAIT_S) / 2
    assert reader.receive(1)[0][0] == 0
    rings.comes_at = rings.now + (WAIT_S + FIRST_WAIT_S) / 2
    assert reader.receive(1)[0][0] == 1


def test_a_rank_that_does_not_read_gets_all_in_order_later(pair: Pair) -> None:
    sender, receiver = pair.ends
    messages = [bytes([i % 256]) * 5000 for i in range(200)]
    went = [sender.to[1].send(message) for message in messages]
    assert (went[0], went[-1]) == (True, False)
    came: list[bytes] = []
    while len(came) < len(messages):
        found = receiver.receive(16)
        assert found
        came += [bytes(message) for _, message in found]
        sender.to[1].push()
    assert came == messages
    assert sender.to[1].push()


def test_what_a_lost_rank_did_not_read_is_dropped(pair: Pair) -> None:
    link = pair.ends[0].to[1]
    while link.send(bytes(30_000)):
        pass
    assert not link.push()
    link.drop()
    assert link.push()


def test_hosts_and_settings_decide_who_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_links(0, ["a", "b"], lambda card: [card, b""]) is None
    monkeypatch.setenv("HEADRACE_SHARE_MEMORY", "0")
    assert open_links(0, ["a", "a"], lambda card: [card, b""]) is None
    monkeypatch.setenv("HEADRACE_SHARE_MEMORY", "1")
    # The other rank has no inbox, or one that is not to be seen from here.
    for card in (b"", b'[1, 9999, 4096, "00"]'):
        links = open_links(0, ["a", "a"], lambda own, card=card: [own, card])
        assert links is not None
        assert not links.to
        links.close()


# -- leases


class Me:
    """This process, as a peer of itself."""

    pid = os.getpid()


def lend(owner: Leases, array: np.ndarray) -> tuple[wire.Header, bytes] | None:
    encoded = wire.encode(Frame(Kind.TENSOR, 3, 1, payload=array))
    card = owner.lend(1, encoded)
    if card is None:
        return None
    message = encoded.header(lease=True) + card
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
    card = owner.lend(1, encoded)
    assert card is not None
    header = wire.parse_header(encoded.header(lease=True) + card)
    strange = encoded.header(lease=True) + bytes(8) + card[8:16] + bytes(16)
    with pytest.raises(WireError, match="what rank 0 lends cannot be mapped"):
        reader.take(0, header, strange)
    with pytest.raises(WireError, match="rank 5 lends memory, but shares none"):
        reader.take(5, header, encoded.header(lease=True) + card)
    large = wire.encode(Frame(Kind.TENSOR, payload=np.zeros(90_000))).header(lease=True) + card
    with pytest.raises(WireError, match="lends 720000 bytes in a piece of"):
        reader.take(0, wire.parse_header(large), large)
    with pytest.raises(WireError, match="announces 400000 bytes lent and has 0 inside"):
        wire.parse_header(encoded.header(lease=True))
    text = wire.encode(Frame(Kind.ERROR, payload=b"x" * 9)).header(lease=True) + card
    with pytest.raises(WireError, match="a payload is lent that cannot be"):
        wire.parse_header(text)
    with pytest.raises(WireError, match="is lent"):
        wire.parse(encoded.header(lease=True) + card)


# -- patience


def test_ranks_poll_for_a_moment() -> None:
    assert Patience(0).spins(0.0005, moving=False)
    assert not Patience(0).spins(0.0015, moving=False)
    assert Patience(10_000).spins(0.0, moving=True)
    assert not Patience(1).spins(0.01, moving=False)
    for ranks in (0, 2):
        naps = [Patience(ranks).nap_s(idle) for idle in (0.0, 0.004, 0.5, 5.0)]
        assert naps == sorted(naps)
        assert naps[0] < naps[1] < naps[3]
    # Who is rung for when its turn comes need not look before; where only MPI tells, it must.
    assert Patience(2).nap_s(0.0, passed_over=True) > max(naps)
    assert Patience(2, near=False).nap_s(0.0, passed_over=True) < max(naps)


def test_a_core_that_comes_back_late_is_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # A clock of its own: others who want this machine's cores make pauses longer.
    now = 0.0

    def pass_by(seconds: float) -> None:
        nonlocal now
        now += seconds

    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("headrace_mpi.transport.patience.time", clock)
    monkeypatch.setattr("headrace_mpi.transport.patience._yield_core", lambda: pass_by(0.001))
    patience = Patience(1)
    patience.spins(0.0, moving=False)
    assert not patience.spins(0.0, moving=False)
    # Each time it is taken again, it is left to them for longer.
    pauses = []
    for _ in range(4):
        start = now
        while not patience.spins(0.0, moving=False):
            pass_by(0.0002)
        pauses.append(now - start)
    assert pauses[-1] > 2 * pauses[0]


# -- processes

_DEATH = """
import os, signal, sys
from headrace_mpi.links import memory
made = memory.make(1 << 20)
print(*made.address, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_memory_of_a_killed_process_stays_while_it_is_mapped_and_then_goes() -> None:
    def shared_kib() -> int:
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Pss_Shmem"))

    with subprocess.Popen(
        [sys.executable, "-c", _DEATH], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        pid, descriptor, nbytes, word = process.stdout.readline().split()
        before = shared_kib(), maps()
        found = memory.find(memory.Address(int(pid), int(descriptor), int(nbytes), word))
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(20) == -9
    np.frombuffer(found.view, np.uint8)[:] = 3
    assert shared_kib() >= before[0] + 1000
    found.close()
    assert maps() == before[1]
    assert shared_kib() < before[0] + 500


@pytest.mark.needs("mpi")
@pytest.mark.parametrize("share", ["1", "0"])
def test_payloads_of_every_size_pass_between_ranks(run_program: RunProgram, share: str) -> None:
    done = run_program(
        2,
        f"""
        import os
        os.environ["HEADRACE_SHARE_MEMORY"] = "{share}"
        import functools
        from headrace_mpi.links.links import open_links
        from headrace_mpi.membership.members import gather
        links = open_links(world.rank, ["a", "a"], functools.partial(gather, world.comm))
        assert (links is not None) == ({share} == 1)
        near = Transport(world.comm, world.fail, links)
        world.at_close(near.close)
        sizes = [0, 1, 4000, 4096, 5000, 12_000, 70_000, 1_250_000]
        got, waiter = {{}}, Wakeup()
        def arrive(source, frame):
            got[frame.edge] = frame.payload
            if len(got) == 4 * len(sizes):
                waiter.wake()
        near.on(Kind.TENSOR, arrive)
        near.start()
        for edge in range(4 * len(sizes)):
            array = np.arange(sizes[edge % len(sizes)]) * (edge + 1.0)
            near.send(1 - world.rank, Frame(Kind.TENSOR, 1, edge, payload=array))
        assert near.wait(waiter, 30)
        for edge, payload in got.items():
            expected = np.arange(sizes[edge % len(sizes)]) * (edge + 1.0)
            np.testing.assert_array_equal(payload, expected)
        world.comm.Barrier()
        say("good")
        """,
    )
    assert done.code == 0, done.err
    assert done.out.count("good") == 2
