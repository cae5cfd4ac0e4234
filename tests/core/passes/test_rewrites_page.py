"""The page of the reference that lists the rewrite rules lists all of them, as they are."""

from __future__ import annotations

from pathlib import Path

from headrace.passes.simplify.rules import Rule
from headrace.passes.simplify.table import RULES

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "rewrites.md"


def row(rule: Rule) -> str:
    """Return the line that the page has for a rule."""
    return f"| `{rule.name}` | {', '.join(rule.ops)} | {rule.reason} |"


def test_the_page_lists_the_rules_in_order():
    listed = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    expected = [row(rule) for rule in RULES]
    assert listed == expected, "the table must be:\n" + "\n".join(expected)
