"""Determinism: refusing operations that give other bits in an equal run.

Kernels of one device add up in an order that follows from shapes and the number of threads alone.
What is left are operations that draw without a seed or read a clock, kernels whose order is left to
the hardware, which a device names, and changes of one variable in no order with each other, where
queues or other tasks decide what runs first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

from headrace.device_name import DeviceName
from headrace.errors import DeterminismError
from headrace.graph.operation import Operation
from headrace.graph.tensor import Tensor
from headrace.runtime.device import Device

_CLOCKS = ("Timestamp",)
_READS = ("ReadVariable", "VariableInitialized")


def refuse_chance(operations: Sequence[Operation], devices: Mapping[DeviceName, Device]) -> None:
    """Refuse operations whose results differ between equal runs.

    Raises:
        DeterminismError: for the first of them, naming it and how to mend it.
    """
    for op in operations:
        if op.attrs.get("seeds", "") is None:
            raise _refusal(
                op,
                "draws from the system's entropy, since it has no seed",
                "pass seed=..., or call hr.set_random_seed(...) before it is made",
            )
        if op.type in _CLOCKS:
            raise _refusal(op, "reads the clock", "feed the time instead")
        device = devices[op.device_name]
        if op.type in getattr(device, "unordered", ()) and _floats(op):
            raise _refusal(
                op,
                f"adds up in an order that {device.name} leaves to chance",
                "place it on the cpu with hr.device('cpu:0')",
            )


def refuse_races(operations: Sequence[Operation]) -> None:
    """Refuse changes of a variable that other uses of it in a step neither precede nor follow.

    For steps in which something waits: they run what comes first.

    Raises:
        DeterminismError: for the first pair.
    """
    users: dict[Tensor, list[Operation]] = {}
    before: dict[Operation, int] = {}
    bit = {op: 1 << i for i, op in enumerate(operations)}
    for op in operations:
        sooner = 0
        for other in (*(t.op for t in op.inputs), *op.control_inputs):
            sooner |= before.get(other, 0) | bit.get(other, 0)
        before[op] = sooner
        for tensor in op.inputs:
            if tensor.op.type == "VarHandle":
                users.setdefault(tensor, []).append(op)
    for uses in users.values():
        for one, other in combinations(uses, 2):
            ordered = before[other] & bit[one] or before[one] & bit[other]
            if not ordered and not (one.type in _READS and other.type in _READS):
                change, use = (other, one) if one.type in _READS else (one, other)
                raise _refusal(
                    change,
                    f"changes a variable in no order with {use.type} {use.name!r} ({use.site}), "
                    "and this step runs first what does not wait",
                    "order them with hr.control_dependencies",
                )


def _floats(op: Operation) -> bool:
    return any(t.dtype.kind in ("float", "complex") for t in (*op.inputs, *op.outputs)) or any(
        t.spec.content is not None and t.spec.content.dtype.kind in ("float", "complex")
        for t in op.inputs
    )


def _refusal(op: Operation, why: str, mend: str) -> DeterminismError:
    return DeterminismError(
        f"Config(deterministic=True) refuses {op.type} {op.name!r}: it {why}; {mend}\n"
        f"  at {op.site}"
    )
