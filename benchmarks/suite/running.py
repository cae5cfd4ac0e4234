"""Runs cases: every peer has one process for all of them, and the rounds are interleaved."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from benchmarks.controller import Outcome, Progress, Run, RunSettings, run_workload
from benchmarks.peers import HEADRACE
from benchmarks.process import ParticipantError, ParticipantProcess
from benchmarks.suite.case import Case
from benchmarks.suite.cases import all_cases
from benchmarks.workload import Entry, Workload

# Rounds are short and many, and the machine comes to rest sooner than after a large network.
_SETTLE_S = 0.05
_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class CaseRun:
    """What came of running a case.

    Attributes:
        case: what was run.
        run: all participants' rounds.
        costs: what a step of Headrace moves and computes, and its slowest kernel; None where it
            has no figures.
    """

    case: Case
    run: Run
    costs: dict[str, Any] | None


class Kept:
    """Processes that stay from case to case, one for each way of each peer.

    Used as a context manager, which ends them.
    """

    def __init__(self, threads: int, python: str = "") -> None:
        """Start nothing yet.

        Args:
            threads: threads that each process may use.
            python: the interpreter; "" for this one.
        """
        self._threads = threads
        self._python = python
        self._held: dict[tuple[str, str], ParticipantProcess] = {}

    def __enter__(self) -> Self:
        """Return these processes."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """End all processes."""
        for process in self._held.values():
            process.close()

    @contextmanager
    def lend(self, entry: Entry) -> Iterator[ParticipantProcess]:
        """Give the process of an entry, which is started again where it has ended."""
        key = entry.peer, entry.variant
        process = self._held.get(key)
        if process is not None and not process.alive():
            process.close()
            process = None
        if process is None:
            process = self._held[key] = ParticipantProcess(self._threads, self._python)
        yield process


def workload(case: Case) -> Workload:
    """Return a case as a workload of the harness."""
    entries = [Entry(HEADRACE, "Session.run")]
    if case.torch is not None:
        entries.append(Entry("torch", "eager"))
        if case.compiles:
            entries.append(Entry("torch", "compile"))
    entries.append(Entry("tensorflow", "Session.run"))
    if case.jax is not None:
        entries.append(Entry("jax", "jit"))
    return Workload(
        name=case.name,
        package="benchmarks.suite",
        measured=f"Time of one step: {case.what}",
        entries=tuple(entries),
        unit="us",
        loss_tolerance=case.tolerance,
    )


def run_cases(names: Sequence[str], settings: RunSettings, progress: Progress) -> Iterator[CaseRun]:
    """Run cases one after the other.

    Args:
        names: the cases.
        settings: rounds and threads; pauses and limits of time are the suite's own.
        progress: called with one line of text now and then.

    Yields:
        What came of each case, as soon as it was run.
    """
    settings = dataclasses.replace(settings, settle_s=_SETTLE_S, timeout_s=_TIMEOUT_S)
    with Kept(settings.threads) as kept:
        for name in names:
            case = all_cases()[name]
            asked = workload(case)
            run = run_workload(asked, settings, progress, kept.lend)
            yield CaseRun(case, run, _costs(kept, run.outcomes[0], settings))


def _costs(kept: Kept, outcome: Outcome, settings: RunSettings) -> dict[str, Any] | None:
    """Ask Headrace's process, which still has the case, what a step of it costs."""
    if not outcome.samples:
        return None
    with kept.lend(outcome.entry) as process:
        try:
            return process.costs(settings.timeout_s)
        except ParticipantError:
            return None
