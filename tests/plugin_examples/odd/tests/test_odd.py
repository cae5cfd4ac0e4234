"""The rule applies where it should, and changes no result: not for NaN, infinities or -0."""

import pytest

import headrace as hr
from headrace.testing import check_rule, rule_case

FUNCTIONS = {"Sin": hr.sin, "Tan": hr.tan, "Asin": hr.asin, "Atan": hr.atan, "Tanh": hr.tanh}


# Both halves: the structure that the simplifier makes of the program, and equal bits before and
# after, for values on which rules break, without elements, and without known shapes.
@pytest.mark.parametrize("op", FUNCTIONS)
def test_the_sign_moves_out(op):
    f = FUNCTIONS[op]
    check_rule(rule_case("odd-function", lambda x: f(-x), f"Neg({op}(x))"))


def test_signs_meet_outside():
    check_rule(rule_case("odd-function", lambda x: -hr.sin(-x), "Sin(x)"))


def rewrites(y, feeds):
    with hr.Session() as session:
        return [line for line in str(session.explain(y, feeds)).splitlines() if "rewritten" in line]


def test_reports_name_the_rule_with_its_plugin():
    x = hr.placeholder(hr.float32, [3])
    (line,) = rewrites(hr.sin(-x), {x: [1.0, 2.0, 3.0]})
    assert "odd-function by plugin 'odd'" in line
    assert not rewrites(hr.exp(-x), {x: [1.0, 2.0, 3.0]})
