"""Plans of native loops along an axis: argmax and argmin, cumulative sums and products."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from headrace import Operation
from headrace_cpu.fusion.reduce import finds_places
from headrace_cpu.kernels.numeric import axis_index
from headrace_cpu.native_loops import argmax, scans
from headrace_cpu.native_loops.instruction import Plan, Step
from headrace_cpu.native_loops.native_loop import SIZES, code_of, team_for
from headrace_cpu.program.instruction import ALIGNMENT


def _lines(op: Operation) -> tuple[int, int, int] | None:
    """Return how many lines there are before the axis, their length, and how many behind it."""
    shape, axis = op.inputs[0].shape.known, op.attrs["axis"]
    if not shape or not 0 < prod(shape) < 1 << 31:
        return None
    at = axis_index(0 if axis is None else axis, len(shape))
    return prod(shape[:at]), shape[at], prod(shape[at + 1 :])


def search_plan(op: Operation, threads: int) -> Plan | None:
    """Return how the places of the largest or smallest are found, None where kernels reduce."""
    if finds_places(op):
        return None
    x, out = op.inputs[0], op.outputs[0]
    code, found, lines = code_of(x.dtype.numpy), code_of(out.dtype.numpy), _lines(op)
    if code in (None, "b8") or found not in ("i32", "i64") or lines is None:
        return None
    assert code is not None
    outer, length, inner = lines
    rows, columns = argmax.native_loops_of(code, found, largest=op.type == "ArgMax")
    team = team_for(prod(lines) // 2, threads)
    numbers = {"outer": outer, "length": length, "inner": inner}
    tensors = {"x": x, "out": out}
    if inner == 1:
        return Plan([Step(rows, team, numbers, tensors)])
    bests = _aligned(argmax.BLOCK * SIZES[code] * team)
    step = Step(columns, team, numbers, tensors, {"bests": 0, "places": bests})
    return Plan([step], bests + argmax.BLOCK * 4 * team)


def is_numpys(op: Operation, threads: int) -> bool:
    """Whether NumPy finds places of extremes more quickly."""
    lines = _lines(op)
    code = code_of(op.inputs[0].dtype.numpy)
    alone = lines is not None and team_for(prod(lines) // 2, threads) == 1
    return alone and lines is not None and lines[2] == 1 and lines[1] > argmax.longest(code)


def scan_plan(op: Operation, threads: int) -> Plan | None:
    """Return how sums or products of all elements before are computed."""
    x, out = op.inputs[0], op.outputs[0]
    code, lines = code_of(x.dtype.numpy), _lines(op)
    if code in (None, "b8") or lines is None or len(op.inputs) != 1:
        return None
    assert code is not None
    outer, length, inner = lines
    rows, columns = scans.native_loops_of(op.type, code)
    team = team_for(prod(lines), threads)
    numbers = {"outer": outer, "length": length, "inner": inner,
               "exclusive": int(op.attrs["exclusive"]),
               "reverse": int(op.attrs["reverse"])}  # fmt: skip
    tensors = {"x": x, "y": out}
    flops = prod(lines) if x.dtype.is_floating else 0
    if inner < scans.WIDE:
        return Plan([Step(rows, team, numbers, tensors)], flops=flops)
    block = scans.block_for(inner, team)
    numbers["block_size"] = block
    step = Step(columns, team, numbers, tensors, {"sums": 0})
    return Plan([step], block * team * SIZES[code], flops)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


# Of which operations plain kernels are quicker, outside of loops.
LEFT: dict[str, Callable[[Operation, int], bool]] = dict.fromkeys(("ArgMax", "ArgMin"), is_numpys)
