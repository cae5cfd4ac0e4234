"""Links between ranks of a host: what passes through them, and what is left at their end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from headrace_mpi.shared_memory import mapped_memory
from headrace_mpi.shared_memory.links import open_links
from tests.dist_mpi.linked import NEEDS_FUTEXES, Pair, descriptors, maps

if TYPE_CHECKING:
    from tests.dist_mpi.conftest import RunProgram

pytestmark = NEEDS_FUTEXES


def test_memory_is_found_by_its_word_and_not_without() -> None:
    made = mapped_memory.make(10_000)
    found = mapped_memory.find(made.address)
    found.view[5] = 7
    found.words[3] = 1 << 50
    assert (made.view[5], made.words[3]) == (7, 1 << 50)
    wrong = made.address._replace(word="00" * 16)
    with pytest.raises(OSError, match="other memory"):
        mapped_memory.find(wrong)
    with pytest.raises(OSError, match="another size"):
        mapped_memory.find(made.address._replace(nbytes=4096))
    with pytest.raises(FileNotFoundError):
        mapped_memory.find(made.address._replace(descriptor=9999))
    count = maps()
    found.close()
    made.close()
    assert maps() == count - 2


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
    assert open_links(0, ["a", "b"], lambda handle: [handle, b""]) is None
    monkeypatch.setenv("HEADRACE_SHARE_MEMORY", "0")
    assert open_links(0, ["a", "a"], lambda handle: [handle, b""]) is None
    monkeypatch.setenv("HEADRACE_SHARE_MEMORY", "1")
    # The other rank has no inbox, or one that is not to be seen from here.
    for handle in (b"", b'[1, 9999, 4096, "00"]'):
        links = open_links(0, ["a", "a"], lambda own, handle=handle: [own, handle])
        assert links is not None
        assert not links.to
        links.close()


_DEATH = """
import os, signal, sys
from headrace_mpi.shared_memory import mapped_memory
made = mapped_memory.make(1 << 20)
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
        found = mapped_memory.find(
            mapped_memory.Address(int(pid), int(descriptor), int(nbytes), word)
        )
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
        from headrace_mpi.shared_memory.links import open_links
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
