"""The table of the matrix, in text and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_testing.matrix.run import FamilyResult, RunResult


def table(runs: Sequence[RunResult]) -> list[str]:
    """Return the lines of a Markdown table: a row for each family, a column for each backend."""
    backends = list(dict.fromkeys(run.backend for run in runs))
    families = list(dict.fromkeys(name for run in runs for name in run.families))
    lines = [f"| family | {' | '.join(backends)} |", "|---|" + "---|" * len(backends)]
    for family in families:
        found = [_joined([r for r in runs if r.backend == b], family) for b in backends]
        lines.append(f"| {family} | {' | '.join(map(_cell, found))} |")
    sums = [_total([r for r in runs if r.backend == b]) for b in backends]
    lines.append(f"| **all** | {' | '.join(map(_cell, sums))} |")
    return lines


def page(runs: Sequence[RunResult]) -> str:
    """Return the page of the documentation that tells of the last full run."""
    about = (
        "The samples of [the kit](testing.md) on every backend, from the last full run. A cell "
        "says how many checks passed, in all executors and Pythons together, how many were refused "
        "with a reason, and what failed. `nox -s conformance` makes the run; with `-- --device "
        "NAME` it runs on a kind of devices of another package, too. On another rank of an MPI job "
        "the first sample of each op is run."
    )
    lines = [
        "# Conformance",
        "",
        "<!-- Made by `nox -s conformance -- --write`. -->",
        "",
        about,
        "",
        *table(runs),
        "",
        "## Runs",
        "",
        "| backend | executor | Python | passed | refused | failed | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for run in runs:
        found = _total([run])
        lines.append(
            f"| {run.backend} | {run.executor} | {run.python} | {found.passed} | "
            f"{sum(found.refused.values())} | {len(found.failed)} | {run.seconds:g} |"
        )
    lines += ["", "## What was refused", "", "| backend | reason | checks |", "|---|---|---|"]
    for backend in dict.fromkeys(run.backend for run in runs):
        reasons = _total([r for r in runs if r.backend == backend]).refused
        lines += [
            f"| {backend} | {reason} | {count} |" for reason, count in sorted(reasons.items())
        ]
    failures = failed(runs)
    if failures:
        lines += ["", "## What failed", "", "```text", *failures, "```"]
    return "\n".join(lines) + "\n"


def failed(runs: Sequence[RunResult]) -> list[str]:
    """Return the lines that tell what failed, and where."""
    return [
        f"{run.backend}, {run.executor}, Python {run.python}, {name}: {text}"
        for run in runs
        for family in run.families.values()
        for name, text in family.failed.items()
    ]


def _cell(found: FamilyResult | None) -> str:
    if found is None:
        return "–"
    parts = [str(found.passed)]
    if found.refused:
        parts.append(f"{sum(found.refused.values())} refused")
    if found.failed:
        parts.append(f"**{len(found.failed)} failed**")
    return ", ".join(parts)


def _joined(runs: Sequence[RunResult], family: str) -> FamilyResult | None:
    found = [run.families[family] for run in runs if family in run.families]
    return _sum(found) if found else None


def _total(runs: Sequence[RunResult]) -> FamilyResult:
    return _sum([family for run in runs for family in run.families.values()])


def _sum(found: Sequence[FamilyResult]) -> FamilyResult:
    total = FamilyResult()
    for i, result in enumerate(found):
        total.passed += result.passed
        for reason, count in result.refused.items():
            total.refused[reason] = total.refused.get(reason, 0) + count
        total.failed.update({f"{i}-{name}": text for name, text in result.failed.items()})
    return total
