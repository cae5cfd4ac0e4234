"""Agreement of the sessions of all ranks, checked where they register steps."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import final

from headrace import Graph
from headrace.errors import ClusterError, ConfigError
from headrace.extend.runtime import Options, disagreement, usage_of


@final
class Agreement:
    """Settings of the sessions that have steps on this task.

    Sessions of several ranks share the variables of a task; where one of them compressed what it
    sends and another did not, nobody could say which numbers are in them.
    """

    def __init__(self) -> None:
        """Know of no sessions."""
        self._asked: dict[tuple[int, int], str | None] = {}
        # Of sessions that change variables here: how far their steps may be behind each other.
        self._ordered: dict[tuple[int, int], str] = {}
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

    def order(self, client: int, session: int, options: Options, graphs: Iterable[Graph]) -> None:
        """Take in what a session asks of the order of steps, if it changes variables of this task.

        Args:
            client: The rank of the session.
            session: Its number there.
            options: Its options.
            graphs: What it registers here.

        Raises:
            ConfigError: if another session does so, and asks for something else.
        """
        if not any(usage_of(graph).changes for graph in graphs):
            return
        mine = options.consistency
        with self._lock:
            # One of the same rank, too: were it taken in until its own rank refuses it, it would
            # stand in the way of those that agree.
            for (rank, other), theirs in self._ordered.items():
                if (rank, other) != (client, session) and theirs != mine:
                    raise ConfigError(disagreement(mine, theirs, f"one of rank {rank}"))
            self._ordered[client, session] = mine

    def lose_client(self, client: int) -> None:
        """Forget all sessions of a rank that is lost."""
        with self._lock:
            self._asked = {key: told for key, told in self._asked.items() if key[0] != client}
            self._ordered = {key: told for key, told in self._ordered.items() if key[0] != client}

    def leave(self, client: int, session: int) -> None:
        """Forget a session."""
        with self._lock:
            self._asked.pop((client, session), None)
            self._ordered.pop((client, session), None)
