"""What a run found, as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from headrace_testing.fuzz.campaign import Report
from headrace_testing.fuzz.execute import FORBIDDEN, PASSED


def summary(report: Report, skipped: Mapping[str, str], *, shown: int = 3) -> str:
    """Return the figures of a run, and the calls that had forbidden outcomes.

    Args:
        report: What the run found.
        skipped: Why other ops and functions were not called.
        shown: How many calls to show of each target and outcome.
    """
    lines = _failures(report, shown)
    calls = report.outcomes.total()
    ops = sum(not name.startswith("hr.") for name in report.calls)
    lines.append(
        f"{calls} calls of {ops} ops and {len(report.calls) - ops} functions in "
        f"{report.seconds:.0f} s"
    )
    lines += [f"  {report.outcomes[kind]:8d} {kind}" for kind in (*PASSED, *FORBIDDEN)]
    never = [name for name in report.calls if not report.right[name]]
    if never:
        lines.append(f"never right: {', '.join(sorted(never))}")
    reasons = Counter(skipped.values())
    lines += [f"  {count:8d} not called: {reason}" for reason, count in reasons.most_common()]
    lines.append(f"forbidden outcomes: {report.forbidden}")
    return "\n".join(lines)


def _failures(report: Report, shown: int) -> list[str]:
    lines = []
    seen: Counter[tuple[str, str]] = Counter()
    for failure in sorted(report.failures, key=lambda f: (f.target, f.kind)):
        seen[failure.target, failure.kind] += 1
        if seen[failure.target, failure.kind] <= shown:
            lines += [f"{failure.kind}: {failure.text}", f"  {failure.call}"]
    lines += [f"{kind} x{n}: {name}" for (name, kind), n in seen.most_common() if n > shown]
    return lines
