"""Each rewrite rule has cases; each case has two halves, the structure and the numbers."""

from __future__ import annotations

import pytest

import headrace as hr
import tests.core.passes.rules.arithmetic  # each adds its cases
import tests.core.passes.rules.reductions
import tests.core.passes.rules.shapes  # noqa: F401
from headrace.passes.prune import extract
from headrace.passes.simplify.engine import simplify
from headrace.passes.simplify.table import RULES
from headrace_testing.rules import (
    RuleCase,
    check_numbers,
    check_structure,
    check_without_elements,
    check_without_shapes,
)
from tests.core.passes.rules.case import CASES, f32
from tests.core.passes.rules.shapes import slice_grad

pytestmark = pytest.mark.needs("backend-cpu")


@pytest.mark.parametrize("given", CASES, ids=[c.label for c in CASES])
def test_structure(given: RuleCase) -> None:
    check_structure(given)


@pytest.mark.parametrize("given", CASES, ids=[c.label for c in CASES])
def test_numbers(given: RuleCase) -> None:
    check_numbers(given)


DYNAMIC = [c for c in CASES if c.varies]


@pytest.mark.parametrize("given", DYNAMIC, ids=[c.label for c in DYNAMIC])
def test_numbers_without_elements(given: RuleCase) -> None:
    check_without_elements(given)


@pytest.mark.parametrize("given", DYNAMIC, ids=[c.label for c in DYNAMIC])
def test_numbers_without_known_shapes(given: RuleCase) -> None:
    check_without_shapes(given)


def test_every_rule_has_cases_and_a_reason():
    assert {rule.name for rule in RULES} == {c.rule for c in CASES}
    assert len({rule.name for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert len(rule.reason) > 5, rule.name
        assert rule.ops


def test_gradients_of_slices_out_of_range_stay() -> None:
    with hr.Graph().as_default():
        x = hr.placeholder(f32, (4, 3))
        total = slice_grad([2, 4, 3], x, 0) + slice_grad([2, 4, 3], x, 5)
        step = extract([x], [total], [])
    _, rewrites = simplify(step)
    assert "gradients-of-all-slices" not in {r.rule for r in rewrites}
