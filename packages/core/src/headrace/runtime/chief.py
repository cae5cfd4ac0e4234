"""The chief: the one process of a job that writes what all of them would write alike."""

from __future__ import annotations

import os
from collections.abc import Callable

# Variables in which launchers tell a process its rank.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")

_clusters: list[tuple[object, bool]] = []


def is_chief() -> bool:
    """Whether this process is its job's chief.

    In a cluster that is who the cluster says, else the first rank of an MPI job; a process without
    either is its own chief.
    """
    if _clusters:
        return _clusters[-1][1]
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def join_cluster(chief: bool) -> Callable[[], None]:
    """Note that this process belongs to a cluster from now on.

    Args:
        chief: Whether it is the chief of the cluster.

    Returns:
        What to call when it has left the cluster; calling it again does nothing.
    """
    entry = (object(), chief)
    _clusters.append(entry)

    def leave() -> None:
        if entry in _clusters:
            _clusters.remove(entry)

    return leave
