"""What the sessions of all ranks must agree on, checked where they register steps."""

from __future__ import annotations

import threading
from typing import final

from headrace.errors import ClusterError
from headrace.extend.runtime import Options


@final
class Agreement:
    """Settings of the sessions that have steps on this task.

    Sessions of several ranks share the variables of a task; where one of them compressed what it
    sends and another did not, nobody could say which numbers are in them.
    """

    def __init__(self) -> None:
        """Know of no sessions."""
        self._asked: dict[tuple[int, int], str | None] = {}
        self._lock = threading.Lock()

    def join(self, client: int, session: int, options: Options) -> None:
        """Take in a session of a rank.

        Raises:
            ClusterError: if a session of another rank asks for something else.
        """
        mine = options.compress_transfers
        with self._lock:
            for (rank, _), theirs in self._asked.items():
                if rank != client and theirs != mine:
                    raise ClusterError(
                        "the ranks do not agree on Config(compress_transfers=...):\n"
                        f"  {mine!r}: rank {client}\n"
                        f"  {theirs!r}: rank {rank}\n"
                        "  open sessions that are open at one time with the same setting"
                    )
            self._asked[client, session] = mine

    def lose_client(self, client: int) -> None:
        """Forget all sessions of a rank that is lost."""
        with self._lock:
            self._asked = {key: told for key, told in self._asked.items() if key[0] != client}

    def leave(self, client: int, session: int) -> None:
        """Forget a session."""
        with self._lock:
            self._asked.pop((client, session), None)
