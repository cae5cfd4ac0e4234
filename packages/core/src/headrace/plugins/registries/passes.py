"""What plugins add to the passes: rewrites of whole steps, and rules of the simplifier."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, final

from headrace.errors import PluginError, shown
from headrace.graph.schema import OPS
from headrace.plugins.ownership import line_of_function
from headrace.plugins.registries.registry import Registry

if TYPE_CHECKING:
    from headrace.passes.pipeline import Added, PassFunction, Stage
    from headrace.passes.simplify.rules import Rule

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


@final
class PassRegistry(Registry[Any]):
    """Passes and rewrite rules, by kind and place.

    Nobody owns a pass or a rule, and none replaces another: those of a plugin come after core's,
    in the order of the plugins' names, and reports give the plugin with the name.
    """

    hook = "headrace_register_passes"

    def __init__(self) -> None:
        """Start empty."""
        super().__init__()
        self._added: tuple[Any, Added] | None = None

    def add_pass(self, stage: Stage | str, function: PassFunction, *, name: str = "") -> None:
        """Add a rewrite of whole graphs.

        Args:
            stage: When it runs, a ``Stage`` or its value: after core's own passes of that stage,
                but before what nothing needs any more is dropped.
            function: ``function(step, context)`` returns a ``StepGraph`` that computes the same,
                with as many feeds, fetches and targets in the same order; ``step`` itself where it
                finds nothing to do. ``context`` is a ``PassContext``.
            name: What reports call it, in kebab case; the function's name if empty.

        Raises:
            PluginError: if there is no such stage, or the plugin added a pass of that name.
        """
        # lazy: plugins are loaded by imports of their names, which need no passes
        from headrace.passes.pipeline import Pass, Stage

        where = line_of_function(function)
        chosen = name or getattr(function, "__name__", "").strip("_").replace("_", "-")
        stages = [known.value for known in Stage]
        if stage not in stages:
            import difflib

            near = difflib.get_close_matches(str(stage), stages, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise PluginError(
                f"pass {chosen!r} at {where}: stages are {', '.join(stages)}, got "
                f"{shown(stage)}{hint}"
            )
        _check_name(chosen, "pass", where)
        if not callable(function):
            raise PluginError(f"pass {chosen!r}: expected a function, got {shown(function)}")
        found = Pass(chosen, Stage(stage), function, where=where)
        self._check_new(("pass", stage, chosen), where)
        self._put(("pass", stage, chosen, where), found)

    def add_rule(self, rule: Rule) -> None:
        """Add a rule to the simplifier's table.

        Args:
            rule: The rule, as ``RuleTable.add`` makes one.

        Raises:
            PluginError: if it is none, names an op that is not declared, gives no reason, or the
                plugin added a rule of that name.
        """
        # lazy: few plugins add passes or rules
        from headrace.passes.simplify.rules import ELEMENTWISE, Rule

        if not isinstance(rule, Rule):
            raise PluginError(f"a rule is made by RuleTable.add, got {shown(rule)}")
        _check_name(rule.name, "rule", rule.where)
        if not rule.ops or not rule.reason.strip():
            raise PluginError(
                f"rule {rule.name!r} at {rule.where} must name the ops that it looks at, and the "
                "reason why the result is the same"
            )
        for op in (*rule.ops, *rule.after):
            if op != ELEMENTWISE and OPS.get(op) is None:
                raise PluginError(f"rule {rule.name!r} at {rule.where}: no op {op!r} is declared")
        self._check_new(("rule", rule.name), rule.where)
        self._put(("rule", rule.name, rule.where), rule)

    def add_rules(self, rules: Iterable[Rule]) -> None:
        """Add the rules of a table, in order; as ``add_rule`` does."""
        for rule in rules:
            self.add_rule(rule)

    def _check_new(self, key: tuple[str, ...], where: str) -> None:
        for known, offers in self.offers.items():
            if known[:-1] == key:
                raise PluginError(
                    f"the {key[0]} {key[-1]!r} is added twice: at {offers[0].where} and at {where}"
                )

    def _thing(self, key: tuple[str, ...]) -> str:
        return f"the {key[0]} {key[-2]!r}"

    @property
    def added(self) -> Added:
        """All passes and rules, each with who provides it; the same until plugins change."""
        if self._added is not None and self._added[0] is self.offers:
            return self._added[1]
        # lazy: few plugins add passes or rules
        from headrace.passes.pipeline import Added, Pass
        from headrace.passes.simplify.rules import Rule

        found = [
            replace(offer, provider=self.provider(key, offer))
            for key, offers in self.offers.items()
            for offer in offers
        ]
        added = Added(
            tuple(item for item in found if isinstance(item, Pass)),
            tuple(item for item in found if isinstance(item, Rule)),
        )
        self._added = self.offers, added
        return added


def _check_name(name: str, kind: str, where: str) -> None:
    if not _NAME.fullmatch(name):
        raise PluginError(
            f"the name of a {kind} is in kebab case, as in 'double-negation', got {shown(name)} at "
            f"{where}"
        )
