"""Passes: rewriting steps, and rules of the simplifier.

A pass is ``f(step, context)``, which returns a ``StepGraph`` that computes the same; a ``Rewriter``
copies a graph node by node. A rule looks at one ``Node`` and returns the ``Value`` to take for its
output, built with a ``Replacement``, or None. A plugin adds both in the hook
``headrace_register_passes``; ``headrace.testing.rules`` checks rules.
"""

from headrace.graph.attributes import (
    attribute_key,
)
from headrace.passes.pipeline import (
    PassContext,
    Pipeline,
    Stage,
)
from headrace.passes.prune import (
    extract,
)
from headrace.passes.rewrites import (
    Rewrite,
)
from headrace.passes.simplify.matching import (
    array_of,
    axes_of,
    inner,
    ints_of,
    is_zero,
    keeps_shape,
    number_and_other,
    only_user,
    pairs,
    perm_of,
    uniform,
)
from headrace.passes.simplify.replacement import (
    Replacement,
)
from headrace.passes.simplify.rules import (
    ELEMENTWISE,
    Rule,
    RuleTable,
)
from headrace.passes.simplify.workgraph import (
    Node,
    Value,
)
from headrace.passes.step_graph import (
    Rewriter,
    StepGraph,
    verify,
)
from headrace.plugins.registries.passes import (
    PassRegistry,
)

__all__ = [
    "ELEMENTWISE",
    "Node",
    "PassContext",
    "PassRegistry",
    "Pipeline",
    "Replacement",
    "Rewrite",
    "Rewriter",
    "Rule",
    "RuleTable",
    "Stage",
    "StepGraph",
    "Value",
    "array_of",
    "attribute_key",
    "axes_of",
    "extract",
    "inner",
    "ints_of",
    "is_zero",
    "keeps_shape",
    "number_and_other",
    "only_user",
    "pairs",
    "perm_of",
    "uniform",
    "verify",
]
