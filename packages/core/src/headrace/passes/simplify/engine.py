"""Applying rewrite rules to a step's graph until none applies any more.

Each node is looked at when all that it depends on was. A rewrite brings back those that took the
replaced outputs; when nothing is left to look at, the nodes a few edges around all changes are
looked at once more, since rules see that far. The work grows linearly with the nodes and
rewrites, and rewrites are bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from typing import Any

from headrace.device_name import DeviceName
from headrace.errors import HeadraceError, PluginError
from headrace.graph.operation import Operation
from headrace.passes.rewrites import Rewrite
from headrace.passes.simplify.emit import emit
from headrace.passes.simplify.replacement import Replacement, sharpened
from headrace.passes.simplify.rules import Rule, RuleTable, tried
from headrace.passes.simplify.table import RULES
from headrace.passes.simplify.workgraph import Node, Value, WorkGraph
from headrace.passes.step_graph import StepGraph
from headrace.plugins.error_attribution import blamed
from headrace.plugins.ownership import CORE

# Rules look this many edges up from the node that they replace.
_DEPTH = 6
_SWEEPS = 20
_ANYWHERE = DeviceName()


def simplify(
    step: StepGraph, fixed: Collection[Operation] = (), rules: RuleTable = RULES
) -> tuple[StepGraph, tuple[Rewrite, ...]]:
    """Rewrite a step into one that computes the same with less work, or more exactly.

    Feeds, targets and operations with an effect stay, and every effect on which a tensor depended
    still comes before it. What nobody uses any more is left out.

    Args:
        step: The step; shapes that are known make more rules apply.
        fixed: Operations that must stay as they are.
        rules: The rules, all of them by default.

    Returns:
        The step on a new graph, and what was rewritten, in order; without rewrites the step
        itself, if it holds nothing superfluous.
    """
    graph = WorkGraph(step, fixed)
    rewrites = _Engine(graph, rules).run()
    if not rewrites and all(node.alive for node in graph.of.values()):
        graph.release()
        return step, ()
    made = emit(graph)
    graph.release()
    return made, tuple(rewrites)


class _Engine:
    def __init__(self, graph: WorkGraph, rules: RuleTable) -> None:
        self.graph = graph
        self.table = rules
        self.rules: dict[str, tuple[Rule, ...]] = {}
        # The rules that are tried, by a node's op and those of its inputs.
        self.tried: dict[Hashable, tuple[Rule, ...]] = {}
        self.queue: deque[Node] = deque()
        self.rewrites: list[Rewrite] = []
        self.changed: dict[Node, None] = {}
        # Each rewrite is an improvement; the bound is for rules that undo each other by mistake.
        self.left = 1000 + 20 * len(graph.of)

    def run(self) -> list[Rewrite]:
        for node in reversed(self.graph.nodes()):
            self.graph.drop(node)
        self.graph.merge_equal()
        self.graph.freed.clear()
        nodes: Iterable[Node] = self.graph.nodes()
        for _ in range(_SWEEPS):
            self._push(node for node in nodes if node.alive)
            while self.queue and self.left > 0:
                node = self.queue.popleft()
                node.queued = False
                if node.alive and not node.fixed:
                    self._look_at(node)
            if not self.changed or self.left <= 0:
                break
            nodes = self._around(self.changed)
            self.changed = {}
        return self.rewrites

    def _push(self, nodes: Iterable[Node], *, front: bool = False) -> None:
        found = [node for node in nodes if not node.queued and self._rules_of(node)]
        for node in found:
            node.queued = True
        if front:
            self.queue.extendleft(reversed(found))
        else:
            self.queue.extend(found)

    def _rules_of(self, node: Node) -> tuple[Rule, ...]:
        found = self.rules.get(node.type)
        if found is None:
            found = self.rules[node.type] = self.table.of(node.schema)
        return found

    def _around(self, changed: Iterable[Node]) -> list[Node]:
        """Return the nodes that may see a changed one, in order."""
        found = dict.fromkeys(node for node in changed if node.alive)
        edge = list(found)
        for _ in range(_DEPTH):
            edge = [user for node in edge for user in node.users if user not in found]
            found.update(dict.fromkeys(edge))
        return sorted(found, key=lambda node: node.order)

    def _look_at(self, node: Node) -> None:
        sources = [value.node.schema for value in node.inputs]
        key = (node.schema, *sources) if len(sources) < 8 else (node.schema, frozenset(sources))
        rules = self.tried.get(key)
        if rules is None:
            rules = self.tried[key] = tried(self._rules_of(node), sources)
        if not rules:
            return
        replacement = Replacement(self.graph, node)
        for rule in rules:
            replacement.origin = rule.name
            try:
                answer = rule.match(node, replacement)
            except HeadraceError:
                # Shapes that do not fit: the step itself reports them, with the user's line.
                answer = None
            except Exception as error:
                if rule.provider is CORE:
                    raise
                raise _blamed(rule, node, error) from error
            if rule.provider is not CORE and answer is not None:
                fault = _fault(node, answer)
                if fault:
                    raise _blamed(rule, node, TypeError(fault))
            if answer is not None and self._apply(rule, node, replacement, answer):
                return
            if replacement.added:
                for added in reversed(replacement.added):
                    self.graph.drop(added)
                replacement.added.clear()

    def _apply(
        self, rule: Rule, node: Node, replacement: Replacement, answer: Value | Sequence[Value]
    ) -> bool:
        values = (answer,) if isinstance(answer, Value) else tuple(answer)
        if any(value.node is node for value in values) or not self._keeps_place(node, values):
            return False
        if node.controls:
            held = self._after_controls(node, replacement, values)
            if held is None:
                return False
            values = held
        effects = 0
        for value in values:
            effects |= value.node.effects
        if node.effects & ~effects:
            return False
        for value, spec in zip(values, node.specs, strict=True):
            if value.node in replacement.added:
                specs = list(value.node.specs)
                specs[value.slot] = sharpened(specs[value.slot], spec)
                value.node.specs = tuple(specs)
        users, dropped = self.graph.replace(node, values)
        names = dict.fromkeys([node.name, *(gone.name for gone in dropped)])
        by = rule.provider.name
        self.rewrites.append(Rewrite(rule.name, rule.reason, tuple(names), node.site, by))
        self.left -= 1
        for added in reversed(replacement.added):
            self.graph.drop(added)
        near = [
            *(added for added in replacement.added if added.alive),
            *(v.node for v in values),
            *users,
        ]
        self.changed.update(dict.fromkeys((*near, *self.graph.freed)))
        self.graph.freed.clear()
        self._push(near, front=True)
        return True

    def _keeps_place(self, node: Node, values: Sequence[Value]) -> bool:
        """Whether what replaces a node is where the node was asked to be."""
        return node.device == _ANYWHERE or all(value.node.device == node.device for value in values)

    def _after_controls(
        self, node: Node, replacement: Replacement, values: Sequence[Value]
    ) -> tuple[Value, ...] | None:
        """Return what replaces a node that waits for others, waiting for them too."""
        if len(values) != 1 or node.type == "Identity":
            return None
        value = values[0]
        fresh = (
            value.node in replacement.added and len(value.node.specs) == 1 and not value.node.users
        )
        if not fresh:
            value = replacement.add("Identity", value)
            if value.node not in replacement.added:
                return None
        self.graph.wait(value.node, node.controls)
        return (value,)


def _fault(node: Node, answer: Any) -> str:
    """Return why an answer cannot stand for the outputs of a node, empty where it can."""
    one = isinstance(answer, Value) or not isinstance(answer, Sequence)
    values = (answer,) if one else tuple(answer)
    if not all(isinstance(value, Value) for value in values):
        kinds = ", ".join(type(value).__name__ for value in values)
        return f"a rule returns a Value for each output, or None; got {kinds}"
    if len(values) != len(node.specs):
        return f"it returns {len(values)} values for {len(node.specs)} outputs"
    for value, spec in zip(values, node.specs, strict=True):
        if value.dtype != spec.dtype or not value.spec.shape.is_compatible_with(spec.shape):
            return f"it returns {value.spec} for an output that is {spec}"
    return ""


def _blamed(rule: Rule, node: Node, error: Exception) -> PluginError:
    what = f"rewrite rule {rule.name!r} on {node.type} {node.name!r}"
    found = blamed(error, rule.match, rule.provider, what)
    return PluginError(f"{found}\n  at {node.site}")
