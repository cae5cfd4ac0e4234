"""Strided copies: parts of tensors whose elements do not follow each other in memory.

Python would show such a part where it is, and copy it for each instruction that reads it: several
microseconds, whatever its size. Many tables are looked up with a column each of one matrix of ids.
"""

from __future__ import annotations

import functools

from headrace import Operation
from headrace_cpu.fusion.build import Unfit
from headrace_cpu.fusion.fusion_group import built
from headrace_cpu.fusion.nodes import View
from headrace_cpu.fusion.parts import PART_RULES
from headrace_cpu.native_loops.instruction import BoundNativeLoop, Plan, Step
from headrace_cpu.native_loops.native_loop import NativeLoop
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matching import Candidate
from headrace_cpu.program.values import is_native

TYPES = frozenset(PART_RULES)
# A copy of more elements takes longer than Python around it, and kernels may read where they are.
_MOST = 1 << 14
# Axes that a part may have, once those that follow each other are one.
_RANK = 4
_COPY = """\
for a in range(size_0):
    for b in range(size_1):
        for c in range(size_2):
            source = x + (first + a * step_0 + b * step_1 + c * step_2) * SIZE_T
            target = out + ((a * size_1 + b) * size_2 + c) * size_3 * SIZE_T
            for d in range(size_3):
                store_T(target, d, load_T(source, d * step_3, 0), 1)
"""
_SIZES, _STEPS = (tuple(f"{what}_{i}" for i in range(_RANK)) for what in ("size", "step"))
# What is copied, by the bytes of an element.
_CODES = {1: "u8", 2: "u16", 4: "u32", 8: "u64"}


@functools.cache
def _native_loop(code: str) -> NativeLoop:
    return NativeLoop("part", ("x", "out", "first", *_SIZES, *_STEPS), _COPY, {"T": code})


def wants(candidate: Candidate) -> bool:
    """Whether an instruction reads a part that is copied for it."""
    op, matches = candidate.op, candidate.matches
    # In rounds of loops, fused kernels copy parts.
    if candidate.settings.keen or not all(map(is_native, (op.inputs[0], *op.outputs))):
        return False
    return any(map(matches.taken, matches.users(op.outputs[0])))


def make(candidate: Candidate) -> Instruction | None:
    """Return the instruction that copies a part; None where it is as good where it is."""
    op = candidate.op
    box = _box(op)
    code = _CODES.get(op.outputs[0].dtype.numpy.itemsize)
    if box is None or code is None:
        return None
    first, axes = box
    sizes = {name: size for name, (size, _) in zip(_SIZES, axes, strict=True)}
    steps = {name: step for name, (_, step) in zip(_STEPS, axes, strict=True)}
    numbers = {"first": first, **sizes, **steps}
    step = Step(_native_loop(code), 1, numbers, {"x": op.inputs[0], "out": op.outputs[0]})
    return BoundNativeLoop(op, Plan([step]))


def _box(op: Operation) -> tuple[int, list[tuple[int, int]]] | None:
    """Return where a part begins, and the size and step of each axis, all in elements.

    None where its elements follow each other, and where it is large or has many axes.
    """
    try:
        part = built([op]).values[op.outputs[0]]
    except Unfit:
        return None
    if not isinstance(part, View) or part.tensor is not op.inputs[0]:
        return None
    axes: list[tuple[int, int]] = []
    for size, step in zip(part.shape, part.strides, strict=True):
        if size == 1:
            continue
        if axes and axes[-1][1] == size * step:
            axes[-1] = axes[-1][0] * size, step
        else:
            axes.append((size, step))
    count = 1
    for size, _ in axes:
        count *= size
    solid = len(axes) <= 1 and all(step == 1 for _, step in axes)
    if solid or not 0 < count <= _MOST or len(axes) > _RANK:
        return None
    return part.offset, [(1, 0)] * (_RANK - len(axes)) + axes
