"""What doctor says about MPI, and that asking starts none."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from headrace_mpi import diagnosis
from headrace_mpi.launcher import gpus
from headrace_mpi.launcher.launch import Launch
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


def gpus_told(monkeypatch: pytest.MonkeyPatch, local_rank: int, ranks: int) -> tuple[Any, Any]:
    """Return what is told of the GPUs of a rank, and what is wrong with them."""
    for name, value in (
        ("RANK", 3),
        ("SIZE", 9),
        ("LOCAL_RANK", local_rank),
        ("LOCAL_SIZE", ranks),
    ):
        monkeypatch.setenv(f"OMPI_COMM_WORLD_{name}", str(value))
    facts: Any = diagnosis.diagnose()
    assert ranks == 1 or f"shared by {ranks} ranks" in str(facts["cores and threads"])
    return facts["GPUs"], [problem for problem, _ in facts["problems"] if "GPU" in problem]


def test_each_rank_of_a_host_is_told_its_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (diagnosis, gpus):
        monkeypatch.setattr(module, "host_gpus", lambda: ["0", "1"])
    monkeypatch.delenv(gpus.VARIABLE, raising=False)
    monkeypatch.setattr(diagnosis, "_library", lambda problems: None)
    monkeypatch.setattr(diagnosis, "_launcher", lambda problems: (None, None))
    told, wrong = gpus_told(monkeypatch, 1, 2)
    assert (told, wrong) == ("local rank 1 sees 1 of 0, 1, from its cluster on", [])
    told, wrong = gpus_told(monkeypatch, 2, 3)
    assert told == "local rank 2 sees 0 of 0, 1, from its cluster on"
    assert wrong == ["the 3 ranks of this host share 2 of its GPUs"]
    assert gpus_told(monkeypatch, 0, 1) == ("this process sees 0, 1 (all of the host)", [])
    monkeypatch.setenv(gpus.VARIABLE, "0,1")
    assert gpus_told(monkeypatch, 1, 3) == ("local rank 1 sees 0, 1", [])


def test_a_rank_takes_the_gpu_of_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Path("/dev/nvidia0"), Path("/dev/nvidia10"), Path("/dev/nvidia2")]
    monkeypatch.setattr(gpus.Path, "glob", lambda path, pattern: iter(found))
    monkeypatch.setenv(gpus.VARIABLE, "")
    place = Launch("mpirun", 5, 8, local_rank=4, local_size=4)
    # Who was given some, or none, keeps to that.
    gpus.take_own_gpu(place)
    assert os.environ[gpus.VARIABLE] == ""
    monkeypatch.delenv(gpus.VARIABLE)
    assert gpus.host_gpus() == ["0", "2", "10"]
    gpus.take_own_gpu(Launch("mpirun", 5, 8))
    assert gpus.VARIABLE not in os.environ
    gpus.take_own_gpu(place)
    assert os.environ[gpus.VARIABLE] == "1"
    assert gpus.host_gpus() == ["1"]


def test_a_host_without_gpus_stays_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(gpus.VARIABLE, raising=False)
    monkeypatch.setattr(gpus.Path, "glob", lambda path, pattern: iter([]))
    gpus.take_own_gpu(Launch("mpirun", 5, 8, local_rank=1, local_size=4))
    assert gpus.VARIABLE not in os.environ
