"""Runs a workload: the rounds of all participants interleaved in one run."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field

from benchmarks.participant import Request, Sample
from benchmarks.peers import NOT_INSTALLED, PEERS
from benchmarks.process import (
    ParticipantError,
    ParticipantProcess,
    ParticipantUnavailableError,
)
from benchmarks.quiet import others_share, pause
from benchmarks.workload import Entry, Workload


@dataclass(frozen=True)
class RunSettings:
    """How a workload is run.

    Attributes:
        rounds: timed rounds per participant.
        threads: threads that each participant may use.
        settle_s: pause before each round, in seconds, in which the threads of the participant
            before come to rest.
        timeout_s: time for one answer of a participant, in seconds; the first ones compile.
    """

    rounds: int = 7
    threads: int = 2
    settle_s: float = 0.25
    timeout_s: float = 900.0


@dataclass
class Outcome:
    """What a participant did in a run.

    Attributes:
        entry: who it is.
        version: version of its library.
        samples: one per timed round.
        loss: its final loss, None if the workload has none.
        trouble: why it has no figures, "" if it has.
        absent: True if the trouble is that something is not installed.
    """

    entry: Entry
    version: str
    samples: list[Sample] = field(default_factory=list)
    loss: float | None = None
    trouble: str = ""
    absent: bool = False


@dataclass(frozen=True)
class Run:
    """What came of running a workload.

    Attributes:
        outcomes: one per entry, in the order of the workload.
        others: share of the processors' time that went to other programs, 0 to 1; None if
            unknown.
    """

    outcomes: list[Outcome]
    others: float | None = None


Progress = Callable[[str], None]
Lend = Callable[[Entry], AbstractContextManager[ParticipantProcess]]


def run_workload(
    workload: Workload, settings: RunSettings, progress: Progress, lend: Lend | None = None
) -> Run:
    """Run all entries of a workload, one round each in turn.

    A participant that is not installed or that fails leaves the run with its reason in its
    outcome, and the others go on.

    Args:
        workload: what to run.
        settings: rounds, threads and times.
        progress: called with one line of text now and then.
        lend: gives the process of an entry; None for a new one each, which ends with the run.

    Returns:
        The outcomes of all entries, and how quiet the machine was.
    """
    pauses: list[float | None] = []
    outcomes = [Outcome(entry, PEERS[entry.peer].version()) for entry in workload.entries]
    with ExitStack() as stack:
        running: list[tuple[Outcome, ParticipantProcess]] = []
        for outcome in outcomes:
            label = f"{workload.name}: {outcome.entry.label}"
            if not PEERS[outcome.entry.peer].installed():
                outcome.trouble, outcome.absent = NOT_INSTALLED, True
                progress(f"{label}: {NOT_INSTALLED}")
                continue
            progress(f"{label}: starts")
            lent = ParticipantProcess(settings.threads) if lend is None else lend(outcome.entry)
            process = stack.enter_context(lent)
            if _start(process, workload, outcome, settings):
                running.append((outcome, process))
            else:
                progress(f"{label}: {outcome.trouble}")
        rounds = workload.rounds_of(settings.rounds)
        for number in range(rounds):
            # Who begins changes, so that nobody always runs behind the same neighbour's back.
            turn = number % len(running) if running else 0
            for outcome, process in running[turn:] + running[:turn]:
                pauses.append(pause(settings.settle_s))
                _round(process, outcome, settings)
            running = [pair for pair in running if not pair[0].trouble]
            progress(f"{workload.name}: round {number + 1} of {rounds}")
        for outcome, process in running:
            _finish(process, outcome, settings)
    return Run(outcomes, others_share(pauses))


def _start(
    process: ParticipantProcess, workload: Workload, outcome: Outcome, settings: RunSettings
) -> bool:
    """Build a participant and let it run one round that does not count."""
    entry = outcome.entry
    request = Request(entry.peer, entry.variant, settings.threads, workload.name)
    try:
        process.build(workload.module_of(entry), request, settings.timeout_s)
        process.round(settings.timeout_s)
        process.settle(settings.timeout_s)
    except ParticipantError as error:
        _fail(outcome, error)
    return not outcome.trouble


def _round(process: ParticipantProcess, outcome: Outcome, settings: RunSettings) -> None:
    """Let a participant run one round that counts."""
    try:
        outcome.samples.append(process.round(settings.timeout_s))
    except ParticipantError as error:
        _fail(outcome, error)


def _finish(process: ParticipantProcess, outcome: Outcome, settings: RunSettings) -> None:
    """Ask a participant for its final loss."""
    try:
        outcome.loss = process.loss(settings.timeout_s)
    except ParticipantError as error:
        _fail(outcome, error)


def _fail(outcome: Outcome, error: ParticipantError) -> None:
    """Note why a participant has no figures; half of its rounds would mislead."""
    outcome.absent = isinstance(error, ParticipantUnavailableError)
    outcome.trouble = f"not available: {error}" if outcome.absent else f"failed: {error}"
    outcome.samples.clear()
