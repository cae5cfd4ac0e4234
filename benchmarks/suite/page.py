"""What came of the suite as Markdown: a row for each case, the worst ratio first."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.controller import Outcome, RunSettings
from benchmarks.report import busy_note, loss_note
from benchmarks.suite.running import CaseRun, workload
from benchmarks.table import figure, row
from benchmarks.workload import Role
from headrace.extend.devices import MachineLimits

# Above this part of the time the machine's limit is what bounds a step.
_BOUND = 0.5
_HEAD = ("workload", "headrace ms", "best peer", "its ms", "ratio", "limit", "what bounds Headrace")


@dataclass(frozen=True)
class Line:
    """One case in figures.

    Attributes:
        done: the case and its run.
        ours: Headrace's median, in seconds; None where it has no figures.
        best: label of the quickest peer, "" where there is none.
        theirs: its median, in seconds.
    """

    done: CaseRun
    ours: float | None
    best: str
    theirs: float | None

    @property
    def ratio(self) -> float | None:
        """Headrace's time as a multiple of the best peer's."""
        if self.ours is None or self.theirs is None:
            return None
        return self.ours / self.theirs


def line(done: CaseRun) -> Line:
    """Return the figures of a case."""
    known = [(_median(o), o.entry) for o in done.run.outcomes]
    peers = [(m, entry.label) for m, entry in known if m is not None and entry.role is Role.PEER]
    ours = next((m for m, entry in known if entry.role is Role.HEADRACE), None)
    theirs, best = min(peers, default=(None, ""))
    return Line(done, ours, best, theirs)


def said(found: Line) -> str:
    """Return one line of text for a case that was run, as progress."""
    name = found.done.case.name
    if found.ours is None:
        return f"{name}: headrace has no figures"
    if found.theirs is None:
        return f"{name}: headrace {figure(found.ours * 1e3)} ms, and no peer has figures"
    ours, theirs = figure(found.ours * 1e3), figure(found.theirs * 1e3)
    return f"{name}: {figure(found.ratio)} of the best: {ours} ms, {found.best} {theirs} ms"


def render(
    runs: Sequence[CaseRun], settings: RunSettings, limits: MachineLimits, machine: str
) -> str:
    """Write the runs of cases as Markdown.

    Args:
        runs: what came of them.
        settings: how they were run.
        limits: what the machine can do.
        machine: date and machine, in words.

    Returns:
        Lines about the run, the table, and what went wrong.
    """
    lines = sorted(map(line, runs), key=lambda found: -(found.ratio or math.inf))
    text = [
        f"{machine}.",
        f"Medians of {settings.rounds} interleaved rounds, {settings.threads} threads.",
        _able(limits),
        "",
        row(_HEAD),
        row(["---", "---:", "---", "---:", "---:", "---:", "---"]),
    ]
    text += [_row(found, limits) for found in lines]
    text += ["", summary(lines)]
    for found in lines:
        text += _troubles(found)
    shares = [done.run.others for done in runs if done.run.others is not None]
    if note := busy_note(statistics.median(shares) if shares else None):
        text += ["", note]
    return "\n".join(text) + "\n"


def _able(limits: MachineLimits) -> str:
    moved, computed = limits.bytes_per_second / 1e9, limits.flops_per_second / 1e9
    return f"The machine moved {moved:.3g} GB/s and computed {computed:.3g} GFLOP/s."


def summary(lines: Sequence[Line]) -> str:
    """Say how the ratios lie."""
    ratios = [found.ratio for found in lines if found.ratio is not None]
    if not ratios:
        return "No workload has figures of Headrace and of a peer."
    mean = math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))
    quick, slow = sum(r <= 0.9 for r in ratios), sum(r > 1.1 for r in ratios)
    return (
        f"{len(ratios)} workloads: geometric mean {mean:.3g}, {quick} at or below 0.9, "
        f"{slow} above 1.1."
    )


def bound(found: Line, limits: MachineLimits) -> tuple[float | None, str]:
    """Return the least time for what a step moves and computes, and what bounds the step.

    The limit is None where the program's costs are not known; of loops it knows one round only.
    """
    costs = found.done.costs
    if costs is None or found.ours is None:
        return None, ""
    slowest = f"{costs['share']:.0%} in {_short(costs['slowest'])}"
    least = limits.seconds(costs["bytes"], costs["flops"])
    if least < _BOUND * found.ours:
        return least, slowest
    memory = costs["bytes"] / limits.bytes_per_second >= costs["flops"] / limits.flops_per_second
    return least, f"{'memory' if memory else 'arithmetic'}; {slowest}"


def succeeded(runs: Sequence[CaseRun]) -> bool:
    """Tell whether Headrace has figures in all cases, and all results agree."""
    return all(done.run.outcomes[0].samples and "disagree" not in _losses(done) for done in runs)


def _losses(done: CaseRun) -> str:
    return loss_note(workload(done.case), done.run.outcomes)


def _row(found: Line, limits: MachineLimits) -> str:
    least, why = bound(found, limits)
    share = None if least is None or found.ours is None else least / found.ours
    return row(
        [
            f"`{found.done.case.name}`: {found.done.case.what}",
            "" if found.ours is None else figure(found.ours * 1e3),
            found.best,
            "" if found.theirs is None else figure(found.theirs * 1e3),
            figure(found.ratio),
            "" if share is None else f"{share:.0%}",
            why,
        ]
    )


def _troubles(found: Line) -> list[str]:
    """Return what to say of a case's participants that have no figures, or another result."""
    name = found.done.case.name
    said = [
        f"- `{name}`: {o.entry.label} {o.trouble}"
        for o in found.done.run.outcomes
        if o.trouble and not o.absent
    ]
    losses = _losses(found.done)
    if "disagree" in losses:
        said.append(f"- `{name}`: {losses}")
    return said


def _short(text: str, most: int = 60) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _median(outcome: Outcome) -> float | None:
    if not outcome.samples:
        return None
    return statistics.median(sample.seconds for sample in outcome.samples)
