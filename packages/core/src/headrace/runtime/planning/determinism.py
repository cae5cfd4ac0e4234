"""Determinism: refusing operations that give other bits in an equal run.

Kernels of one device add up in an order that follows from shapes and the number of threads alone.
What is left are operations that draw without a seed or read a clock, kernels whose order is left to
the hardware, which a device says, and changes of one variable in no order with each other, where
queues or other tasks decide what runs first.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from headrace.device_name import DeviceName
from headrace.errors import DeterminismError
from headrace.graph.operation import Operation
from headrace.passes.races import Use, unordered
from headrace.runtime.devices.capabilities import sums_in_any_order
from headrace.runtime.devices.device import Device


def refuse_chance(operations: Sequence[Operation], devices: Mapping[DeviceName, Device]) -> None:
    """Refuse operations whose results differ between equal runs.

    Raises:
        DeterminismError: for the first of them, naming it and how to fix it.
    """
    for op in operations:
        if "draws" in op.schema.effects and op.attrs.get("seeds") is None:
            raise _refusal(
                op,
                "draws from the system's entropy, since it has no seed",
                "pass seed=..., or call hr.set_random_seed(...) before it is made",
            )
        if "observes" in op.schema.effects and not op.schema.builtin:
            raise _refusal(
                op,
                "observes what lies outside the program, such as a clock",
                "feed what it yields instead",
            )
        device = devices[op.device_name]
        if op.schema.accumulates and sums_in_any_order(device) and _floats(op):
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
    uses: dict[Hashable, list[Use]] = {}
    for op in operations:
        for tensor in dict.fromkeys(op.inputs):
            if tensor.op.type == "VarHandle":
                uses.setdefault(tensor, []).append(Use(op, op, op if op.schema.changes else None))
    for _, change, use in unordered(operations, uses):
        raise _refusal(
            change.op,
            f"changes a variable in no order with {use.op.type} {use.op.name!r} ({use.op.site}), "
            "and this step runs first what does not wait",
            "order them with hr.control_dependencies",
        )


def _floats(op: Operation) -> bool:
    return any(t.dtype.kind in ("float", "complex") for t in (*op.inputs, *op.outputs)) or any(
        t.spec.content is not None and t.spec.content.dtype.kind in ("float", "complex")
        for t in op.inputs
    )


def _refusal(op: Operation, why: str, fix: str) -> DeterminismError:
    return DeterminismError(
        f"Config(deterministic=True) refuses {op.type} {op.name!r}: it {why}; {fix}\n  at {op.site}"
    )
