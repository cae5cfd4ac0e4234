"""The options of ``python -m headrace run``, parsed from its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from headrace.errors import ConfigError, shown
from headrace_mpi.jobs import PS, WORKER, Jobs

_HELP = """\
Start a program on several ranks, with mpirun of Open MPI.

The ranks play the tasks of hr.dist.Cluster(): first those of --ps and --job, then the workers.
What they print is shown with the task in front. Exit codes: that of the rank that failed first;
75 where a rank was lost (killed, or gone without a word); 130 or 143 after Ctrl-C or SIGTERM.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchOptions:
    """A job to run.

    Attributes:
        program: What the interpreter runs: a file, or ``-m`` and a module, and arguments.
        workers: Number of workers.
        others: Pairs of another job and its number of tasks, which come before the workers.
        named: Whether the jobs were named; otherwise the program alone says what they are.
        min_workers: The least number of workers to go on with where ranks are missing.
        max_workers: The largest number of workers.
        least_workers: ``min_workers`` where it was given, else 0.
        max_restarts: How often to start anew where a rank was lost.
        threads: Threads of a rank; None for the cores of a host divided by its ranks.
        bind: Whether each rank is bound to cores of its own.
        tolerate: Whether Open MPI may go on after the loss of a rank, so that others can tell.
        hosts: ``mpirun``'s ``--host``; empty for this host.
        hostfile: ``mpirun``'s ``--hostfile``; empty where there is none.
        mpirun: The launcher's path; empty for the one of this environment.
        extra: Further arguments for ``mpirun``.
    """

    program: tuple[str, ...]
    workers: int
    others: tuple[tuple[str, int], ...] = ()
    named: bool = False
    min_workers: int = 0
    max_workers: int = 0
    least_workers: int = 0
    max_restarts: int = 0
    threads: int | None = None
    bind: bool = False
    tolerate: bool = True
    hosts: str = ""
    hostfile: str = ""
    mpirun: str = ""
    extra: tuple[str, ...] = field(default=())

    @property
    def size(self) -> int:
        """Number of ranks."""
        return self.workers + sum(count for _, count in self.others)

    @property
    def jobs(self) -> Jobs | None:
        """The jobs where they were named."""
        return Jobs((*self.others, (WORKER, self.workers))) if self.named else None

    def resized(self, workers: int) -> LaunchOptions:
        """Return the same with another number of workers."""
        return replace(self, workers=workers)


def parse(argv: Sequence[str]) -> LaunchOptions:
    """Parse the arguments that follow ``run`` on the command line.

    Raises:
        ConfigError: if they contradict each other.
    """
    parsed = _parser().parse_args(argv)
    if not parsed.program:
        raise ConfigError(
            "run needs a program: a file, as in run -n 4 train.py, or -m and a module; or the "
            "folder of a saved model"
        )
    others = dict([_job(word) for word in parsed.job])
    if parsed.ps is not None:
        others = {PS: parsed.ps, **others}
    taken = sum(others.values())
    workers = parsed.n - taken
    if workers < 1:
        raise ConfigError(
            f"run: {taken} tasks of {', '.join(others)} leave none of {parsed.n} ranks for a "
            f"worker: give -n {taken + 1} or more"
        )
    least = workers if parsed.min_workers is None else parsed.min_workers
    most = workers if parsed.max_workers is None else parsed.max_workers
    if not 1 <= least <= workers <= most:
        raise ConfigError(
            f"run: expected 1 <= --min-workers <= workers <= --max-workers, got {least}, {workers} "
            f"(-n {parsed.n} less {taken} other tasks), {most}"
        )
    program = tuple(parsed.program)
    return LaunchOptions(
        program=("-m", *program) if parsed.module else program,
        workers=workers,
        others=tuple(others.items()),
        named=bool(others),
        min_workers=least,
        max_workers=most,
        least_workers=parsed.min_workers or 0,
        max_restarts=parsed.max_restarts,
        threads=parsed.threads,
        bind=parsed.bind == "cores",
        tolerate=not parsed.no_tolerance,
        hosts=parsed.host,
        hostfile=parsed.hostfile,
        mpirun=parsed.mpirun,
        extra=tuple(parsed.mpirun_option),
    )


def _job(word: str) -> tuple[str, int]:
    name, _, count = word.partition("=")
    if not name.isidentifier() or not count.isdigit() or name == WORKER:
        raise ConfigError(
            f"run --job: expected NAME=COUNT, as in evaluator=1, got {shown(word)}; workers are "
            "the "
            f"ranks that are left"
        )
    return name, int(count)


def _count(least: int) -> type[int]:
    def count(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(
                f"expected a whole number >= {least}, got {shown(text)}"
            )
        return int(text)

    return count  # type: ignore[return-value]  # argparse calls it


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m headrace run",
        usage="python -m headrace run -n N [options] program.py [arguments]\n"
        "       python -m headrace run -n N [options] -m module [arguments]",
        description=_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("-n", type=_count(1), default=1, metavar="N", help="number of ranks; 1 if left out")
    add("--ps", type=_count(0), metavar="N", help="ranks for the job ps")
    add("--job", action="append", default=[], metavar="NAME=N", help="ranks for another job")
    add(
        "--max-restarts",
        type=_count(0),
        default=0,
        metavar="N",
        help="start anew so often where a rank was lost or did not come, or the program left "
        "with 75; monitored sessions then go on from their last checkpoint",
    )
    add(
        "--min-workers",
        type=_count(1),
        metavar="N",
        help="go on with fewer workers, down to N, where ranks did not come, or were lost and the "
        "program goes on without them",
    )
    add(
        "--max-workers",
        type=_count(1),
        metavar="N",
        help="go on with more workers, up to N, where the file of hosts has slots for them",
    )
    add(
        "--threads",
        type=_count(1),
        metavar="N",
        help="threads of a rank; by default the cores of a host divided by its ranks",
    )
    add(
        "--bind",
        choices=("none", "cores"),
        default="none",
        help="cores: bind each rank to as many cores as it has threads; default none",
    )
    add(
        "--no-tolerance",
        action="store_true",
        help="let Open MPI end all ranks at once where one is killed; by default, where it was "
        "built with ULFM, the others tell who was lost, save what they have, and end",
    )
    add("--host", default="", metavar="A:N,B:N", help="hosts with their slots")
    add("--hostfile", default="", metavar="FILE", help="a file of hosts; read at each start")
    add("--mpirun", default="", metavar="FILE", help="the launcher, where it is not found")
    add(
        "--mpirun-option",
        action="append",
        default=[],
        metavar="WORD",
        help="a word for mpirun, as in --mpirun-option=--report-bindings",
    )
    add("-m", dest="module", action="store_true", help="the program is a module")
    add("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    return parser
