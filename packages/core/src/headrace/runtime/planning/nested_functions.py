"""Planning the functions that operations hold, for the device of the operation.

The inside of a function is prepared as a step is: pruned, simplified, placed and partitioned. Its
operations may ask for any device of the same task; where they ask for none, they run where the
operation does that holds the function. What asks for another task is spread before
(``partition/distributed_control_flow.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.device_name import DeviceName
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.partition.partition import partition
from headrace.passes.prune import extract
from headrace.placement.list_colocation import lists_together
from headrace.placement.place import HOME_PRIORITY, Machine, place


def function_partitions(
    function: Function,
    saves: tuple[str, ...],
    home: DeviceName,
    machine: Machine,
    *,
    optimize: bool = True,
    verify: bool = False,
) -> Mapping[DeviceName, Graph]:
    """Return the inside of a function, by device.

    Args:
        function: The function.
        saves: Names of tensors of it that are wanted besides its results.
        home: The device of the operation that holds it.
        machine: The devices of its task.
        optimize: Whether to simplify it.
        verify: Whether to check its graph after every pass.

    Raises:
        PlacementError: if an operation inside cannot run on any device of the task.
    """
    wanted = [*function.results, *(function.get_tensor_by_name(name) for name in saves)]
    step = machine.pipeline.prepared(
        extract((), wanted, function.effects), optimize=optimize, checked=verify
    )
    step = lists_together(step, home)
    priorities = {**machine.priorities, home.kind or "": HOME_PRIORITY}
    near = replace(machine, priorities=priorities, home=home)
    pinned = {op.name: home for op in step.graph.operations if op.type == "Parameter"}
    placement = place(step, near, pinned=pinned)
    return partition(step, placement, home, result="Return", of=machine.part)
