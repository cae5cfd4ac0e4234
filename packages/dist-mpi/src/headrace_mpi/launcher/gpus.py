"""One GPU for each rank of a host, unless the program or the launcher says otherwise.

A process sees all GPUs of its host, and would take the first; ranks are to have one each. The
variable ``CUDA_VISIBLE_DEVICES`` says which a process sees, and counts until it first asks the
driver: so it is set when the cluster is made, which comes before sessions.
"""

from __future__ import annotations

import os
from pathlib import Path

from headrace_mpi.launcher.launch import Launch

VARIABLE = "CUDA_VISIBLE_DEVICES"


def host_gpus() -> list[str]:
    """Return the GPUs that this process may use, without starting their driver."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return [name for name in chosen.split(",") if name.strip()]
    return sorted(
        (node.name[6:] for node in Path("/dev").glob("nvidia[0-9]*") if node.name[6:].isdigit()),
        key=int,
    )


def own_gpu(launch: Launch) -> str | None:
    """Return the GPU that a rank is to see; None where it sees those that it was given.

    The ranks of a host take its GPUs in turn, so that some share one where there are fewer.

    Args:
        launch: The place of this process in the job.
    """
    if VARIABLE in os.environ or launch.local_size == 1:
        return None
    gpus = host_gpus()
    return str(launch.local_rank % len(gpus)) if gpus else None


def take_own_gpu(launch: Launch) -> None:
    """See one GPU only, where ``own_gpu`` says which.

    Args:
        launch: The place of this process in the job.
    """
    gpu = own_gpu(launch)
    if gpu is not None:
        os.environ[VARIABLE] = gpu
