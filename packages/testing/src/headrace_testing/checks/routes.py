"""Route checks: fed, constant and folded, optimized or not, a sample gives the same results."""

from __future__ import annotations

from headrace import Config
from headrace_testing.build import (
    Variant,
    as_constant,
    as_fed,
    make_values,
    one_per_kind,
    run_variants,
    swept,
)
from headrace_testing.checks.forward import compare
from headrace_testing.sample import Sample


def check_routes(sample: Sample, device: str) -> None:
    """Run as constants with and without optimization, and fed without; passes are verified."""
    for optimize, entry, label in (
        (True, as_constant, "folded"),
        (False, as_constant, "constant"),
        (False, as_fed, "fed, not optimized"),
    ):
        variants = [
            Variant(f"{label} {d or ''}".strip(), make_values(sample.inputs, d, sample.seed), entry)
            for d in one_per_kind(swept(sample))
        ]
        config = Config(optimize=optimize, verify=True)
        for outcome in run_variants(sample, device, variants, config):
            compare(sample, device, outcome)
