"""Rewrite rules: what they are, and the table that they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.graph.schema import OpSchema
from headrace.graph.site import Site
from headrace.passes.simplify.workgraph import Node, Value
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.passes.simplify.draft import Draft

# In place of types: all ops that compute each element on its own.
ELEMENTWISE = "elementwise ops"

# Looks at a node; returns what to take for its output (for its outputs), None to leave it.
Match = Callable[[Node, "Draft"], Value | Sequence[Value] | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rewrite that keeps what a step computes.

    Attributes:
        name: What reports call it, in kebab case.
        ops: The types of the nodes that it looks at.
        reason: Why the result is the same, and how exactly.
        match: The rule itself.
        after: Types of which one of the node's inputs must be, so that the rule is tried at all;
            any if empty.
    """

    name: str
    ops: tuple[str, ...]
    reason: str
    match: Match
    after: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One application of a rule.

    Attributes:
        rule: The rule's name.
        reason: Why the result is the same.
        ops: The names of the operations that are gone; the first is the one that was replaced.
        site: The user's line that made the first.
    """

    rule: str
    reason: str
    ops: tuple[str, ...]
    site: Site

    def __str__(self) -> str:
        more = f" and {len(self.ops) - 1} more" if len(self.ops) > 1 else ""
        return f"{self.rule}: {self.ops[0]}{more} ({self.reason}) at {self.site}"


class RuleTable:
    """Rules in the order in which they are tried."""

    def __init__(self, *tables: RuleTable) -> None:
        """Join the rules of tables."""
        self._rules: list[Rule] = [rule for table in tables for rule in table]

    def add(
        self, name: str, *ops: str, reason: str, after: Sequence[str] = ()
    ) -> Callable[[Match], Match]:
        """Return a decorator that adds a rule for nodes of the types ``ops``."""

        def enter(match: Match) -> Match:
            self._rules.append(Rule(name, ops, reason, match, frozenset(after)))
            return match

        return enter

    def of(self, schema: OpSchema) -> tuple[Rule, ...]:
        """Return the rules for nodes of an op."""
        return tuple(
            rule
            for rule in self._rules
            if schema.type in rule.ops or (schema.elementwise and ELEMENTWISE in rule.ops)
        )

    def __iter__(self) -> Iterator[Rule]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)
