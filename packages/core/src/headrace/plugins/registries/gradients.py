"""The registry of gradient rules, by op."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from headrace.errors import PluginError
from headrace.graph.schema import OPS
from headrace.plugins.ownership import (
    CORE,
    CORE_PACKAGE,
    Claim,
    Provider,
    package_of,
)
from headrace.plugins.registries.registry import Registry
from headrace.plugins.tables import GradientRule


class GradientRegistry(Registry[GradientRule]):
    """All gradient rules, by op."""

    hook = "headrace_register_gradients"

    def __init__(self, rules_of_core: Provider | None = None) -> None:
        """Start empty.

        Args:
            rules_of_core: Who has rules of core's ops, also while it is not asked for them.
        """
        super().__init__()
        self._rules_of_core = rules_of_core

    def add(self, table: Iterable[GradientRule]) -> None:
        """Add a table of rules.

        Raises:
            PluginError: if an op has a rule already; names both places.
        """
        self._check_open()
        merged = dict(self.offers)
        for rule in table:
            for known in merged.get(rule.op, ()):
                if known.where != rule.where:
                    raise PluginError(
                        f"two gradient rules for {rule.op}: at {known.where} and at {rule.where}; "
                        "remove one"
                    )
            merged[rule.op] = [rule]
        self.offers = merged

    def _thing(self, key: str) -> str:
        return f"the gradient rule of {key}"

    def _declared(self, key: str) -> Claim | None:
        schema = OPS.get(key)
        if schema is None:
            return None
        package = package_of(schema.where)
        if schema.no_gradient:
            owner = CORE if package == CORE_PACKAGE else Provider("", package, package)
            return Claim(owner, f"{schema.where} (which says: no gradient, {schema.no_gradient})")
        if package == CORE_PACKAGE and self._rules_of_core is not None:
            return Claim(self._rules_of_core, f"{self._rules_of_core.package}.rules")
        return None

    def get(self, op: str) -> Callable[..., Any] | None:
        """Return the rule of an op, or None."""
        rules = self.offers.get(op)
        return rules[0].function if rules else None

    def rule(self, op: str) -> tuple[GradientRule, Provider] | None:
        """Return the rule of an op with who provides it, or None."""
        rules = self.offers.get(op)
        return (rules[0], self.provider(op, rules[0])) if rules else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.offers)
