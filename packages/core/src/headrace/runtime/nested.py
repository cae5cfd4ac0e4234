"""Planning the functions that operations hold, for the device of the operation.

The inside of a function is prepared as a step is: pruned, simplified, placed and partitioned. Its
operations may ask for any device of the same task; where they ask for none, they run where the
operation does that holds the function. What asks for another task is spread before
(``session/spread.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from headrace.device_name import DeviceName
from headrace.graph.function import Function
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.partition.partition import partition
from headrace.passes.dedupe import dedupe
from headrace.passes.fold import fold
from headrace.passes.inline import inline_calls
from headrace.passes.prune import extract, prune
from headrace.placement.lists import lists_together
from headrace.placement.place import Machine, kernel_dtype, place
from headrace.plugins.registries import KernelRegistry

# Above every priority that a plugin gives its devices.
HOME_PRIORITY = 1_000_000


def function_partitions(
    function: Function,
    saves: tuple[str, ...],
    home: DeviceName,
    machine: Machine,
    *,
    optimize: bool = True,
) -> Mapping[DeviceName, Graph]:
    """Return the inside of a function, by device.

    Args:
        function: The function.
        saves: Names of tensors of it that are wanted besides its results.
        home: The device of the operation that holds it.
        machine: The devices of its task.
        optimize: Whether to simplify it.

    Raises:
        PlacementError: if an operation inside cannot run on any device of the task.
    """
    wanted = [*function.results, *(function.get_tensor_by_name(name) for name in saves)]
    step = inline_calls(extract((), wanted, function.effects))
    if optimize:
        step = prune(dedupe(fold(step, lambda op, inputs: evaluate(op, inputs, machine.kernels))))
    step = lists_together(step, home)
    near = replace(machine, priorities={**machine.priorities, home.kind or "": HOME_PRIORITY})
    pinned = {op.name: home for op in step.graph.operations if op.type == "Parameter"}
    placement = place(step, near, pinned=pinned)
    return partition(step, placement, home, result="Return")


def evaluate(op: Operation, inputs: Any, kernels: KernelRegistry) -> list[Any] | None:
    """Return an operation's outputs computed on the host, None where that is not possible."""
    for kernel in kernels.candidates(op.type, "cpu", kernel_dtype(op)):
        if kernel.style != "plain":
            continue
        try:
            with np.errstate(all="ignore"):
                result = kernel.function(np, *op.schema.group(list(inputs), op.arity), **op.attrs)
        except Exception:
            # The step reports it, with the node and the user's line.
            return None
        return list(result) if isinstance(result, list | tuple) else [result]
    return None
