"""All rules, in the order in which they are tried on a node."""

from __future__ import annotations

from functools import lru_cache

from headrace.passes.simplify import (
    arithmetic,
    broadcasting,
    constants,
    pools,
    products,
    reductions,
    shaping,
    slices,
    softmax,
    transposing,
)
from headrace.passes.simplify.rules import Rule, RuleTable

RULES = RuleTable(
    shaping.RULES,
    slices.RULES,
    broadcasting.RULES,
    constants.RULES,
    # What these recognise would otherwise be taken apart by the rules below.
    softmax.RULES,
    arithmetic.RULES,
    reductions.RULES,
    pools.RULES,
    transposing.RULES,
    # The operands of products may be read transposed by then.
    products.RULES,
)


@lru_cache(maxsize=8)
def with_rules(added: tuple[Rule, ...]) -> RuleTable:
    """Return all rules, and behind them those that plugins add."""
    return RuleTable(RULES, added) if added else RULES
