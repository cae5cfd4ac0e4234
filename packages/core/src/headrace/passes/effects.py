"""Side effects: which operations a step runs for more than their outputs."""

from __future__ import annotations

from headrace.graph.operation import Operation
from headrace.passes.step_graph import StepGraph


def has_effect(op: Operation) -> bool:
    """Whether a run of an operation does more than yield outputs.

    What yields dead values counts: what depends on it does not run where its output is dead, and
    must not come to life by losing the dependence. Reads, draws and observations leave nothing
    behind: a step that needs their outputs no more need not run them.
    """
    return op.schema.changes or op.schema.may_be_dead or op.holds_state


def dependents_on_effects(step: StepGraph) -> set[Operation]:
    """Return the operations with an effect, and those that run after one."""
    found: set[Operation] = set()
    for op in step.graph.operations:
        if (
            has_effect(op)
            or any(t.op in found for t in op.inputs)
            or any(c in found for c in op.control_inputs)
        ):
            found.add(op)
    return found
