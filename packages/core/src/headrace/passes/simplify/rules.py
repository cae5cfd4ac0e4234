"""Rewrite rules: what they are, and the table that they stand in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.graph.schema import OpSchema
from headrace.plugins.ownership import CORE, Provider, line_of_function
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.passes.simplify.replacement import Replacement
    from headrace.passes.simplify.workgraph import Node, Value

# In place of types: all ops that compute each element on its own.
ELEMENTWISE = "elementwise ops"
# In place of types of inputs: what ``matching.uniform`` may find one number in.
UNIFORM = "one number, repeated"
_REPEATING = ("Const", "Fill", "BroadcastTo", "Tile")

# Looks at a node; returns what to take for its output (for its outputs), None to leave it.
Match = Callable[["Node", "Replacement"], "Value | Sequence[Value] | None"]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A rewrite that keeps what a step computes.

    Attributes:
        name: What reports call it, in kebab case.
        ops: The types of the nodes that it looks at.
        reason: Why the result is the same, and how exactly.
        match: The rule itself.
        after: Types of which one of the node's inputs must be, so that the rule is tried at all,
            or ``UNIFORM``; any if empty.
        where: Module and line of ``match``.
        provider: Who adds it.
    """

    name: str
    ops: tuple[str, ...]
    reason: str
    match: Match
    after: frozenset[str] = frozenset()
    where: str = ""
    provider: Provider = CORE

    @property
    def override(self) -> str:
        """Nothing: a rule replaces no other."""
        return ""


class RuleTable:
    """Rules in the order in which they are tried."""

    def __init__(self, *tables: Iterable[Rule]) -> None:
        """Join rules, in order."""
        self._rules: list[Rule] = [rule for table in tables for rule in table]

    def add(
        self, name: str, *ops: str, reason: str, after: Sequence[str] = ()
    ) -> Callable[[Match], Match]:
        """Return a decorator that adds a rule for nodes of the types ``ops``."""

        def enter(match: Match) -> Match:
            where = line_of_function(match)
            self._rules.append(Rule(name, ops, reason, match, frozenset(after), where=where))
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


def tried(rules: Iterable[Rule], sources: Iterable[OpSchema]) -> tuple[Rule, ...]:
    """Return those of the rules for a node that its inputs allow, by the ops of these."""
    found = {schema.type for schema in sources}
    if any(schema.view or schema.type in _REPEATING for schema in sources):
        found.add(UNIFORM)
    return tuple(r for r in rules if not r.after or not r.after.isdisjoint(found))
