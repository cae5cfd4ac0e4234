"""Outcomes as a Markdown table, and the sections of a document that hold such tables."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.controller import Outcome, Run, RunSettings
from benchmarks.quiet import BUSY
from benchmarks.statistics import Summary, disagreeing, ratio, summarise
from benchmarks.table import figure, row
from benchmarks.workload import Role, Workload

_PER_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}


class SectionError(ValueError):
    """A document's markers do not make whole sections."""


def render(workload: Workload, run: Run, settings: RunSettings, machine: str) -> str:
    """Write the result of a run as Markdown.

    Args:
        workload: what was run.
        run: what came of it.
        settings: how it was run.
        machine: date and machine, in words.

    Returns:
        Two lines about the run, the table, and what is to be said about the losses and the
        machine.
    """
    count = workload.rounds_of(settings.rounds)
    rounds = f"{count} interleaved rounds, {settings.threads} threads"
    lines = [f"{machine}.", f"{workload.measured}; {rounds}.", ""]
    lines += table(workload, run.outcomes)
    for note in (loss_note(workload, run.outcomes), busy_note(run.others)):
        if note:
            lines += ["", note]
    return "\n".join(lines) + "\n"


def table(workload: Workload, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the lines of the table of a run."""
    summaries = [_summary(outcome) for outcome in outcomes]
    best_peer = _median_of(Role.PEER, outcomes, summaries)
    headrace = _median_of(Role.HEADRACE, outcomes, summaries)
    limit = _median_of(Role.LIMIT, outcomes, summaries)
    head = ["participant", "version", f"median {workload.unit}", "min", "max"]
    head += ["/ best peer", "/ headrace"]
    if limit is not None:
        head.append("/ limit")
    head += [f"{title} {workload.unit}" for title in workload.more_times.values()]
    head.append(f"{workload.memory} MB")
    with_steps = any(s.step_bytes is not None for o in outcomes for s in o.samples)
    if with_steps:
        head.append("over imports MB")
    if workload.loss_tolerance is not None:
        head.append("final loss")
    lines = [row(head), row(["---"] * 2 + ["---:"] * (len(head) - 2))]
    for outcome, summary in zip(outcomes, summaries, strict=True):
        cells = [outcome.entry.label, outcome.version]
        if summary is None:
            cells.append(outcome.trouble or "no rounds")
        else:
            scale = _PER_SECOND[workload.unit]
            times = (summary.median, summary.low, summary.high)
            cells += [figure(value * scale) for value in times]
            references = [best_peer, headrace] + ([] if limit is None else [limit])
            cells += [figure(ratio(summary.median, reference)) for reference in references]
            cells += [figure(_more(outcome, key) * scale) for key in workload.more_times]
            cells.append(_megabytes(max(sample.memory_bytes for sample in outcome.samples)))
            if with_steps:
                step_bytes = [sample.step_bytes or 0 for sample in outcome.samples]
                cells.append(_megabytes(max(step_bytes)))
            if workload.loss_tolerance is not None:
                cells.append("" if outcome.loss is None else f"{outcome.loss:.6g}")
        lines.append(row(cells + [""] * (len(head) - len(cells))))
    return lines


def loss_note(workload: Workload, outcomes: Sequence[Outcome]) -> str:
    """Say whether the final losses agree; "" where there is nothing to compare."""
    losses = {o.entry.label: o.loss for o in outcomes if o.loss is not None}
    if workload.loss_tolerance is None or not losses:
        return ""
    tolerance = f"{workload.loss_tolerance:g}"
    odd = disagreeing(losses, workload.loss_tolerance)
    if odd:
        return f"**The final losses disagree** by more than {tolerance}: {', '.join(odd)}."
    if len(losses) == 1:
        return "One participant only: its final loss is compared with nothing."
    return f"The final losses of all {len(losses)} agree to {tolerance} (relative)."


def busy_note(others: float | None) -> str:
    """Warn of figures taken while other programs computed; "" where they did not."""
    if others is None or others <= BUSY:
        return ""
    return (
        f"**The machine was not quiet**: other programs took {others:.0%} of its processors "
        "between the rounds, so the figures say little."
    )


def succeeded(workload: Workload, outcomes: Sequence[Outcome]) -> bool:
    """Tell whether headrace ran, and every loss agrees; what is absent is no failure of a peer.

    Nor is a variant of headrace's that says what it lacks, such as an optional library; its first
    row, which is how users write it, must have figures.
    """
    ours = [o for o in outcomes if o.entry.role is Role.HEADRACE]
    ran = all(o.samples or (o.absent and o is not ours[0]) for o in ours)
    losses = {o.entry.label: o.loss for o in outcomes if o.loss is not None}
    if workload.loss_tolerance is None:
        return ran
    return ran and not disagreeing(losses, workload.loss_tolerance)


def markers(name: str) -> tuple[str, str]:
    """Return the comments around the generated part of a section."""
    return f"<!-- benchmark {name}: begin -->", f"<!-- benchmark {name}: end -->"


def replace_section(document: str, name: str, body: str) -> str:
    """Put ``body`` between the markers of ``name``.

    Args:
        document: a Markdown document.
        name: name of a workload.
        body: what to put there, ending with a newline.

    Returns:
        The document with that part replaced; with a new section at its end, if it had none.

    Raises:
        SectionError: if the markers of ``name`` are not one beginning before one end.
    """
    begin, end = markers(name)
    counts = (document.count(begin), document.count(end))
    if counts == (0, 0):
        return f"{document.rstrip()}\n\n## {name}\n\n{begin}\n{body}{end}\n"
    if counts != (1, 1) or document.index(begin) > document.index(end):
        raise SectionError(
            f"section {name!r}: expected one {begin!r} and one {end!r} after it, "
            f"got {counts[0]} and {counts[1]}; fix the markers by hand"
        )
    before, rest = document.split(begin)
    after = rest.split(end)[1]
    return f"{before}{begin}\n{body}{end}{after}"


def _summary(outcome: Outcome) -> Summary | None:
    """Summarise a participant's times, None if it has none."""
    if not outcome.samples:
        return None
    return summarise([sample.seconds for sample in outcome.samples])


def _median_of(
    role: Role, outcomes: Sequence[Outcome], summaries: Sequence[Summary | None]
) -> float | None:
    """Return the median that a role is compared by.

    Peers by their best; headrace by its first entry, which is how users write it.
    """
    medians = [
        summary.median
        for outcome, summary in zip(outcomes, summaries, strict=True)
        if summary is not None and outcome.entry.role is role
    ]
    if not medians:
        return None
    return min(medians) if role is Role.PEER else medians[0]


def _more(outcome: Outcome, key: str) -> float:
    """Return the median of a further time of the rounds, in seconds."""
    return statistics.median(sample.more_seconds[key] for sample in outcome.samples)


def _megabytes(count: int) -> str:
    """Write a number of bytes."""
    return f"{count / 1e6:.0f}"
