"""Fault tolerance: which tasks a cluster goes on without, and until how few workers are left.

Parameter servers hold what the others need: variables and admissions. Their loss ends the job, as
does that of a task of any job but ``worker``. The loss of a worker costs its share of the work
only, where the program says so and MPI tolerates it; where it is that of the chief, another worker
takes its place.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

from headrace.errors import ClusterError, shown
from headrace.extend.devices import DeviceName
from headrace_mpi.jobs import PS, WORKER, Jobs
from headrace_mpi.membership.chief_election import ChiefElection
from headrace_mpi.membership.failure_detector import GONE, process_state

END = "end"
CONTINUE = "continue"
POLICIES = (END, CONTINUE)
# How long a rank that tells of its own failure may take to end.
_OWN_END_S = 3.0
# Set by mpirun --with-ft ulfm.
_TOLERANT = "OMPI_MCA_mpi_ft_enable"


def checked_policy(wanted: Any, size: int, jobs: Jobs) -> str:
    """Return what a program asks for where a worker is lost.

    Args:
        wanted: ``"end"`` or ``"continue"``.
        size: The number of ranks.
        jobs: The jobs of the cluster.

    Raises:
        ClusterError: if it is neither, or the job cannot go on.
    """
    if wanted not in POLICIES:
        raise ClusterError(f"on_worker_loss must be 'end' or 'continue', got {shown(wanted)}")
    if wanted == CONTINUE and size > 1:
        if os.environ.get(_TOLERANT) != "1":
            raise ClusterError(
                "on_worker_loss='continue' needs an MPI that lives on without a rank, and this "
                "job was started without (ULFM): start it with python -m headrace run, without "
                "--no-tolerance, or with mpirun --with-ft ulfm; python -m headrace doctor says "
                "whether this MPI can"
            )
        if jobs.count(WORKER) < 2:
            raise ClusterError(
                f"on_worker_loss='continue' needs a worker beside the chief, and the cluster "
                f"{jobs} has {jobs.count(WORKER)}: start more ranks, or leave it out"
            )
    return str(wanted)


@final
class FaultTolerance:
    """Knows which ranks live, and without which of them the job goes on.

    Attributes:
        election: Knows which of them is the chief.
    """

    def __init__(
        self, policy: str, tasks: Sequence[DeviceName], chief: DeviceName, least: int
    ) -> None:
        """All ranks live.

        Args:
            policy: ``"end"`` or ``"continue"``.
            tasks: The task of each rank.
            chief: The task of the chief.
            least: With how few workers the job goes on, the chief among them if it is one.
        """
        self.election = ChiefElection(tasks, chief)
        # Without a parameter server, the chief has the variables.
        may_move = any(task.job == PS for task in tasks)
        self._spared = {
            rank
            for rank, task in enumerate(tasks)
            if policy == CONTINUE and (may_move if task == chief else task.job == WORKER)
        }
        self._workers = {rank for rank, task in enumerate(tasks) if task.job == WORKER}
        self._least = least
        self._lock = threading.Lock()
        self._lost: set[int] = set()
        self._ending = False

    def may_lose(self, rank: int) -> bool:
        """Whether the job goes on without a rank, as long as enough workers live."""
        return rank in self._spared

    @property
    def lost(self) -> set[int]:
        """The ranks that are lost."""
        with self._lock:
            return set(self._lost)

    @property
    def ending(self) -> bool:
        """Whether a loss ends the job."""
        return self._ending

    def lose(self, rank: int) -> str:
        """Note that a rank is lost.

        Returns:
            Why that ends the job; empty where it goes on.
        """
        self.election.lose(rank)
        with self._lock:
            self._lost.add(rank)
            left = len(self._workers - self._lost)
            if rank not in self._spared:
                self._ending = True
                return "the job needs it"
            if self.election.chief is None:
                self._ending = True
                return "no worker is left that could be the chief"
            if left < self._least:
                self._ending = True
                return f"{left} workers are left, fewer than the {self._least} that are needed"
        return ""


def end_process(pid: int, born: str, *, patient: bool = False) -> None:
    """Kill a process of this host that is lost and still there, such as one that is stopped.

    It must not go on where the others have gone on without it, and ``mpirun`` waits for its end.

    Args:
        pid: Its id.
        born: What ``birth`` returned of it; another process with its id is left alone.
        patient: Whether to let it end by itself first: it may be telling others of its failure.
    """
    if patient:
        later = threading.Timer(_OWN_END_S, end_process, (pid, born))
        later.daemon = True
        later.start()
        return
    if born and birth(pid) == born and process_state(pid) != GONE:
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def birth(pid: int) -> str:
    """Return when a process of this host began, in ticks of the system; empty if unknown."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
