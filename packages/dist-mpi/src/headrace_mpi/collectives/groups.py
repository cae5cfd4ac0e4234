"""Which ranks take part in the collectives of this process.

Without a cluster these are all ranks of the job, each of which runs the program with a session of
its own. In a cluster they are the tasks that train: those of the jobs ``chief``, ``master`` and
``worker``. A process that no launcher started is a group of one, and needs no MPI.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, final

from headrace.errors import ClusterError
from headrace.extend.runtime import Wakeup
from headrace.extend.state import block_value, within_block
from headrace_mpi import world
from headrace_mpi.collectives.group import Group
from headrace_mpi.jobs import CHIEFS, WORKER, Layout
from headrace_mpi.launcher import launch
from headrace_mpi.settings import COLLECTIVE_TIMEOUT, START_TIMEOUT
from headrace_mpi.transport.transport import Transport

if TYPE_CHECKING:
    from headrace_mpi.transport.wire import Frame

_TRAINING = (*CHIEFS, WORKER)

_lock = threading.Lock()
# Those of open clusters, the newest last; None where the task of this process takes no part.
_of_clusters: list[Group | None] = []
_of_job: Group | None = None
_chosen: ContextVar[Group | None] = ContextVar("headrace-group", default=None)


def current_group() -> Group:
    """Return the group of this process; starts MPI where a launcher started the process.

    Raises:
        ClusterError: if the task of this process takes no part in collectives, or MPI cannot be
            used.
    """
    global _of_job
    chosen = block_value(_chosen)
    if chosen is not None:
        return chosen
    with _lock:
        if _of_clusters:
            group = _of_clusters[-1]
            if group is None:
                raise ClusterError(
                    "the task of this process takes no part in collectives: those of the jobs "
                    f"{', '.join(_TRAINING)} do"
                )
            return group
        if _of_job is None:
            _of_job = _start()
        return _of_job


def _start() -> Group:
    if launch.detect().launcher == "none":
        return alone()
    job = world.get_world(START_TIMEOUT.read())
    if job.size == 1:
        return alone()
    transport = Transport(job.comm, job.fail, job.take_links())
    group = Group(transport, range(job.size), COLLECTIVE_TIMEOUT.read())
    transport.start()
    # What is added last is closed first.
    job.at_close(transport.close)
    job.at_close(group.close)
    return group


def alone() -> Group:
    """Return a group of one."""
    return Group(_Silence(), (0,), COLLECTIVE_TIMEOUT.read())


def of_cluster(transport: Transport, layout: Layout) -> Group | None:
    """Return the group of the tasks that train, None where this one does not.

    Args:
        transport: Not started yet.
        layout: Which rank plays which task.
    """
    tasks = sorted(
        (_TRAINING.index(task.job), task.task or 0, rank)
        for rank, task in enumerate(layout.own)
        if task.job in _TRAINING
    )
    members = [rank for _, _, rank in tasks]
    if transport.rank not in members:
        return None
    return Group(transport, members, COLLECTIVE_TIMEOUT.read())


def is_alone() -> bool:
    """Whether no other ranks can take part in collectives of this process; does not start MPI."""
    chosen = block_value(_chosen)
    if chosen is not None:
        return chosen.size == 1
    with _lock:
        if _of_clusters:
            group = _of_clusters[-1]
            return group is not None and group.size == 1
    return launch.detect().launcher == "none"


def enter(group: Group | None) -> None:
    """Let collectives run in the group of a cluster until ``leave``."""
    with _lock:
        _of_clusters.append(group)


def leave(group: Group | None) -> None:
    """Let collectives not run in a group any more."""
    with _lock, contextlib.suppress(ValueError):
        _of_clusters.remove(group)


@contextlib.contextmanager
def use_group(group: Group) -> Iterator[None]:
    """Let collectives that are started in a block run in a group, whatever clusters there are."""
    with within_block(_chosen, group):
        yield


def rank() -> int:
    """Return the number of this process among those that train together, from 0.

    In a cluster these are the tasks of the jobs ``chief``, ``master`` and ``worker``, in this
    order; without one all ranks of the job. A process without ``mpirun`` is number 0 of 1.

    Raises:
        ClusterError: if this process takes no part, or MPI cannot be used.
    """
    return current_group().rank


def size() -> int:
    """Return how many processes train together; see ``rank``.

    Raises:
        ClusterError: if this process takes no part, or MPI cannot be used.
    """
    return current_group().size


def local_rank() -> int:
    """Return the number of this process among those of the job on its host, from 0.

    It says which GPU to use where each process has one. Does not start MPI.
    """
    return launch.detect().local_rank


@final
class _Silence:
    """The transport of a group of one: there is nobody to send to."""

    rank = 0

    def on(self, kind: Any, handler: Any) -> None:
        """Expect nothing."""

    def send(self, rank: int, frame: Frame) -> bool:
        """Send nothing, to nobody."""
        return True

    def wait(self, waiter: Wakeup, timeout_s: float | None = None) -> bool:
        """Wait until woken; return whether it was in time."""
        return waiter.wait(timeout_s)

    def is_near(self, rank: int) -> bool:
        """Return nothing of the sort."""
        return False
