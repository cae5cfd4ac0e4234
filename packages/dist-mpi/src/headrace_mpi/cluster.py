"""The cluster: what a program sees of the MPI job that it runs in."""

from __future__ import annotations

import itertools
import threading
from types import TracebackType
from typing import final

from headrace.errors import ClusterError, listing
from headrace.runtime.options import Options
from headrace.runtime.runtime import Runtime
from headrace.settings import read_settings
from headrace_mpi.node import Node, RankNode, SoloNode
from headrace_mpi.tasks import WORKER, Layout
from headrace_mpi.world import get_world

SCHEME = "mpi:"

_numbers = itertools.count()
_open: dict[str, Cluster] = {}
_lock = threading.Lock()


@final
class Cluster:
    """The ranks of an MPI job as tasks of the jobs ``ps`` and ``worker``.

    The first ``ps`` ranks are ``/job:ps/task:0`` and so on, the others ``/job:worker/task:0`` and
    so on. Every rank of the job makes the cluster; each then serves its devices to the sessions of
    all others in the background. A process without ``mpirun`` plays all tasks itself, with one
    worker.

    All ranks leave the cluster together: at the end of the ``with`` block, or of the program, a
    rank goes on serving until every rank has come so far. An exception on any rank ends all.

    Example:
        ::

            with hr.dist.Cluster(ps=1) as cluster:
                if cluster.job_name == "ps":
                    cluster.serve()
                else:
                    with hr.Session(cluster.target) as session:
                        ...

    Attributes:
        job_name: The job of this rank's task, ``"ps"`` or ``"worker"``.
        task_index: The index of this rank's task in its job.
        target: What a session on this cluster is opened with.
    """

    def __init__(self, ps: int = 1, *, start_deadline_s: float | None = None) -> None:
        """Form the cluster.

        Args:
            ps: Number of ranks for the job ``ps``.
            start_deadline_s: Seconds after which ranks that are still missing are reported and
                the job is ended; by default those of ``HEADRACE_START_TIMEOUT``.

        Raises:
            ClusterError: if there are too few ranks, the ranks' programs do not agree, or MPI
                cannot be used.
        """
        deadline_s = read_settings().start_timeout_s
        if start_deadline_s is not None:
            deadline_s = start_deadline_s
        world = get_world(deadline_s)
        self._world = world
        self._layout = Layout(world.size, ps)
        task = self._layout.task(world.rank)
        self.job_name = task.job or WORKER
        self.task_index = task.task or 0
        self.target = f"{SCHEME}{next(_numbers)}{task}"
        self._node: Node = (
            SoloNode(self._layout) if world.size == 1 else RankNode(world, self._layout, deadline_s)
        )
        self._closed = False
        with _lock:
            _open[self.target] = self
        world.at_close(self.close)

    @property
    def node(self) -> Node:
        """This process's part of the cluster."""
        return self._node

    @property
    def is_chief(self) -> bool:
        """Whether this is the first worker, which by custom prepares what all share."""
        return self.job_name == WORKER and self.task_index == 0

    @property
    def num_workers(self) -> int:
        """Number of tasks of the job ``worker``."""
        return self._layout.workers

    def num_tasks(self, job: str) -> int:
        """Return the number of tasks of a job, 0 if it is not there."""
        return self._layout.count(job)

    @property
    def devices(self) -> tuple[str, ...]:
        """The names of the devices of all tasks."""
        return tuple(map(str, self._node.machine().devices))

    def serve(self) -> None:
        """Serve other ranks until all of them are done.

        For ranks that run no sessions of their own. Sessions that are still open on this rank are
        closed. Returns at once where there are no other ranks.

        Raises:
            ClusterError: if the cluster was closed.
        """
        if self._closed:
            raise ClusterError("the cluster was closed: there is nobody to serve any more")
        self._node.serve()

    def close(self) -> None:
        """Serve until all ranks are done, and leave; does nothing the second time."""
        with _lock:
            if self._closed:
                return
            self._closed = True
            _open.pop(self.target, None)
        self._node.close()
        self._world.forget(self.close)

    def __enter__(self) -> Cluster:
        """Return the cluster, to be left at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave together with all ranks, unless this one fails: then nobody waits."""
        if isinstance(value, SystemExit):
            self._world.hooks.note_exit(value.code)
            if value.code in (None, 0):
                self.close()
        elif value is None:
            self.close()

    def __repr__(self) -> str:
        """Return the task and the size of the jobs."""
        return (
            f"<Cluster of {self.num_tasks('ps')} ps and {self.num_workers} workers; this is "
            f"/job:{self.job_name}/task:{self.task_index}>"
        )


def open_target(target: str, options: Options) -> Runtime:
    """Return a runtime for a session with the target of a cluster.

    Args:
        target: The target.
        options: How the session's steps are planned and run.

    Raises:
        ClusterError: if this process has no open cluster of that target.
    """
    cluster = _open.get(target)
    if cluster is None:
        known = listing(repr(t) for t in _open) or "none"
        raise ClusterError(
            f"this process has no open cluster with the target {target!r} (open: {known}): pass "
            f"the .target of a hr.dist.Cluster(...) that was not closed"
        )
    return cluster.node.open_runtime(options)
