"""The chief: the one process of a job that writes what all of them would write alike.

Where a cluster goes on without a lost chief, another process takes its place. Whoever has something
to do then listens here; the package that joins the processes tells.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

# Variables in which launchers tell a process its rank.
_RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK")

_lock = threading.Lock()
_clusters: list[tuple[object, Callable[[], bool]]] = []
_listeners: list[weakref.WeakMethod[Callable[[], Any]]] = []


def is_chief() -> bool:
    """Whether this process is its job's chief now.

    In a cluster that is who the cluster says, else the first rank of an MPI job; a process without
    either is its own chief.
    """
    if _clusters:
        return _clusters[-1][1]()
    return all(os.environ.get(name, "0") == "0" for name in _RANKS)


def join_cluster(is_chief: Callable[[], bool]) -> Callable[[], None]:
    """Note that this process belongs to a cluster from now on.

    Args:
        is_chief: Returns whether it is the chief of the cluster now.

    Returns:
        What to call when it has left the cluster; calling it again does nothing.
    """
    entry = (object(), is_chief)
    _clusters.append(entry)

    def leave() -> None:
        if entry in _clusters:
            _clusters.remove(entry)

    return leave


def watch_chief(listener: Callable[[], Any]) -> None:
    """Call a method when this process takes the place of a lost chief, as long as its object lives.

    It is called after what the lost chief had in this process was taken back, on a thread that must
    not wait.

    Args:
        listener: A bound method.
    """
    with _lock:
        _listeners[:] = [known for known in _listeners if known() is not None]
        _listeners.append(weakref.WeakMethod(listener))


def tell_chief() -> None:
    """Tell all who listen that this process has taken the place of a lost chief."""
    with _lock:
        found = [known() for known in _listeners]
    for listener in found:
        if listener is not None:
            listener()
