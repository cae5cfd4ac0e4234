"""Operations as nodes: reductions, softmax and cross-entropies."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from headrace import Operation
from headrace.extend.ops import reduced_axes
from headrace_cpu.fusion.build import Builder, Unfit, shape_of_value
from headrace_cpu.fusion.nodes import FLOATS, Check, Operand, code_at, code_of, shape_of

_REDUCTIONS = {
    "ReduceSum": ("total", frozenset({"i32", "i64", "f32", "f64"})),
    "ReduceMean": ("total", FLOATS),
    "ReduceProd": ("product", frozenset({"i32", "i64", "f32", "f64"})),
    "ReduceMax": ("largest", frozenset({"i32", "i64", "f32", "f64"})),
    "ReduceMin": ("smallest", frozenset({"i32", "i64", "f32", "f64"})),
    "ReduceAll": ("both", frozenset({"b8"})),
    "ReduceAny": ("either", frozenset({"b8"})),
}
# Along axes of at most so many elements, before so many, rows are compared in registers. Others are
# looked through once, by a sweep.
_LONGEST, _NARROWEST, _WIDEST = 16, 8, 64
_EXTREMES, _COUNTED = frozenset({"i32", "i64", "f32", "f64"}), frozenset({"i32", "i64"})
PLACES = ("ArgMax", "ArgMin")


def _reduce(b: Builder, op: Operation) -> None:
    name, codes = _REDUCTIONS[op.type]
    value = b.value(op.inputs[0])
    if code_at(value) not in codes:
        raise Unfit("a reduction of another dtype")
    places = reduced_axes(op.attrs["axis"], len(shape_of_value(value)))
    result = b.reduce(name, value, places, op.attrs["keepdims"])
    if op.type == "ReduceMean":
        sizes = shape_of_value(value)
        count = 1
        for place in places:
            count *= sizes[place]
        if count > 1:
            result = b.map("divide", result, b.const(count, result.node.code))
    b.values[op.outputs[0]] = result


def finds_places(op: Operation) -> bool:
    """Whether reductions find places of extremes: along a short axis, before short ones."""
    shape, axis = shape_of(op.inputs[0]), op.attrs["axis"]
    at = (0 if axis is None else axis) % len(shape) if shape else 0
    inner = prod(shape[at + 1 :])
    fits = bool(shape) and 1 < shape[at] <= _LONGEST and _NARROWEST <= inner <= _WIDEST
    known = code_of(op.inputs[0].dtype) in _EXTREMES and code_of(op.outputs[0].dtype) in _COUNTED
    return fits and known


def _place(b: Builder, op: Operation) -> None:
    """Find where the largest or smallest is: the first of those that are equal, and never NaN."""
    if not finds_places(op):
        raise Unfit("places along another axis")
    shape, axis = shape_of(op.inputs[0]), op.attrs["axis"]
    at = (0 if axis is None else axis) % len(shape)
    x = b.operand(op.inputs[0])
    dim, largest = x.axes[at], op.type == "ArgMax"
    if dim is None:
        raise Unfit("places among equals")
    if x.node.code in FLOATS:
        worst = b.const(-np.inf if largest else np.inf, x.node.code)
        x = b.map("where", b.map("equal", x, x, code="b8"), x, worst)
    best = b.reduce("largest" if largest else "smallest", x, [at], keep=True)
    code = code_of(op.outputs[0].dtype)
    assert code is not None
    place = b.position(dim, code, len(shape) - 1 - at)
    none = b.const(shape[at], code)
    found = b.map("where", b.map("equal", x, best, code="b8"), place, none)
    b.values[op.outputs[0]] = b.reduce("smallest", found, [at], keep=False)


def _sum_to_shape(b: Builder, op: Operation) -> None:
    value = b.value(op.inputs[0])
    sizes, wanted = shape_of_value(value), shape_of(op.outputs[0])
    if code_at(value) not in _REDUCTIONS["ReduceSum"][1]:
        raise Unfit("a sum of another dtype")
    lead = len(sizes) - len(wanted)
    places = [*range(lead), *(lead + i for i, d in enumerate(wanted) if d != sizes[lead + i])]
    total = b.reduce("total", value, places, keep=True)
    b.values[op.outputs[0]] = Operand(total.node, total.axes[lead:])


def _l2_loss(b: Builder, op: Operation) -> None:
    x = b.operand(op.inputs[0])
    squares = b.map("multiply", x, x)
    total = b.reduce("total", squares, range(len(x.axes)), keep=False)
    b.values[op.outputs[0]] = b.map("divide", total, b.const(2, x.node.code))


def _below_maximum(b: Builder, x: Operand, at: int) -> Operand:
    """Return ``x`` less its maximum; infinite maxima count as equal to themselves."""
    largest = b.reduce("largest", x, [at], keep=True)
    infinite = b.map("equal", b.map("abs", largest), b.const(np.inf, x.node.code), code="b8")
    same = b.map("logical_and", b.map("equal", x, largest, code="b8"), infinite, code="b8")
    return b.map("where", same, b.const(0, x.node.code), b.map("subtract", x, largest))


def _exponentials(b: Builder, x: Operand, at: int) -> tuple[Operand, Operand, Operand]:
    """Return what is below the maximum, its exponentials, and their sum."""
    below = _below_maximum(b, x, at)
    powers = b.map("exp", below)
    return below, powers, b.reduce("total", powers, [at], keep=True)


def _axis(op: Operation, rank: int) -> int:
    axis = op.attrs["axis"]
    if not rank:
        raise Unfit("softmax of a scalar")
    return int((-1 if axis is None else axis) % rank)


def _softmax(b: Builder, op: Operation) -> None:
    x = b.operand(op.inputs[0])
    _, powers, total = _exponentials(b, x, _axis(op, len(x.axes)))
    b.values[op.outputs[0]] = b.map("divide", powers, total)


def _log_softmax(b: Builder, op: Operation) -> None:
    x = b.operand(op.inputs[0])
    below, _, total = _exponentials(b, x, _axis(op, len(x.axes)))
    b.values[op.outputs[0]] = b.map("subtract", below, b.map("log", total))


def _cross_entropy(b: Builder, op: Operation) -> None:
    x = b.operand(op.inputs[0])
    labels = b.load(b.value(op.inputs[1]), x.axes)
    zero = b.const(0, x.node.code)
    below, powers, total = _exponentials(b, x, 1)
    terms = b.map("multiply", labels, b.map("subtract", b.map("log", total), below))
    # A class that is ruled out costs nothing where its logit is -inf, too: not 0 * inf.
    terms = b.map("where", b.map("equal", labels, zero, code="b8"), zero, terms)
    b.values[op.outputs[0]] = b.reduce("total", terms, [1], keep=False)
    b.values[op.outputs[1]] = b.map("subtract", b.map("divide", powers, total), labels)


def _sparse_cross_entropy(b: Builder, op: Operation) -> None:
    x = b.operand(op.inputs[0])
    rows, classes = x.axes
    labels = b.load(b.value(op.inputs[1]), (rows,))
    code, label_code = x.node.code, labels.node.code
    count = shape_of(op.inputs[0])[1]
    wrong = b.map(
        "logical_or",
        b.map("less", labels, b.const(0, label_code), code="b8"),
        b.map("greater_equal", labels, b.const(count, label_code), code="b8"),
        code="b8",
    )
    message = f"a label is out of range [0, {count}) of the {count} classes"
    if labels.node.value is not None:
        message = f"index {labels.node.value} is out of range: {message}"
    b.checks.append(Check(message, IndexError, labels.node.tensor, count, operand=wrong))
    below, powers, total = _exponentials(b, x, 1)
    spread = Operand(labels.node, (*labels.axes, None))
    if classes is None:
        hit = b.map("equal", spread, b.const(0, label_code), code="b8")
    else:
        hit = b.map("equal", spread, b.position(classes, label_code), code="b8")
    zero = b.const(0, code)
    picked = b.reduce("total", b.map("where", hit, below, zero), [1], keep=False)
    logs = b.map("log", total)
    b.values[op.outputs[0]] = b.map("subtract", Operand(logs.node, logs.axes[:1]), picked)
    one = b.map("where", hit, b.const(1, code), zero)
    b.values[op.outputs[1]] = b.map("subtract", b.map("divide", powers, total), one)


REDUCTION_RULES: dict[str, Callable[[Builder, Operation], None]] = {
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "SumToShape": _sum_to_shape,
    "L2Loss": _l2_loss,
    **dict.fromkeys(PLACES, _place),
    "Softmax": _softmax,
    "LogSoftmax": _log_softmax,
    "SoftmaxCrossEntropyWithLogits": _cross_entropy,
    "SparseSoftmaxCrossEntropyWithLogits": _sparse_cross_entropy,
}
