"""All rules, in the order in which they are tried on a node."""

from __future__ import annotations

from headrace.passes.simplify import (
    arithmetic,
    broadcasting,
    constants,
    pools,
    reductions,
    shaping,
    slices,
    softmax,
    transposing,
)
from headrace.passes.simplify.rules import RuleTable

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
)
