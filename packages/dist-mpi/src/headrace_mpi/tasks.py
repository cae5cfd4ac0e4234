"""Tasks: which part of the cluster each rank plays, and what the ranks tell each other of it.

The first ranks are tasks of the job ``ps``, the others of the job ``worker``. A process that is
alone plays all tasks of a cluster with one worker, so that a program for a cluster runs without
``mpirun`` as well.
"""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.device_name import DeviceName
from headrace.errors import ClusterError, listing, shorten
from headrace.placement.place import Machine

if TYPE_CHECKING:
    from mpi4py import MPI

PS = "ps"
WORKER = "worker"


@dataclass(frozen=True, slots=True)
class Layout:
    """Which tasks the ranks play.

    Attributes:
        size: Number of ranks.
        ps: Number of tasks of the job ``ps``.
    """

    size: int
    ps: int

    def __post_init__(self) -> None:
        """Refuse what is no cluster.

        Raises:
            ClusterError: if a job would have no rank.
        """
        given: object = self.ps
        if isinstance(given, bool) or not isinstance(given, int) or given < 0:
            raise ClusterError(f"Cluster: ps must be a whole number >= 0, got {self.ps!r}")
        if 1 < self.size <= self.ps:
            raise ClusterError(
                f"Cluster: ps={self.ps} needs at least {self.ps + 1} ranks ({self.ps} for the job "
                f"'ps', one worker), but the job has {self.size}\n"
                f"  start it with mpirun -n {self.ps + 1}, or take ps={self.size - 1}"
            )

    @property
    def workers(self) -> int:
        """Number of tasks of the job ``worker``."""
        return 1 if self.size == 1 else self.size - self.ps

    def count(self, job: str) -> int:
        """Return the number of tasks of a job; 0 for one that is not there."""
        return {PS: self.ps, WORKER: self.workers}.get(job, 0)

    def task(self, rank: int) -> DeviceName:
        """Return the task that a rank plays; the worker where it plays all."""
        if self.size == 1 or rank >= self.ps:
            return DeviceName(WORKER, 0 if self.size == 1 else rank - self.ps)
        return DeviceName(PS, rank)

    def tasks(self, rank: int) -> tuple[DeviceName, ...]:
        """Return all tasks that a rank plays."""
        if self.size > 1:
            return (self.task(rank),)
        return (*(DeviceName(PS, i) for i in range(self.ps)), DeviceName(WORKER, 0))

    def rank(self, device: DeviceName) -> int:
        """Return the rank that plays the task of a device.

        Raises:
            ClusterError: if the cluster has no such task.
        """
        job, task = device.job, device.task
        if job is None or task is None or not 0 <= task < self.count(job):
            raise ClusterError(f"the cluster has no task {str(device.task_name)!r}")
        if self.size == 1:
            return 0
        return task if job == PS else self.ps + task


@dataclass(frozen=True, slots=True)
class Member:
    """What a rank tells the others when the cluster starts.

    Attributes:
        rank: Its rank.
        host: The name of its host.
        pid: Its process id.
        ps: The number of ps tasks that its program asked for.
        version: The version of headrace-dist-mpi.
        devices: The names of its devices.
        priorities: For each kind of its devices how much it is preferred.
    """

    rank: int
    host: str
    pid: int
    ps: int
    version: str
    devices: tuple[str, ...]
    priorities: Mapping[str, int]

    def pack(self) -> bytes:
        """Return it as bytes."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(fields).encode()

    @classmethod
    def unpack(cls, data: bytes) -> Member:
        """Read what ``pack`` made."""
        fields = json.loads(data)
        fields["devices"] = tuple(fields["devices"])
        return cls(**fields)


def introduce(rank: int, ps: int, machine: Machine) -> Member:
    """Return what this process tells the others."""
    try:
        release = version("headrace-dist-mpi")
    except PackageNotFoundError:
        release = "unknown"
    return Member(
        rank,
        socket.gethostname(),
        os.getpid(),
        ps,
        release,
        tuple(map(str, machine.devices)),
        dict(machine.priorities),
    )


def meet(comm: MPI.Intracomm, own: Member) -> list[Member]:
    """Exchange introductions with all ranks.

    Raises:
        ClusterError: on every rank, if programs or versions do not agree.
    """
    members = [Member.unpack(data) for data in _gather(comm, own.pack())]
    for what, values in (
        ("Cluster(ps=...)", [str(m.ps) for m in members]),
        ("headrace-dist-mpi", [m.version for m in members]),
    ):
        if len(set(values)) > 1:
            lines = [f"the ranks do not agree on {what}:"]
            lines += [
                f"  {value}: ranks {listing(str(i) for i, v in enumerate(values) if v == value)}"
                for value, _ in Counter(values).most_common()
            ]
            lines.append("  run the same program with the same packages on every rank")
            raise ClusterError(shorten(lines))
    return members


def _gather(comm: MPI.Intracomm, data: bytes) -> list[bytes]:
    from mpi4py import MPI

    size = comm.Get_size()
    counts = np.empty(size, np.int64)
    comm.Allgather(np.array([len(data)], np.int64), counts)
    ends = np.cumsum(counts)
    everything = np.empty(int(ends[-1]), np.uint8)
    room: list[Any] = [everything, counts.tolist(), (ends - counts).tolist(), MPI.BYTE]
    comm.Allgatherv([np.frombuffer(data, np.uint8), MPI.BYTE], room)
    return [everything[end - n : end].tobytes() for n, end in zip(counts, ends, strict=True)]


def joint_machine(own: Machine, members: Sequence[Member]) -> Machine:
    """Return the devices of all tasks, seen from the task of ``own``."""
    devices = [DeviceName.parse(name) for m in members for name in m.devices]
    priorities: dict[str, int] = {}
    for member in members:
        priorities.update(member.priorities)
    priorities.update(own.priorities)
    there = {device.kind for device in devices}
    hints = {kind: hint for kind, hint in own.hints.items() if kind not in there}
    return replace(own, devices=tuple(devices), priorities=priorities, hints=hints)
