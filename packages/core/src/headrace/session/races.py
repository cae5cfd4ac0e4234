"""Refusing steps in which operations use one variable in no order."""

from __future__ import annotations

from headrace.errors import HeadraceError, RaceError, listing, located
from headrace.graph.collections import GraphKeys
from headrace.graph.graph import Graph
from headrace.passes.races import Race, races
from headrace.passes.step_graph import StepGraph

_MOST_LISTED = 4
# The collection of the tensors by which hooks read the global step.
_READS_OF_HOOKS = "global_step_read_op_cache"
_MEND = "  make the later one under hr.control_dependencies([the earlier one]), or use two steps"


def refuse_races(step: StepGraph, graph: Graph) -> None:
    """Refuse a step that uses a variable, or other state, twice in no order, and changes it.

    Args:
        step: The step, as it was cut out of its program.
        graph: The program's graph.

    Raises:
        RaceError: for the first pair, with the lines of both, and the number of all.
    """
    found = races(step)
    if found:
        # Hooks fetch the global step beside every step, and are ready for either number.
        counters = {
            variable.handle.op.name for variable in graph.get_collection(GraphKeys.GLOBAL_STEP)
        }
        hooks = {t.op.name for t in graph.get_collection(_READS_OF_HOOKS)}
        others = [op for op in step.graph.operations if op.name not in hooks]
        used = {t.op for op in others for t in op.inputs}
        found = [
            race
            for race in found
            if race.both or race.other in used or race.other.inputs[0].op.name not in counters
        ]
    if found:
        raise _refusal(found)


def _refusal(found: list[Race]) -> HeadraceError:
    first, *rest = found
    lines = [
        f"Config(check_races=True) refuses this step: it uses {first.state!r} twice in no order",
        f"  {first.change.type} {first.change.name!r} changes it",
        f"    at {first.change.site}",
        f"  {first.other.type} {first.other.name!r} {'changes' if first.both else 'reads'} it",
        f"    at {first.other.site}",
        _MEND,
    ]
    if rest:
        others = [
            f"{race.state!r} (lines {race.change.site.line} and {race.other.site.line})"
            for race in rest
        ]
        lines.append(f"  besides: {listing(others, _MOST_LISTED)}")
    return located(RaceError, lines, first.change)
