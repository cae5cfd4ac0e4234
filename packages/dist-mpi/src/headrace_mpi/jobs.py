"""Jobs: the tasks of a cluster, and which of them each rank plays.

Ranks play the tasks in the order of the jobs, unless they say which task is theirs. A process that
is alone plays all tasks, so that a program for a cluster runs without ``mpirun`` as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import ClusterError, listing, shown
from headrace.extend.devices import DeviceName

PS = "ps"
WORKER = "worker"
# The jobs whose only task prepares what all share; the first worker does where they are not there.
CHIEFS = ("chief", "master")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Jobs:
    """How many tasks each job of a cluster has.

    Attributes:
        counts: Pairs of the name of a job and its number of tasks.
    """

    counts: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, jobs: Any, size: int) -> Jobs:
        """Read what a program says of the jobs.

        Args:
            jobs: For each job its number of tasks, or a list of their addresses, or a dictionary
                from indices to addresses. One may be None, for all ranks that are left.
            size: The number of ranks; where there is one only, None stands for one task.

        Raises:
            ClusterError: if these are no jobs, or not as many tasks as ranks.
        """
        if not isinstance(jobs, Mapping) or not jobs:
            raise ClusterError(
                "jobs must be a dictionary from names of jobs to numbers of tasks, such as "
                f"{{'ps': 1, 'worker': 2}}, got {shown(jobs)}"
            )
        counts = {name: _count(name, tasks) for name, tasks in jobs.items()}
        rest = [name for name, count in counts.items() if count is None]
        if len(rest) > 1:
            raise ClusterError(f"the ranks that are left cannot go to {len(rest)} jobs: {rest}")
        given = sum(count for count in counts.values() if count is not None)
        if rest:
            counts[rest[0]] = 1 if size == 1 else max(size - given, 1)
        made = cls(tuple((name, count or 0) for name, count in counts.items()))
        if not made.total:
            raise ClusterError(f"a cluster needs at least one task, got {made}")
        if size > 1 and made.total != size:
            raise ClusterError(
                f"the cluster {made} has {made.total} tasks, but the job has {size} ranks\n"
                f"  start it with mpirun -n {made.total}, or name other jobs"
            )
        return made

    @property
    def total(self) -> int:
        """The number of all tasks."""
        return sum(count for _, count in self.counts)

    def count(self, job: str) -> int:
        """Return the number of tasks of a job; 0 for one that is not there."""
        return dict(self.counts).get(job, 0)

    @property
    def tasks(self) -> tuple[DeviceName, ...]:
        """All tasks, in order."""
        return tuple(DeviceName(job, i) for job, count in self.counts for i in range(count))

    @property
    def chief(self) -> DeviceName:
        """The task that by custom prepares what all share."""
        names = (*CHIEFS, WORKER, *(name for name, _ in self.counts))
        return next(DeviceName(name, 0) for name in names if self.count(name))

    def own(self, rank: int, claim: DeviceName | None) -> DeviceName:
        """Return the task that a rank plays first, or a process that is alone.

        Args:
            rank: The rank; None of a process that is alone.
            claim: The task that the rank says is its own.

        Raises:
            ClusterError: if there is no such task.
        """
        if claim is not None:
            if claim not in self.tasks:
                raise ClusterError(
                    f"the cluster {self} has no task {str(claim)!r}; it has "
                    f"{listing(map(str, self.tasks))}"
                )
            return claim
        return self.tasks[rank]

    def __str__(self) -> str:
        """Return the jobs in short: ``ps: 1, worker: 2``."""
        return ", ".join(f"{name}: {count}" for name, count in self.counts)


def _count(name: Any, tasks: Any) -> int | None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ClusterError(f"the name of a job must be letters, digits and _, got {shown(name)}")
    if isinstance(tasks, list | tuple):
        return len(tasks)
    if isinstance(tasks, Mapping):
        if sorted(tasks) != list(range(len(tasks))):
            raise ClusterError(
                f"job {shown(name)} leaves out tasks, it has {sorted(tasks)}: each task is a rank "
                "here"
            )
        return len(tasks)
    if tasks is None:
        return None
    if isinstance(tasks, bool) or not isinstance(tasks, int) or tasks < 0:
        raise ClusterError(
            f"job {shown(name)} must have a whole number >= 0 of tasks, or a list of addresses, "
            "got "
            f"{shown(tasks)}"
        )
    return tasks


def ps_and_workers(ps: Any, size: int) -> Jobs:
    """Return a job ``ps`` of a size, and all other ranks as workers.

    Raises:
        ClusterError: if a job would have no rank.
    """
    if isinstance(ps, bool) or not isinstance(ps, int) or ps < 0:
        raise ClusterError(f"Cluster: ps must be a whole number >= 0, got {shown(ps)}")
    if 1 < size <= ps:
        raise ClusterError(
            f"Cluster: ps={ps} needs at least {ps + 1} ranks ({ps} for the job 'ps', one worker), "
            f"but the job has {size}\n"
            f"  start it with mpirun -n {ps + 1}, or take ps={size - 1}"
        )
    return Jobs(((PS, ps), (WORKER, 1 if size == 1 else size - ps)))


def launched(text: str, size: int) -> Jobs | None:
    """Return the jobs that were named for the launcher; see the setting ``HEADRACE_JOBS``.

    Args:
        text: For each job its number of tasks, as in ``"ps=1,worker=3"``; empty where none was
            named.
        size: The number of ranks.

    Raises:
        ClusterError: if it says something else.
    """
    if not text:
        return None
    pairs = [word.partition("=")[::2] for word in text.split(",")]
    wrong = [f"{name}={count}" for name, count in pairs if not count.isdigit()]
    if wrong:
        raise ClusterError(
            f"HEADRACE_JOBS must name jobs as in ps=1,worker=3, got {shown(text)}: python -m "
            "headrace "
            f"run sets it; unset it otherwise"
        )
    return Jobs.of({name: int(count) for name, count in pairs}, size)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which tasks the ranks play.

    Attributes:
        jobs: All tasks.
        own: For each rank the task as which it runs its program.
    """

    jobs: Jobs
    own: tuple[DeviceName, ...]
    _ranks: dict[DeviceName, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Remember which rank plays which task."""
        ranks = {task: rank for rank in range(len(self.own)) for task in self.tasks(rank)}
        object.__setattr__(self, "_ranks", ranks)

    def task(self, rank: int) -> DeviceName:
        """Return the task as which a rank runs its program."""
        return self.own[rank]

    @property
    def keeper(self) -> int:
        """The rank that keeps what all need: the first of ``ps``, else the chief.

        Its loss ends the job, whatever the others could do without it.
        """
        first = DeviceName(PS, 0)
        return self.rank(first if self.jobs.count(PS) else self.jobs.chief)

    def tasks(self, rank: int) -> Sequence[DeviceName]:
        """Return all tasks that a rank plays."""
        return (self.own[rank],) if len(self.own) > 1 else self.jobs.tasks

    def rank(self, device: DeviceName) -> int:
        """Return the rank that plays the task of a device.

        Raises:
            ClusterError: if the cluster has no such task.
        """
        rank = self._ranks.get(device.task_name)
        if rank is None:
            raise ClusterError(f"the cluster has no task {str(device.task_name)!r}")
        return rank
