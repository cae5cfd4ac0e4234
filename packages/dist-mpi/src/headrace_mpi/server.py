"""TensorFlow's way to form a cluster: a server for each task, and ``TF_CONFIG``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, final

from headrace.errors import AttributeValueError, ClusterError, DTypeError, shown
from headrace.extend.runtime import set_default_config
from headrace_mpi.cluster import Cluster
from headrace_mpi.server_def import checked_config, is_message, make_server_def, parts_of

_VARIABLE = "TF_CONFIG"


@final
class Server:
    """The task that this process plays in a cluster, as TensorFlow's programs name it.

    Under ``mpirun`` each rank makes the server of one task; addresses are never used, for MPI knows
    where the ranks are. A process without ``mpirun`` plays all tasks.

    Example:
        ::

            server = hr.train.Server(cluster, job_name=FLAGS.job, task_index=FLAGS.index)
            if FLAGS.job == "ps":
                server.join()
            with hr.Session(server.target) as session:
                ...

    Attributes:
        cluster: The cluster; made when the server starts, else None.
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        """Form the cluster together with all other ranks.

        Args:
            server_or_cluster_def: What ``hr.train.ClusterSpec`` takes, or one; or a
                ``hr.train.ServerDef``, of which the other arguments replace parts.
            job_name: The job of this rank's task; may be left out where there is one job.
            task_index: The index of the task in its job; may be left out where it has one task.
            protocol: Ignored: ranks talk through MPI.
            config: The settings of sessions on this server that are given none: an
                ``hr.Config``, an ``hr.ConfigProto``, or a ``ConfigProto`` message.
            start: Whether to form the cluster now; else ``start`` does.

        Raises:
            DTypeError: if this is no cluster.
            AttributeValueError: if it is not clear which task this is.
            ConfigError: if config is something else.
            ClusterError: if there is no such task, the ranks' programs do not agree, or there are
                more or fewer tasks than ranks.
        """
        described = server_or_cluster_def
        if is_message(described, "ServerDef"):
            described, job, index, known, given = parts_of(described)
            protocol = known if protocol is None else protocol
            config = given if config is None else config
            if job_name is None and job:
                job_name, task_index = job, index if task_index is None else task_index
        self._given = config
        self._config = None if config is None else checked_config(config)
        self._protocol = protocol
        self._jobs = _jobs(described)
        if job_name is None:
            if len(self._jobs) != 1:
                raise AttributeValueError(f"job_name must say which of {list(self._jobs)} this is")
            job_name = next(iter(self._jobs))
        if task_index is None:
            tasks = self._jobs.get(job_name, ())
            if len(tasks) > 1:
                raise AttributeValueError(
                    f"job {shown(job_name)} has {len(tasks)} tasks: task_index must say which "
                    "this is"
                )
            task_index = 0
        self._task = (job_name, task_index)
        self.cluster: Cluster | None = None
        if start:
            self.start()

    def start(self) -> None:
        """Form the cluster, if that was not done."""
        if self.cluster is None:
            job, index = self._task
            self.cluster = Cluster(jobs=self._jobs, job_name=job, task_index=index)
            if self._config is not None:
                set_default_config(self.cluster.target, self._config)

    @property
    def server_def(self) -> Any:
        """What this server is, as a ``hr.train.ServerDef``."""
        job, index = self._task
        return make_server_def(self._jobs, job, index, self._protocol, self._given)

    @property
    def target(self) -> str:
        """What a session on this cluster is opened with.

        Raises:
            ClusterError: if the server was not started.
        """
        return self._started().target

    def join(self) -> None:
        """Serve the other ranks until all of them are done."""
        self._started().serve()

    def _started(self) -> Cluster:
        if self.cluster is None:
            raise ClusterError("the server was not started: call its start()")
        return self.cluster

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """Return the server of a cluster with one task, ``/job:local/task:0``.

        Args:
            config: As for a server.
            start: Whether to form the cluster now.

        Raises:
            ClusterError: if this process is one of several ranks.
        """
        return Server({"local": ["localhost:0"]}, config=config, start=start)


class TaskConfig(NamedTuple):
    """What ``TF_CONFIG`` says.

    Attributes:
        cluster: For each job the addresses of its tasks; empty where it names none.
        job_name: The job of this process's task, "" where it names none.
        task_index: The index of the task in its job.
    """

    cluster: dict[str, Any]
    job_name: str
    task_index: int


def tf_config(text: str | None = None) -> TaskConfig:
    """Read what a launcher says of the cluster and of this process, in TensorFlow's form.

    That is a JSON object as ``{"cluster": {"ps": ["a:1"], "worker": ["b:1"]}, "task": {"type":
    "worker", "index": 0}}``; both parts may be missing. ``hr.train.Server(config.cluster,
    config.job_name, config.task_index)`` forms that cluster, and compares it with the ranks.

    Args:
        text: The object; that of the environment's ``TF_CONFIG`` if None.

    Raises:
        ClusterError: if it is no such object, or the cluster has no such task.
    """
    if text is None:
        text = os.environ.get(_VARIABLE, "")
    if not text.strip():
        return TaskConfig({}, "", 0)
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ClusterError(f"{_VARIABLE} is no JSON ({error}): {shown(text, 200)}") from error
    cluster, task = _part(data, "cluster"), _part(data, "task")
    jobs = _jobs(cluster) if cluster else {}
    name, index = task.get("type", ""), task.get("index", 0)
    if not isinstance(name, str) or isinstance(index, bool) or not isinstance(index, int):
        raise ClusterError(
            f"{_VARIABLE}: a task has a 'type', the name of its job, and an 'index', got "
            f"{shown(task, 200)}"
        )
    if jobs and name and not 0 <= index < len(jobs.get(name, ())):
        raise ClusterError(
            f"{_VARIABLE}: the cluster has no task {index} of job {name!r}, it has "
            f"{', '.join(f'{job}: {len(tasks)}' for job, tasks in jobs.items())}"
        )
    return TaskConfig(jobs, name, index)


def _part(data: Any, key: str) -> dict[str, Any]:
    part = data.get(key, {}) if isinstance(data, dict) else None
    if not isinstance(part, dict):
        raise ClusterError(
            f"{_VARIABLE} must be an object with the objects 'cluster' and 'task', got "
            f"{shown(data, 200)}"
        )
    return part


def _jobs(cluster: Any) -> dict[str, Any]:
    """Return the tasks of each job of what describes a cluster."""
    found = cluster.as_dict() if hasattr(cluster, "as_dict") else cluster
    if is_message(found, "ClusterDef"):
        found = {job.name: dict(job.tasks) for job in found.job}
    if not isinstance(found, Mapping) or not all(
        isinstance(name, str) and isinstance(tasks, list | tuple | Mapping)
        for name, tasks in found.items()
    ):
        raise DTypeError(
            "a cluster is described by a dictionary from the names of jobs to lists of addresses, "
            f"or by a hr.train.ClusterSpec, got {shown(cluster)}"
        )
    return dict(found)
