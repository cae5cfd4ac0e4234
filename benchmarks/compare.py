"""The guard: a revision of the repository beside what is here, round by round.

The revision is checked out into a temporary folder and installed into an environment of its own.
Both sides run the workloads as they are written here, so that only Headrace differs. A workload is
slower where its median and its shortest round are both above the limit, twice: what disturbs a
machine seldom disturbs one side only, and hardly ever again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.controller import Progress, RunSettings
from benchmarks.participant import Request
from benchmarks.peers import HEADRACE
from benchmarks.process import ROOT, ParticipantError, ParticipantProcess
from benchmarks.quiet import pause
from benchmarks.suite.cases import all_cases
from benchmarks.suite.running import Kept, workload
from benchmarks.table import figure, row
from benchmarks.workload import Workload, all_workloads

LIMIT = 1.1
PACKAGES = ("core", "autodiff", "io[images]", "backend-cpu[onednn]", "data", "serve", "train")
_SETTLE_S = 0.05


class RevisionError(Exception):
    """A revision that cannot be measured; the text says why."""


@dataclass(frozen=True)
class Compared:
    """The rounds of one workload on both sides.

    Attributes:
        name: the workload.
        old: seconds of a step, a time per round, of the revision.
        new: the same of what is here.
        trouble: why there are no times, "" where there are.
        failed: whether what is here failed, which the revision may have done, too.
    """

    name: str
    old: tuple[float, ...] = ()
    new: tuple[float, ...] = ()
    trouble: str = ""
    failed: bool = False

    @property
    def ratios(self) -> tuple[float, float]:
        """New to old, of the medians and of the shortest rounds."""
        medians = statistics.median(self.new) / statistics.median(self.old)
        return medians, min(self.new) / min(self.old)

    def slower(self, limit: float) -> bool:
        """Tell whether both ratios are above a limit, or there are no times of what is here."""
        if self.trouble:
            return self.failed
        return min(self.ratios) > limit


Measure = Callable[[str], Compared]


def main(
    revision: str, names: Sequence[str], limit: float, settings: RunSettings, progress: Progress
) -> int:
    """Compare with a revision, and print a table, the slowest first.

    Args:
        revision: what git calls it.
        names: workloads that Headrace takes part in.
        limit: the largest allowed ratio of new to old.
        settings: rounds and threads.
        progress: called with one line of text now and then.

    Returns:
        0, or 1 if something is slower or fails, or 2 if the revision cannot be measured.
    """
    settings = dataclasses.replace(settings, settle_s=_SETTLE_S)
    try:
        asked = {name: _workload(name) for name in names}
        with (
            installed(revision, progress) as python,
            Kept(settings.threads, python) as old,
            Kept(settings.threads) as new,
        ):

            def measure(name: str) -> Compared:
                progress(f"{name}: {revision} and here")
                return run(asked[name], old, new, settings)

            compared = run_all(names, limit, measure)
    except RevisionError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("\n".join(table(compared, revision, limit)) + "\n")
    return 1 if any(each.slower(limit) for each in compared) else 0


def run_all(names: Sequence[str], limit: float, measure: Measure) -> list[Compared]:
    """Measure workloads, and those that are slower once more: the second time counts."""
    made = []
    for name in names:
        compared = measure(name)
        if compared.slower(limit) and not compared.trouble:
            compared = measure(name)
        made.append(compared)
    return made


def run(asked: Workload, old: Kept, new: Kept, settings: RunSettings) -> Compared:
    """Run the rounds of one workload, of both sides in turn."""
    entry = next(entry for entry in asked.entries if entry.peer == HEADRACE)
    request = Request(entry.peer, entry.variant, settings.threads, asked.name)
    times: list[list[float]] = [[], []]
    with old.lend(entry) as before, new.lend(entry) as now:
        sides = [before, now]
        for side, process in enumerate(sides):
            try:
                process.build(asked.module_of(entry), request, settings.timeout_s)
                process.round(settings.timeout_s)
            except ParticipantError as error:
                return Compared(asked.name, trouble=_trouble(side, error), failed=side == 1)
        for number in range(asked.rounds_of(settings.rounds)):
            for side in (0, 1) if number % 2 == 0 else (1, 0):
                pause(settings.settle_s)
                try:
                    times[side].append(_seconds(sides[side], settings))
                except ParticipantError as error:
                    return Compared(asked.name, trouble=_trouble(side, error), failed=side == 1)
    return Compared(asked.name, tuple(times[0]), tuple(times[1]))


def table(compared: Sequence[Compared], revision: str, limit: float) -> list[str]:
    """Return the lines of the table, the largest ratio first, and what it comes to."""
    timed = sorted((c for c in compared if not c.trouble), key=lambda c: -c.ratios[0])
    head = ["workload", f"{revision} ms", "here ms", "ratio", "ratio of shortest", ""]
    lines = [row(head), row(["---"] + ["---:"] * 4 + ["---"])]
    for each in timed:
        medians = [statistics.median(side) * 1e3 for side in (each.old, each.new)]
        cells = [figure(value) for value in (*medians, *each.ratios)]
        lines.append(row([each.name, *cells, "slower" if each.slower(limit) else ""]))
    lines += [f"- {each.name}: {each.trouble}" for each in compared if each.trouble]
    count = sum(each.slower(limit) for each in compared)
    lines.append(f"{count} of {len(compared)} slower than {limit:g} times {revision}, or failed")
    return lines


@contextlib.contextmanager
def installed(revision: str, progress: Progress) -> Iterator[str]:
    """Check a revision out and install it, for as long as the context lasts.

    Args:
        revision: what git calls it.
        progress: called with one line of text for each step.

    Yields:
        The path of an interpreter that has the revision's packages.

    Raises:
        RevisionError: if there is no such revision here, or it does not install.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-compare-") as folder:
        tree, environment = Path(folder) / "tree", Path(folder) / "environment"
        progress(f"checks {revision} out, and installs it")
        # A run that was killed leaves its folder registered.
        subprocess.run(["git", "worktree", "prune"], cwd=ROOT, capture_output=True, check=False)
        _call(["git", "worktree", "add", "--detach", str(tree), revision], "is not here", revision)
        try:
            python = str(environment / "bin" / "python")
            packages = [f"{tree}/packages/{name}" for name in PACKAGES]
            paths = [path for path in packages if Path(path.partition("[")[0]).is_dir()]
            words = [word for path in paths for word in ("-e", path)]
            why = "does not install"
            if uv := shutil.which("uv"):
                _call([uv, "venv", "--python", sys.executable, str(environment)], why, revision)
                install = [uv, "pip", "install", "--python", python]
            else:
                _call([sys.executable, "-m", "venv", str(environment)], why, revision)
                install = [python, "-m", "pip", "install"]
            _call([*install, *words], why, revision)
            yield python
        finally:
            remove = ["git", "worktree", "remove", "--force", str(tree)]
            subprocess.run(remove, cwd=ROOT, capture_output=True, check=False)


def _workload(name: str) -> Workload:
    if name in all_cases():
        return workload(all_cases()[name])
    found = all_workloads().get(name)
    if found is None or not any(entry.peer == HEADRACE for entry in found.entries):
        raise RevisionError(
            f"{name!r} cannot be compared: expected a workload of steps or a case of the suite, "
            "got a study"
        )
    return found


def _seconds(process: ParticipantProcess, settings: RunSettings) -> float:
    return process.round(settings.timeout_s).seconds


def _trouble(side: int, error: ParticipantError) -> str:
    return f"{'here' if side else 'the revision'} failed: {error}"


def _call(command: list[str], what: str, revision: str) -> None:
    """Run a command.

    Raises:
        RevisionError: if it fails, with the last line of what it said.
    """
    environment = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        last = said[-1].strip() if said else f"{command[0]} ended with {done.returncode}"
        raise RevisionError(f"revision {revision!r} {what}: {last}")
