"""All faults, and the page of the documentation that lists them."""

from __future__ import annotations

from pathlib import Path

from tests.testing.mutants.derivations import DERIVATION_MUTANTS
from tests.testing.mutants.kernels import KERNEL_MUTANTS
from tests.testing.mutants.plugins import PLUGIN_MUTANTS

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "faults.md"
MUTANTS = [*KERNEL_MUTANTS, *DERIVATION_MUTANTS, *PLUGIN_MUTANTS]


def page() -> str:
    """Return the page of the documentation that lists the faults."""
    about = (
        f"{len(MUTANTS)} faults, each put into a correct plugin, `tests/testing/mill.py`, as "
        "`tests/testing/mutants` has them. `tests/testing/test_mutants.py` checks that "
        "[the kit](testing.md) finds each of them, and that what it says matches the last column, "
        "a regular expression."
    )
    lines = [
        "# Faults that the kit finds",
        "",
        "<!-- Made by `python -m tests.testing.mutants --write`. -->",
        "",
        about,
        "",
        "| fault | what the kit says |",
        "|---|---|",
    ]
    for mutant in MUTANTS:
        shown = mutant.match.replace("[\\s\\S]*", " … ").replace(".*", " … ").replace("|", "\\|")
        lines.append(f"| {mutant.name} | `{' '.join(shown.split())}` |")
    return "\n".join(lines) + "\n"
