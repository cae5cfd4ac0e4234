"""Two ranks of a host in one process, and what they hold of the system."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from headrace_mpi.shared_memory import doorbell
from headrace_mpi.shared_memory.links import Links, open_links

NEEDS_FUTEXES = pytest.mark.skipif(
    not doorbell.is_supported(), reason="this system has no futexes that Headrace knows"
)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def maps() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:headrace")


class Pair:
    """Two ranks of a host in one process."""

    def __init__(self) -> None:
        handles: list[bytes] = [b"", b""]
        here = threading.Barrier(2, timeout=20)
        made: list[Links | None] = [None, None]

        def begin(rank: int) -> None:
            def exchange(handle: bytes) -> list[bytes]:
                handles[rank] = handle
                here.wait()
                return list(handles)

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
