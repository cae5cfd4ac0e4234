"""Cases of rewrite rules: each says what a rule makes of a small graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.graph.schema import call_op
from headrace_testing.rules import RuleCase, rule_case

f32, f64, f16, i32, i8, u8 = "float32", "float64", "float16", "int32", "int8", "uint8"

CASES: list[RuleCase] = []


def case(rule: str, build: Callable[..., Any], expected: str, **options: Any) -> None:
    """Add a case; placeholders are float32[n, 3] unless options say otherwise."""
    number = sum(known.rule == rule for known in CASES)
    CASES.append(rule_case(rule, build, expected, label=f"{rule}-{number}", **options))


def op(type_name: str, *args: Any, **attrs: Any) -> Any:
    """Add an operation that functions would not."""
    return call_op(type_name, *args, **attrs)
