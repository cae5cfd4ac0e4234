"""Constants without control edges that those who read them have, too."""

from __future__ import annotations

from headrace.passes.step_graph import Rewriter, StepGraph


def free_constants(step: StepGraph) -> StepGraph:
    """Let constants wait for nothing, where each of their readers waits for the same by itself.

    A program that creates nodes under ``control_dependencies`` gives the edges to constants, too. A
    constant that waits is a node of the step, and keeps what reads it from being fused with what it
    waits for.
    """
    waiting = {op for op in step.graph.operations if op.type == "Const" and op.control_inputs}
    if not waiting:
        return step
    waiting.difference_update(step.roots)
    for op in step.graph.operations:
        waiting.difference_update(op.control_inputs)
        read = [t.op for t in op.inputs if t.op in waiting]
        if read:
            own = {*op.control_inputs, *(t.op for t in op.inputs)}
            waiting.difference_update([c for c in read if not own.issuperset(c.control_inputs)])
    if not waiting:
        return step
    rewriter = Rewriter("free-constants")
    for op in step.graph.operations:
        rewriter.copy(op, controls=() if op in waiting else None)
    return rewriter.finish(step)
