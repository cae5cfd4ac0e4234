"""The cluster: what a program sees of the MPI job that it runs in."""

from __future__ import annotations

import itertools
import threading
from types import TracebackType
from typing import Any, final

from headrace.errors import ClusterError, listing, shown
from headrace.extend.devices import DeviceName
from headrace.extend.runtime import Options, Runtime, join_cluster
from headrace_mpi.jobs import WORKER, Jobs, launched, ps_and_workers
from headrace_mpi.membership.fault_tolerance import END, checked_policy
from headrace_mpi.node import Node, RankNode, SoloNode
from headrace_mpi.settings import JOBS, START_TIMEOUT
from headrace_mpi.world import get_world

SCHEME = "mpi:"

_numbers = itertools.count()
_open: dict[str, Cluster] = {}
_lock = threading.Lock()


@final
class Cluster:
    """The ranks of an MPI job as tasks, by default of the jobs ``ps`` and ``worker``.

    The first ``ps`` ranks are ``/job:ps/task:0`` and so on, the others ``/job:worker/task:0`` and
    so on; with ``jobs=`` there may be any jobs. Every rank of the job makes the cluster; each then
    serves its devices to the sessions of all others in the background. A process without
    ``mpirun`` plays all tasks itself, with one worker.

    All ranks leave the cluster together: at the end of the ``with`` block, or of the program, a
    rank goes on serving until every rank has come so far. An exception on any rank ends all, unless
    it is on a worker and the cluster was made with ``on_worker_loss="continue"``.

    Example:
        ::

            with hr.dist.Cluster(ps=1) as cluster:
                if cluster.job_name == "ps":
                    cluster.serve()
                else:
                    with hr.Session(cluster.target) as session:
                        ...

    Attributes:
        job_name: The job of this rank's task, such as ``"ps"`` or ``"worker"``.
        task_index: The index of this rank's task in its job.
        target: What a session on this cluster is opened with.
    """

    def __init__(
        self,
        ps: int | None = None,
        *,
        jobs: Any = None,
        job_name: str | None = None,
        task_index: int | None = None,
        start_deadline_s: float | None = None,
        on_worker_loss: str = END,
    ) -> None:
        """Form the cluster.

        Args:
            ps: Number of ranks for the job ``ps``. All others are workers. If neither it nor
                ``jobs`` is given, the jobs are those named for ``python -m headrace run``, else
                there is one ``ps``.
            jobs: For each job, by name, its number of tasks, or a list of their addresses: what
                ``hr.train.ClusterSpec`` takes, or one. One number may be None, for all ranks that
                are left. Ranks play the tasks in this order.
            job_name: The job of this rank's task, where ranks do not play the tasks in order. It
                is to be given on all ranks or none.
            task_index: The index of this rank's task in its job; 0 if the job has one task only.
            start_deadline_s: Seconds after which ranks that are still missing are reported and
                the job is ended; by default those of ``HEADRACE_START_TIMEOUT``.
            on_worker_loss: "end" to end the job where any rank is lost; "continue" to go on
                without a worker that is killed, leaves, fails or stops. Where that was the chief,
                the first worker that is left takes its place (``is_chief``), as long as there is a
                ``ps`` that has the variables; a chief whose program raises an exception ends the
                job. The loss of a task of another job ends the job in any case. Needs a launch that
                tolerates faults, as ``python -m headrace run`` does.

        Raises:
            ClusterError: if there are too few or too many ranks, the ranks' programs do not
                agree, there is no such task, MPI cannot be used, or cannot go on without a rank.
        """
        deadline_s = START_TIMEOUT.read()
        if start_deadline_s is not None:
            deadline_s = start_deadline_s
        if ps is not None and jobs is not None:
            raise ClusterError(
                f"Cluster takes ps or jobs, got ps={shown(ps)} and jobs={shown(jobs)}"
            )
        world = get_world(deadline_s)
        self._world = world
        named = launched(JOBS.read(), world.size)
        if jobs is not None:
            self._jobs = Jobs.of(jobs.as_dict() if hasattr(jobs, "as_dict") else jobs, world.size)
        elif ps is None and named is not None:
            self._jobs = named
        else:
            self._jobs = ps_and_workers(1 if ps is None else ps, world.size)
        if named is not None and named != self._jobs:
            raise ClusterError(
                f"the program's cluster is {self._jobs}, but it was started with {named}: leave "
                f"the jobs out of Cluster(), or out of python -m headrace run"
            )
        policy = checked_policy(on_worker_loss, world.size, self._jobs)
        claim = _claim(self._jobs, job_name, task_index)
        if world.size == 1 and claim is None:
            claim = self._jobs.chief
        task = self._jobs.own(world.rank, claim)
        self.job_name = task.job or WORKER
        self.task_index = task.task or 0
        self.target = f"{SCHEME}{next(_numbers)}{task}"
        self._node: Node = (
            SoloNode(self._jobs, task)
            if world.size == 1
            else RankNode(world, self._jobs, task, deadline_s, policy)
        )
        self._closed = False
        node = self._node
        self._leave_cluster = join_cluster(lambda: node.is_chief)
        with _lock:
            _open[self.target] = self
        world.at_close(self.close)

    @property
    def node(self) -> Node:
        """This process's part of the cluster."""
        return self._node

    @property
    def is_chief(self) -> bool:
        """Whether this task by custom prepares what all share.

        That is the task of the job ``chief`` or ``master``, else the first worker, and where there
        are no workers the first task of all. It changes where a job goes on without its chief; a
        ``MonitoredTrainingSession`` then does what there is to do.
        """
        return self._node.is_chief

    @property
    def num_workers(self) -> int:
        """Number of tasks of the job ``worker``."""
        return self._jobs.count(WORKER)

    def num_tasks(self, job: str) -> int:
        """Return the number of tasks of a job, 0 if it is not there."""
        return self._jobs.count(job)

    @property
    def lost(self) -> tuple[str, ...]:
        """The names of the tasks that were lost, in order, without which the job goes on."""
        return self._node.lost()

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
        self._leave_cluster()
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
        return f"<Cluster of {self._jobs}; this is /job:{self.job_name}/task:{self.task_index}>"


def _claim(jobs: Jobs, job_name: str | None, task_index: int | None) -> DeviceName | None:
    """Return the task that a program says is its own, None where it says nothing."""
    if job_name is None:
        if task_index is not None:
            raise ClusterError(f"task_index={task_index} needs a job_name, too")
        return None
    if task_index is None:
        if jobs.count(job_name) > 1:
            raise ClusterError(
                f"job {shown(job_name)} has {jobs.count(job_name)} tasks: task_index must say which"
            )
        task_index = 0
    return DeviceName(job_name, task_index)


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
