"""Which rule differentiates an operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace import Operation
from headrace.errors import NoGradientError, shorten
from headrace.extend import GradientRegistry
from headrace.extend.ops import describe_inputs
from headrace.extend.plugins import host, origin

Rule = Callable[..., Any]

# The rules that programs add themselves, with RegisterGradient.
USER_RULES = GradientRegistry()


def stops(op: Operation) -> bool:
    """Whether an operation passes no gradient on, because its op is declared so."""
    return not op.gradient_rule and bool(op.schema.no_gradient) and find(op.type) is None


def find(name: str) -> Rule | None:
    """Return the rule for an op type, or of a name given by RegisterGradient; None if none is."""
    return USER_RULES.get(name) or host().gradients.get(name)


def takes_rows(op: Operation) -> bool:
    """Whether gradients that are row-sparse come as they are to the rule of an operation.

    Rules of the program itself get tensors.
    """
    if op.gradient_rule or op.type in USER_RULES:
        return False
    found = host().gradients.rule(op.type)
    return found is not None and found[0].rows


def origin_of(op: Operation, rule: Rule, error: BaseException) -> str:
    """Return, for messages, whose rule failed, and where; empty for a rule of the program."""
    found = None if op.gradient_rule or op.type in USER_RULES else host().gradients.rule(op.type)
    return "" if found is None else origin(error, rule, found[1])


def rule_of(op: Operation) -> Rule:
    """Return the rule that differentiates an operation.

    Raises:
        NoGradientError: if there is none; says how to add one.
    """
    if op.gradient_rule:
        rule = op.graph.gradient_rules.get(op.gradient_rule) or find(op.gradient_rule)
        if rule is None:
            raise _no_named_rule(op)
        return rule
    rule = find(op.type)
    if rule is None:
        raise _no_rule(op)
    return rule


def _no_rule(op: Operation) -> NoGradientError:
    text = f"""op {op.type!r} has no gradient rule; {op.name!r} lies between the ys and the xs
  inputs: {describe_inputs(op)}
  at {op.site}
  add a rule with headrace.extend.GradientTable in the plugin that declares the op, or with
  @hr.RegisterGradient("{op.type}"); give a function a gradient of its own with
  @hr.custom_gradient; or let none flow through this operation, with hr.stop_gradient"""
    return NoGradientError(shorten([text, host().broken()]))


def _no_named_rule(op: Operation) -> NoGradientError:
    text = f"""no gradient rule is called {op.gradient_rule!r}; {op.type} {op.name!r} asks for it
  at {op.site}
  @hr.RegisterGradient gives rules the names that gradient_override_map takes. The rules of
  @hr.custom_gradient are Python functions of the program that built the graph, which graph
  documents do not hold: build the graph again, or put the rule into graph.gradient_rules"""
    return NoGradientError(shorten([text, host().broken()]))
