"""Checks of the rewrite rules and passes of a plugin: all are shown, and none changes a result."""

from __future__ import annotations

from collections.abc import Sequence

from headrace_testing.checks.routes import check_routes
from headrace_testing.failure import ConformanceError, SkipCheck
from headrace_testing.rules import RuleCase
from headrace_testing.sample import Sample

# Families of core's ops on which rules and passes act most, and how many samples of each are run.
FAMILIES = ("elementwise", "activation", "reduce", "array", "linalg", "rearrange")
SAMPLES_OF_EACH = 12


def check_shown(rule: str, cases: Sequence[RuleCase]) -> None:
    """Check that a rule has a case that shows what it makes of a program.

    Raises:
        ConformanceError: if none names it.
    """
    if rule not in {case.rule for case in cases}:
        raise ConformanceError(
            f"no row shows what the rewrite rule {rule!r} does: add "
            f"rule_case({rule!r}, lambda x: ..., expected=...) to the rows"
        )


def check_on_samples(samples: Sequence[Sample]) -> None:
    """Run samples of the plugin and of core with all passes and without: the same results.

    Raises:
        ConformanceError: if a result changes.
    """
    # lazy: the samples of core take longer to load than the rest of the kit
    from headrace_testing.samples import SAMPLES

    listed = list(samples)
    for family in FAMILIES:
        rows = [row for row in SAMPLES[family] if isinstance(row, Sample) and row.oracle]
        listed += rows[:: max(1, len(rows) // SAMPLES_OF_EACH)]
    for row in listed:
        if row.oracle is None:
            continue
        try:
            check_routes(row, "cpu")
        except SkipCheck:
            continue
