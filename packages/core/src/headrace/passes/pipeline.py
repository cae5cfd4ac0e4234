"""The pipeline: which passes rewrite a step, in which stages and in which order.

Every graph goes through the same stages, whether it is a step's, the body of a function that an
operation holds, or a compiled region:

======  ================================================================================
INLINE  calls are put in place; runs on every graph cut out of a program (``extract``)
WHOLE   the graph of a step or of a function, before it is placed; shapes may be unknown
REGION  what a device compiles together, for known shapes of what comes in (``specialize``)
======  ================================================================================

Plugins add passes at the end of a stage, before it drops what nothing needs any more, and
rewrite rules to the simplifier's table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, final

from headrace.errors import HeadraceError
from headrace.graph.creation_site import UNKNOWN_SITE
from headrace.graph.operation import Operation
from headrace.passes.batch_sums import batch_sums
from headrace.passes.common_subexpressions import dedupe
from headrace.passes.constant_folding import fold
from headrace.passes.evaluate import Evaluate, evaluate
from headrace.passes.free_constants import free_constants
from headrace.passes.if_conversion import choose_branches
from headrace.passes.inline_calls import inline_calls
from headrace.passes.loop_invariants import hoist_invariants
from headrace.passes.narrow_products import narrow_products
from headrace.passes.prune import prune
from headrace.passes.rewrites import Rewrite
from headrace.passes.step_graph import StepGraph, verify
from headrace.passes.trim_loops import trim_loops, trim_unread
from headrace.plugins.error_attribution import blamed
from headrace.plugins.ownership import CORE, Provider
from headrace.records import dataclass

if TYPE_CHECKING:
    from headrace.passes.simplify.rules import Rule
    from headrace.plugins.registries.kernels import KernelRegistry


class Stage(StrEnum):
    """When a pass runs; see the table of the module."""

    INLINE = "inline"
    WHOLE = "whole"
    REGION = "region"


@dataclass(frozen=True, slots=True, eq=False)
class PassContext:
    """What a pass gets besides the graph.

    Attributes:
        stage: The stage that runs.
        evaluate: Computes an operation on the host from the values of its inputs, as far as the
            cpu has a plain kernel for it; None where it has not, or the kernel refuses.
        rules: The rewrite rules of plugins.
        rewrites: What passes did, for reports; a pass may add to it.
    """

    stage: Stage
    evaluate: Evaluate
    rules: tuple[Rule, ...] = ()
    rewrites: list[Rewrite] = field(default_factory=list)


# Returns a graph that computes the same: the given one where there is nothing to do.
PassFunction = Callable[[StepGraph, PassContext], StepGraph]


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """One rewrite of a whole graph.

    Attributes:
        name: What reports call it, in kebab case.
        stage: When it runs.
        function: The rewrite.
        where: Module and line of the function, for messages.
        provider: Who adds it.
    """

    name: str
    stage: Stage
    function: PassFunction
    where: str = ""
    provider: Provider = CORE

    @property
    def override(self) -> str:
        """Nothing: a pass replaces no other."""
        return ""


@dataclass(frozen=True, slots=True, eq=False)
class Added:
    """What plugins add to the pipeline, in the order in which it is tried."""

    passes: tuple[Pass, ...] = ()
    rules: tuple[Rule, ...] = ()


def _simplify(step: StepGraph, context: PassContext) -> StepGraph:
    # lazy: the rules are many, and only who runs steps needs them
    from headrace.passes.simplify.engine import simplify
    from headrace.passes.simplify.table import with_rules

    simplified, rewrites = simplify(step, rules=with_rules(context.rules))
    context.rewrites.extend(rewrites)
    return simplified


PASSES = (
    Pass("inline-calls", Stage.INLINE, lambda step, context: inline_calls(step)),
    Pass("trim-unread", Stage.INLINE, lambda step, context: trim_unread(step)),
    Pass("fold", Stage.WHOLE, lambda step, context: fold(step, context.evaluate)),
    Pass("free-constants", Stage.WHOLE, lambda step, context: free_constants(step)),
    Pass("dedupe", Stage.WHOLE, lambda step, context: dedupe(step)),
    Pass("choose-branches", Stage.WHOLE, lambda step, context: choose_branches(step)),
    Pass("trim-loops", Stage.WHOLE, lambda step, context: trim_loops(step)),
    Pass("batch-sums", Stage.WHOLE, lambda step, context: batch_sums(step)),
    Pass("hoist-invariants", Stage.WHOLE, lambda step, context: hoist_invariants(step)),
    Pass("prune", Stage.WHOLE, lambda step, context: prune(step)),
    Pass("dedupe", Stage.REGION, lambda step, context: dedupe(step)),
    Pass("narrow-products", Stage.REGION, lambda step, context: narrow_products(step)),
    Pass("simplify", Stage.REGION, _simplify),
    Pass("prune", Stage.REGION, lambda step, context: prune(step)),
)
_LAST = "prune"


@final
class Pipeline:
    """The passes of core and of plugins, ready to run."""

    def __init__(self, kernels: KernelRegistry, added: Added | None = None) -> None:
        """Take what the passes need.

        Args:
            kernels: All kernels, with which constants are computed ahead.
            added: What plugins add.
        """
        self._kernels = kernels
        self._added = added if added is not None else Added()

    def passes(self, stage: Stage) -> list[Pass]:
        """Return the passes of a stage, in order."""
        own = [p for p in PASSES if p.stage is stage]
        last = [p for p in own if p.name == _LAST]
        added = [p for p in self._added.passes if p.stage is stage]
        return [*(p for p in own if p not in last), *added, *last]

    def evaluate(self, op: Operation, inputs: Sequence[Any]) -> list[Any] | None:
        """Return an operation's outputs computed on the host, None where that is not possible."""
        return evaluate(op, inputs, self._kernels)

    def run(
        self, stage: Stage, step: StepGraph, *, checked: bool = False
    ) -> tuple[StepGraph, tuple[Rewrite, ...]]:
        """Let the passes of a stage rewrite a graph.

        Args:
            stage: The stage.
            step: The graph.
            checked: Whether to verify the graph after each pass; after one of a plugin it always
                is.

        Returns:
            The graph that computes the same, and what was rewritten, for reports.

        Raises:
            PluginError: if a plugin's pass fails, or returns what does not stand for the step.
        """
        context = PassContext(stage, self.evaluate, self._added.rules)
        # What a pass of core made here: nobody else knows it.
        made: StepGraph | None = None
        for found in self.passes(stage):
            own = found.provider is CORE
            new = found.function(step, context) if own else _run_added(found, step, context)
            if checked:
                verify(new)
            if new is not step:
                if made is step and own:
                    step.replaced_by(new)
                step, made = new, new if own else None
        return step, tuple(context.rewrites)

    def simplified(self, step: StepGraph) -> tuple[StepGraph, tuple[Rewrite, ...]]:
        """Return what the simplifier alone makes of a graph, and what it rewrote."""
        context = PassContext(Stage.REGION, self.evaluate, self._added.rules)
        return _simplify(step, context), tuple(context.rewrites)

    def prepared(
        self, step: StepGraph, *, optimize: bool = True, checked: bool = False
    ) -> StepGraph:
        """Return a graph that was just cut out of a program, ready to be placed."""
        for stage in (Stage.INLINE, Stage.WHOLE) if optimize else (Stage.INLINE,):
            step, _ = self.run(stage, step, checked=checked)
        return step


def _run_added(found: Pass, step: StepGraph, context: PassContext) -> StepGraph:
    """Run the pass of a plugin, and check what it returns."""
    what = f"pass {found.name!r} on a graph of {len(step.graph)} operations"
    try:
        new = found.function(step, context)
        fault = _fault(step, new)
        if fault:
            raise TypeError(f"it must return a StepGraph that computes the same; {fault}")
    except Exception as error:
        raise blamed(error, found.function, found.provider, what) from error
    if new is not step:
        kept = {op.name for op in new.graph.operations}
        gone = tuple(op.name for op in step.graph.operations if op.name not in kept)
        site = step.roots[0].site if step.roots else UNKNOWN_SITE
        context.rewrites.append(
            Rewrite(found.name, f"{len(gone)} operations are gone", gone, site, found.provider.name)
        )
    return new


def _fault(old: StepGraph, new: object) -> str:
    """Return what is wrong with a step that is to stand for another one, empty if nothing is."""
    if not isinstance(new, StepGraph):
        return f"got {type(new).__name__}"
    try:
        verify(new)
    except HeadraceError as error:
        return str(error)
    for what in ("feeds", "fetches"):
        before, after = getattr(old, what), getattr(new, what)
        if len(before) != len(after):
            return f"it has {len(after)} {what}, the step has {len(before)}"
        for was, now in zip(before, after, strict=True):
            if was.dtype != now.dtype or not was.shape.is_compatible_with(now.shape):
                return f"{now.spec} stands for {was.name!r}, which is {was.spec}"
    if len(old.targets) != len(new.targets):
        return f"it has {len(new.targets)} targets, the step has {len(old.targets)}"
    return ""
