"""What launchers tell through the environment."""

from __future__ import annotations

import pytest

from headrace.errors import ConfigError
from headrace_mpi.launcher.launch import Launch, detect
from tests.children import run_program

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "5",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-host-12@1",
    "PMIX_RANK": "3",
}
INTEL = {"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2"}
SLURM = {
    "SLURM_PROCID": "4",
    "SLURM_NTASKS": "6",
    "SLURM_LOCALID": "1",
    "SLURM_NTASKS_PER_NODE": "3(x2)",
    "SLURM_JOB_ID": "77",
}
MVAPICH = {"MV2_COMM_WORLD_RANK": "1", "MV2_COMM_WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, Launch()),
        (OPEN_MPI, Launch("Open MPI", 3, 5, 1, 2, "prterun-host-12@1")),
        (INTEL, Launch("PMI", 0, 2, 0, 2, "")),
        (SLURM, Launch("SLURM", 4, 6, 1, 3, "77", certain=False)),
        (MVAPICH, Launch("MVAPICH", 1, 2, 1, 2, "")),
        (OPEN_MPI | SLURM, Launch("Open MPI", 3, 5, 1, 2, "prterun-host-12@1")),
    ],
    ids=["none", "open-mpi", "intel", "slurm", "mvapich", "mpirun-under-slurm"],
)
def test_detect(environ: dict[str, str], expected: Launch) -> None:
    assert detect(environ) == expected


def test_a_variable_that_is_no_number_is_named() -> None:
    with pytest.raises(ConfigError, match=r"OMPI_COMM_WORLD_RANK is 'x': expected a whole number"):
        detect(OPEN_MPI | {"OMPI_COMM_WORLD_RANK": "x"})


def test_a_rank_beyond_the_size_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"rank 5 of 5 processes: expected a rank below"):
        detect(OPEN_MPI | {"OMPI_COMM_WORLD_RANK": "5"})


def test_detecting_imports_no_mpi() -> None:
    program = (
        "import sys, headrace_mpi.launcher.launch as l, headrace_mpi.world; "
        "import headrace_mpi.transport.transport; l.detect(); assert 'mpi4py' not in sys.modules"
    )
    run_program(program)
