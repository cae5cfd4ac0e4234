"""The election of a chief: who is it, and which worker takes its place where it is lost.

Every rank decides this by itself, from who is lost and who has left: losses are told to all, and a
rank that is taken for lost is ended, so that no two that live are the chief.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import final

from headrace.extend.devices import DeviceName
from headrace_mpi.jobs import WORKER


@final
class ChiefElection:
    """The chief, then the workers in the order of their tasks: the first that can be is the chief.

    A worker that has left can not. A chief that has left, its work done, stays the chief.
    """

    def __init__(self, tasks: Sequence[DeviceName], chief: DeviceName) -> None:
        """Nobody is lost, and nobody has left.

        Args:
            tasks: The task of each rank.
            chief: The task of the chief.
        """
        workers = (rank for rank, task in enumerate(tasks) if task.job == WORKER)
        ordered = sorted(workers, key=lambda rank: tasks[rank].task or 0)
        first = [rank for rank, task in enumerate(tasks) if task == chief]
        self._order = tuple(dict.fromkeys([*first, *ordered]))
        self._lock = threading.Lock()
        self._lost: set[int] = set()
        # For each rank that has left, whether it did so as the chief.
        self._left: dict[int, bool] = {}

    @property
    def chief(self) -> int | None:
        """The rank of the chief; None where it is lost and nobody can take its place."""
        with self._lock:
            for rank in self._order:
                if self._left.get(rank, rank not in self._lost):
                    return rank
        return None

    def lose(self, rank: int) -> None:
        """Note that a rank is lost."""
        with self._lock:
            self._lost.add(rank)

    def leave(self, rank: int, *, as_chief: bool) -> None:
        """Note that a rank has done its work.

        Args:
            rank: Which.
            as_chief: Whether it was the chief, as far as it knew.
        """
        with self._lock:
            self._left.setdefault(rank, as_chief)
