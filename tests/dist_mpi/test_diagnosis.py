"""What doctor says about MPI, and that asking starts none."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace_mpi import diagnosis
from tests.children import run_program

OPEN_MPI = "Open MPI v5.0.8, package: Open MPI somewhere"


@pytest.mark.needs("mpi")
def test_the_diagnosis_names_library_and_launcher() -> None:
    facts = diagnosis.diagnose()
    assert "Open MPI" in str(facts["library"])
    assert "Open MPI" in str(facts["launcher"])
    assert Path(str(facts["mpirun"])).is_file()
    assert facts["this process"] == "not started by a launcher"


def test_asking_starts_no_mpi() -> None:
    program = (
        "import sys; from headrace_mpi.diagnosis import diagnose; diagnose();"
        "print('mpi4py' in sys.modules)"
    )
    done = run_program(program)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("library", "launcher", "fits"),
    [
        (OPEN_MPI, "mpirun (Open MPI) 5.0.11", True),
        (OPEN_MPI, "mpirun (Open MPI) 4.1.6", False),
        (OPEN_MPI, "prterun (PRRTE) 3.0.5", True),
        (OPEN_MPI, "HYDRA build details:", False),
        ("MPICH Version: 4.2.1", "mpirun (Open MPI) 5.0.8", False),
        ("MPICH Version: 4.2.1", "HYDRA build details:", True),
        ("something else 3.1", "mpirun (Open MPI) 5.0.8", False),
    ],
)
def test_a_launcher_of_another_library_is_a_problem(
    library: str, launcher: str, *, fits: bool
) -> None:
    problems = diagnosis.mismatch(library, launcher, "/opt/bin/mpirun")
    assert (not problems) == fits
    for problem, fix in problems:
        assert "/opt/bin/mpirun" in problem
        assert "MPI4PY_LIBMPI" in fix


def test_a_missing_launcher_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis.shutil, "which", lambda *args, **kwargs: None)
    facts = diagnosis.diagnose()
    assert facts["mpirun"] is None
    assert any(problem == "there is no mpirun" for problem, _ in facts["problems"])  # type: ignore[attr-defined]


def test_a_broken_environment_is_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "many")
    facts = diagnosis.diagnose()
    assert facts["this process"] == "unknown"
    assert any("OMPI_COMM_WORLD_RANK" in problem for problem, _ in facts["problems"])  # type: ignore[attr-defined]


def test_ranks_that_share_gpus_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "_gpus", lambda: ["0", "1"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    monkeypatch.setattr(diagnosis, "_library", lambda problems: None)
    monkeypatch.setattr(diagnosis, "_launcher", lambda problems: (None, None))
    facts = diagnosis.diagnose()
    assert facts["GPUs"] == "local rank 1 sees 0, 1 (all of the host)"
    assert "shared by 2 ranks" in str(facts["cores and threads"])
    problems = facts["problems"]
    assert isinstance(problems, list)
    ((problem, fix),) = [p for p in problems if "GPU" in p[0]]
    assert problem == "the 2 ranks of this host all see the same GPUs (0, 1)"
    assert "hr.dist.local_rank()" in fix
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    facts = diagnosis.diagnose()
    assert facts["GPUs"] == "local rank 1 sees 0, 1"
    assert not [p for p in facts["problems"] if "GPU" in p[0]]  # type: ignore[attr-defined]
