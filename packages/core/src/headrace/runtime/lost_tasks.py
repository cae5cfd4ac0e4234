"""Lost tasks: whoever keeps something for a task is told when it is lost and the others go on.

A package that joins tasks tells of a loss here; resources that count on a task, such as those that
count its gradients, listen. Neither needs to know the other.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from typing import Any

from headrace.device_name import DeviceName

_lock = threading.Lock()
_listeners: list[weakref.WeakMethod[Callable[[DeviceName], Any]]] = []
_clusters: list[object] = []
# Those without which a cluster that this process still belongs to goes on.
_lost: list[DeviceName] = []


def watch_losses(listener: Callable[[DeviceName], Any]) -> None:
    """Call a method with the task of each loss, for as long as its object lives.

    Of tasks that are lost already it is told at once. It is called after the steps of that task's
    sessions were cancelled here, on a thread that must not wait.

    Args:
        listener: A bound method.
    """
    with _lock:
        _listeners[:] = [known for known in _listeners if known() is not None]
        _listeners.append(weakref.WeakMethod(listener))
        before = list(_lost)
    for task in before:
        listener(task)


def tell_loss(task: DeviceName) -> None:
    """Tell all who listen that a task is lost, and that this process goes on without it."""
    with _lock:
        found = [known() for known in _listeners]
        if _clusters:
            _lost.append(task)
    for listener in found:
        if listener is not None:
            listener(task)


def outlives_tasks() -> bool:
    """Whether this process belongs to a cluster that goes on where a task is lost."""
    return bool(_clusters)


def outlive_tasks() -> Callable[[], None]:
    """Note that this process belongs to such a cluster from now on.

    Returns:
        What to call when it has left the cluster; calling it again does nothing.
    """
    entry = object()
    _clusters.append(entry)

    def leave() -> None:
        with _lock:
            if entry in _clusters:
                _clusters.remove(entry)
            if not _clusters:
                _lost.clear()

    return leave
