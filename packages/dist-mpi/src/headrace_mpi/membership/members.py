"""The members of a cluster: what ranks tell each other when it starts."""

from __future__ import annotations

import json
import os
import socket
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ClusterError, listing, shorten
from headrace.extend.devices import DeviceName
from headrace.extend.runtime import Machine
from headrace_mpi.jobs import Jobs

if TYPE_CHECKING:
    from mpi4py import MPI


# Ranks exchange graphs that the same rules are applied to, and values that NumPy holds.
_COMPARED = ("headrace-core", "headrace-dist-mpi", "headrace-backend-cpu", "numpy")


@dataclass(frozen=True, slots=True)
class Member:
    """What a rank tells the others when the cluster starts.

    Attributes:
        rank: Its rank.
        host: The name of its host.
        pid: Its process id.
        jobs: The jobs of the cluster, as its program says.
        task: The task that it plays.
        versions: Those of Headrace's packages, of NumPy and of Python.
        devices: The names of its devices.
        priorities: For each kind of its devices how much it is preferred.
        on_worker_loss: "continue" where the job is to go on without a worker, else "end".
    """

    rank: int
    host: str
    pid: int
    jobs: str
    task: str
    versions: str
    devices: tuple[str, ...]
    priorities: Mapping[str, int]
    on_worker_loss: str = "end"

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


def introduce(
    rank: int, jobs: Jobs, task: DeviceName, machine: Machine, on_worker_loss: str = "end"
) -> Member:
    """Return what this process tells the others."""
    return Member(
        rank,
        socket.gethostname(),
        os.getpid(),
        str(jobs),
        str(task),
        _versions(),
        tuple(map(str, machine.devices)),
        dict(machine.priorities),
        on_worker_loss,
    )


def _versions() -> str:
    """Return the versions of what has to be the same on all ranks, as text."""
    named = [f"{name} {_version_of(name)}" for name in _COMPARED]
    return ", ".join([*named, "Python {}.{}".format(*sys.version_info)])


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def meet(comm: MPI.Intracomm, own: Member) -> list[Member]:
    """Exchange introductions with all ranks.

    Raises:
        ClusterError: on every rank, if programs or versions do not agree, or two ranks play one
            task.
    """
    members = [Member.unpack(data) for data in gather(comm, own.pack())]
    for what, values in (
        ("the jobs of the cluster", [m.jobs for m in members]),
        ("their versions", [m.versions for m in members]),
        ("on_worker_loss", [m.on_worker_loss for m in members]),
    ):
        if len(set(values)) > 1:
            lines = [f"the ranks do not agree on {what}:"]
            lines += [
                f"  {value}: ranks {listing(str(i) for i, v in enumerate(values) if v == value)}"
                for value, _ in Counter(values).most_common()
            ]
            lines.append("  run the same program with the same packages on every rank")
            raise ClusterError(shorten(lines))
    players: dict[str, list[str]] = {}
    for member in members:
        players.setdefault(member.task, []).append(str(member.rank))
    twice = {task: ranks for task, ranks in players.items() if len(ranks) > 1}
    if twice:
        lines = [f"the ranks do not agree on who plays which task of {members[0].jobs}:"]
        lines += [f"  {task}: ranks {listing(ranks)}" for task, ranks in twice.items()]
        lines.append("  give each rank a job_name and task_index of its own, or none of them any")
        raise ClusterError(shorten(lines))
    return members


def gather(comm: MPI.Intracomm, data: bytes) -> list[bytes]:
    """Return what each rank gives; all ranks call it."""
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
