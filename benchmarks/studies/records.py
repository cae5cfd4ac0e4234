"""What an input pipeline costs: training on records of files, beside the same on feeds."""

from __future__ import annotations

from benchmarks.controller import Outcome, Progress, RunSettings, run_workload
from benchmarks.peers import HEADRACE, PEERS
from benchmarks.records.program import FEEDS, RECORDS, STEPS
from benchmarks.statistics import Summary, summarise
from benchmarks.studies import Result
from benchmarks.table import figure, row
from benchmarks.workload import Entry, Workload


def workload(model: str) -> Workload:
    """Return the two ways of Headrace and TensorFlow to train a model."""
    peers = (HEADRACE, "tensorflow")
    return Workload(
        name=f"records_{model}",
        package="benchmarks.records",
        measured="Time of one training step, with the next batch of 100",
        entries=tuple(Entry(peer, way) for peer in peers for way in (FEEDS, RECORDS)),
        unit="us",
    )


def run(settings: RunSettings, progress: Progress) -> Result:
    """Measure all models, the ways of one in turn."""
    head = ("model", "participant", "feeds us", "records us", "speed of feeds")
    lines = [row(head), row(["---", "---", "---:", "---:", "---:"])]
    failed = False
    shares = []
    for model in STEPS:
        measured = run_workload(workload(model), settings, progress)
        shares += [measured.others] if measured.others is not None else []
        pairs = zip(measured.outcomes[::2], measured.outcomes[1::2], strict=True)
        for feeds, records in pairs:
            lines.append(row(_cells(model, feeds, records)))
            failed |= feeds.entry.peer == HEADRACE and bool(feeds.trouble or records.trouble)
    busy = max(shares, default=0.0)
    if busy > 0.15:
        lines += ["", f"The machine was busy: other programs took {busy:.0%} of it in pauses."]
    return Result(lines, not failed)


def _cells(model: str, feeds: Outcome, records: Outcome) -> list[str]:
    name = f"{PEERS[feeds.entry.peer].title} {feeds.version}"
    trouble = feeds.trouble or records.trouble
    if trouble:
        return [model, name, trouble, "", ""]
    fed, read = _summary(feeds), _summary(records)
    times = [figure(summary.median * 1e6) for summary in (fed, read)]
    return [model, name, *times, figure(fed.median / read.median)]


def _summary(outcome: Outcome) -> Summary:
    return summarise([sample.seconds for sample in outcome.samples])
