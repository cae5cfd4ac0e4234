"""Detecting the launcher that started this process, and the rank that it was given.

Everything is read from environment variables, so that it is known before MPI is initialised (the
GPU of a local rank has to be chosen then) and can be shown without starting MPI at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Launch:
    """The place of this process in its job, as the launcher tells it.

    Attributes:
        launcher: ``"Open MPI"``, ``"PMIx"``, ``"MVAPICH"``, ``"PMI"``, ``"SLURM"`` or ``"none"``.
        rank: Rank among all processes of the job.
        size: Number of processes of the job.
        local_rank: Rank among the processes of the job on this host.
        local_size: Number of processes of the job on this host.
        job: What tells this job from others on the host; empty where there is no launcher.
        certain: Whether MPI is bound to see the same ``rank`` and ``size``. SLURM sets its
            variables for plain shell scripts too.
    """

    launcher: str = "none"
    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    job: str = ""
    certain: bool = True


@dataclass(frozen=True, slots=True)
class _LauncherVariables:
    """The variables of one launcher; the first that is set of each tuple counts."""

    launcher: str
    rank: str
    size: tuple[str, ...]
    local_rank: tuple[str, ...]
    local_size: tuple[str, ...]
    job: tuple[str, ...]
    certain: bool = True


_LAUNCHERS = (
    _LauncherVariables(
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        ("OMPI_COMM_WORLD_SIZE",),
        ("OMPI_COMM_WORLD_LOCAL_RANK",),
        ("OMPI_COMM_WORLD_LOCAL_SIZE",),
        ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"),
    ),
    _LauncherVariables(
        "MVAPICH",
        "MV2_COMM_WORLD_RANK",
        ("MV2_COMM_WORLD_SIZE",),
        ("MV2_COMM_WORLD_LOCAL_RANK",),
        ("MV2_COMM_WORLD_LOCAL_SIZE",),
        ("SLURM_JOB_ID", "PMI_ID"),
    ),
    _LauncherVariables(
        "PMI",
        "PMI_RANK",
        ("PMI_SIZE",),
        ("MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"),
        ("MPI_LOCALNRANKS", "PMI_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE"),
        ("PMI_JOBID", "HYDI_CONTROL_FD", "PMI_PORT", "SLURM_JOB_ID"),
    ),
    _LauncherVariables(
        "PMIx",
        "PMIX_RANK",
        ("SLURM_NTASKS", "PMIX_SIZE"),
        ("SLURM_LOCALID",),
        ("SLURM_NTASKS_PER_NODE",),
        ("PMIX_NAMESPACE", "SLURM_JOB_ID"),
        certain=False,
    ),
    _LauncherVariables(
        "SLURM",
        "SLURM_PROCID",
        ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"),
        ("SLURM_LOCALID",),
        ("SLURM_NTASKS_PER_NODE",),
        ("SLURM_JOB_ID",),
        certain=False,
    ),
)


def detect(environ: Mapping[str, str] | None = None) -> Launch:
    """Return the place of this process in its job.

    Args:
        environ: The environment to read; by default that of this process.

    Raises:
        ConfigError: if a launcher's variable does not hold what it should.
    """
    env = os.environ if environ is None else environ
    for variables in _LAUNCHERS:
        if variables.rank in env:
            return _read(variables, env)
    return Launch()


def _read(variables: _LauncherVariables, env: Mapping[str, str]) -> Launch:
    rank = _number(env, (variables.rank,), 0)
    size = _number(env, variables.size, 1)
    local_rank = _number(env, variables.local_rank, rank)
    local_size = _number(env, variables.local_size, min(size, local_rank + 1))
    if rank >= max(size, 1):
        raise ConfigError(
            f"{variables.launcher} says that this is rank {rank} of {size} processes: expected a "
            f"rank below the size. Check {variables.rank} and {variables.size[0]}, or unset both "
            f"to run as a single process."
        )
    job = next((env[name] for name in variables.job if name in env), "")
    return Launch(
        variables.launcher, rank, size, local_rank, local_size, _plain(job), variables.certain
    )


def _number(env: Mapping[str, str], names: tuple[str, ...], default: int) -> int:
    for name in names:
        if name in env:
            text = env[name].strip()
            # SLURM writes "2(x3)" or "4,2" for uneven nodes: the first figure is ours or close.
            found = re.fullmatch(r"(\d+)(\(x\d+\))?(,.*)?", text)
            if found is None:
                raise ConfigError(
                    f"the environment variable {name} is {text!r}: expected a whole number >= 0, "
                    f"as set by an MPI launcher. Unset it to run as a single process."
                )
            return int(found.group(1))
    return default


def _plain(job: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.@-]", "_", job)[:60]
