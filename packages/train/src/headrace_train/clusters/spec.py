"""Cluster specifications: which tasks a cluster has, and where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, final

from headrace.errors import AttributeValueError, DTypeError, shown


@final
class ClusterSpec:
    """Jobs, and the addresses of their tasks.

    Headrace's ranks find each other through MPI, and never use an address: it is what programs and
    their launchers say of themselves, and how many tasks each job has.

    Example:
        ::

            hr.train.ClusterSpec({"ps": ["a:2222"], "worker": ["b:2222", "c:2222"]})
    """

    def __init__(self, cluster: Any) -> None:
        """Describe a cluster.

        Args:
            cluster: For each job, by name, a list of addresses, or a dictionary from indices of
                tasks to addresses; a ``ClusterDef``; or another ``ClusterSpec``.

        Raises:
            DTypeError: if it is something else.
        """
        if isinstance(cluster, ClusterSpec):
            cluster = cluster.as_dict()
        if isinstance(cluster, Mapping):
            self._jobs = {_text(job, "name of a job"): _tasks(job, t) for job, t in cluster.items()}
        elif hasattr(cluster, "DESCRIPTOR") and cluster.DESCRIPTOR.name == "ClusterDef":
            self._jobs = {job.name: dict(job.tasks) for job in cluster.job}
        else:
            raise DTypeError(
                "a cluster is described by a dictionary from the names of jobs to lists of "
                f"addresses, or by a ClusterDef, got {shown(cluster)}"
            )

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Return how many tasks a job has.

        Raises:
            AttributeValueError: if there is no such job.
        """
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the indices of the tasks of a job, in order.

        Raises:
            AttributeValueError: if there is no such job.
        """
        return sorted(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the address of a task.

        Raises:
            AttributeValueError: if there is no such job or task.
        """
        tasks = self._job(job_name)
        if task_index not in tasks:
            raise AttributeValueError(
                f"job {job_name!r} has no task {shown(task_index)}, it has {sorted(tasks)}"
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Return the addresses of the tasks of a job; None for indices that are left out.

        Raises:
            AttributeValueError: if there is no such job.
        """
        tasks = self._job(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, Any]:
        """Return for each job a list of addresses, or a dictionary where indices are left out."""
        found: dict[str, Any] = {}
        for job, tasks in self._jobs.items():
            dense = bool(tasks) and max(tasks) + 1 == len(tasks)
            found[job] = self.job_tasks(job) if dense else dict(sorted(tasks.items()))
        return found

    def as_cluster_def(self) -> Any:
        """Return a ``ClusterDef``, a message of Protocol Buffers."""
        # lazy: only who asks for messages needs their library
        from headrace_io.protos.pool import message_class

        made = message_class("ClusterDef")()
        for name in sorted(self._jobs):
            job = made.job.add()
            job.name = name
            for index, address in sorted(self._jobs[name].items()):
                job.tasks[index] = address
        return made

    def _job(self, name: str) -> dict[int, str]:
        if name not in self._jobs:
            known = ", ".join(map(repr, self._jobs)) or "none"
            raise AttributeValueError(f"the cluster has no job {name!r}, it has {known}")
        return self._jobs[name]

    def __bool__(self) -> bool:
        """Return whether there are jobs."""
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        """Compare with a specification, or with a dictionary from jobs to dictionaries of tasks."""
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # type: ignore[assignment] # equal to dictionaries, which have none

    def __repr__(self) -> str:
        """Return how to make it."""
        parts = (f"{job!r}: {tasks!r}" for job, tasks in sorted(self.as_dict().items()))
        return f"ClusterSpec({{{', '.join(parts)}}})"


def _tasks(job: Any, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, list | tuple):
        tasks = dict(enumerate(tasks))
    if not isinstance(tasks, Mapping):
        raise DTypeError(
            f"the tasks of job {shown(job)} must be a list of addresses, or a dictionary from "
            "indices "
            f"to addresses, got {shown(tasks)}"
        )
    for index in tasks:
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise DTypeError(
                f"tasks of job {shown(job)} are numbered from 0 up, got {shown(index)}"
            )
    return {index: _text(address, "address of a task") for index, address in tasks.items()}


def _text(value: Any, what: str) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise DTypeError(f"the {what} must be a string, got {shown(value)}")
    return value
