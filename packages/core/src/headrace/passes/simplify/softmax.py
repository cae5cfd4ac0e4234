"""Rules for softmax, sigmoid and cross-entropies written out by hand, and their gradients.

``-reduce_sum(labels * log(softmax(logits)))`` is how the cross-entropy reads in textbooks. Its
logarithm is of 0 where a probability underflows, and its gradient divides by it. The forms below
are equal where the written ones are finite, and finite where those are not (Blanchard, Higham,
Higham, Accurately computing the log-sum-exp and softmax functions, 2021).
"""

from __future__ import annotations

from headrace.passes.simplify.matching import (
    axes_of,
    class_axis,
    inner,
    number_and_other,
    only_user,
    pairs,
    uniform,
)
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()


@RULES.add(
    *("log-softmax", "Log"),
    reason="log(softmax(x)) is computed at once, exactly where the probability underflows, too",
)
def _log_softmax(node: Node, replacement: Replacement) -> Value | None:
    softmax = inner(node.inputs[0], "Softmax")
    return (
        None
        if softmax is None
        else replacement.add("LogSoftmax", softmax.inputs[0], **softmax.attrs)
    )


@RULES.add("exp-log-softmax", "Exp", reason="exp(log_softmax(x)) is softmax(x), within rounding")
def _exp_log_softmax(node: Node, replacement: Replacement) -> Value | None:
    found = inner(node.inputs[0], "LogSoftmax")
    return None if found is None else replacement.add("Softmax", found.inputs[0], **found.attrs)


@RULES.add(
    *("softmax-log-gradient", "Mul"),
    after=("Softmax",),
    reason="the gradient of log(softmax(x)) is g - softmax(x) * sum(g): nothing is divided by a "
    "probability that may underflow",
)
def _softmax_log_gradient(node: Node, replacement: Replacement) -> Value | None:
    for chances, difference in pairs(node):
        softmax = inner(chances, "Softmax")
        found = None if softmax is None else inner(difference, "Sub")
        if softmax is None or found is None:
            continue
        slope = _divided(found.inputs[0], chances, replacement)
        if slope is None or not _is_mean(found.inputs[1], found.inputs[0], softmax):
            continue
        wide = _along_classes(slope, softmax, replacement)
        if wide is None:
            continue
        axis = class_axis(softmax)
        total = replacement.add("ReduceSum", wide, axis=(axis,), keepdims=True)
        return replacement.add("Sub", slope, replacement.add("Mul", chances, total))
    return None


def _divided(value: Value, divisor: Value, replacement: Replacement) -> Value | None:
    """Return what is divided by ``divisor`` to make a value."""
    quotient = inner(value, "Div", "Reciprocal")
    if quotient is None or quotient.inputs[-1] != divisor:
        return None
    one = quotient.type == "Reciprocal"
    return replacement.constant(1, divisor.dtype) if one else quotient.inputs[0]


def _is_mean(value: Value, slope: Value, softmax: Node) -> bool:
    """Whether a value is the sum of ``slope * softmax`` along the classes, with its axis kept."""
    total = inner(value, "ReduceSum")
    axis = class_axis(softmax)
    if total is None or not total.attrs["keepdims"] or axis is None or axes_of(total) != (axis,):
        return False
    product = inner(total.inputs[0], "Mul")
    return product is not None and (slope, Value(softmax, 0)) in pairs(product)


def _along_classes(slope: Value, softmax: Node, replacement: Replacement) -> Value | None:
    """Return a slope with one element for each class; None where it is not known to have."""
    axis, whole = class_axis(softmax), softmax.specs[0].shape.dims
    if axis is None or whole is None or slope.rank is None or slope.rank > len(whole):
        return None
    dims = slope.spec.shape.dims or ()
    at = axis - (len(whole) - len(dims))
    if len(dims) == len(whole) and dims[at] is not None and dims[at] == whole[axis]:
        return slope
    known = Value(softmax, 0).dims
    fits = known is not None and slope.dims is not None
    return replacement.broadcast(slope, known) if fits and known is not None else None


@RULES.add(
    *("softmax-gradient-scale", "Sub"),
    after=("Mul",),
    reason="c * g - p * sum(c * g) is c * (g - p * sum(g)), within rounding, where c is a normal "
    "number at most 1",
)
def _softmax_gradient_scale(node: Node, replacement: Replacement) -> Value | None:
    scaled, product = (inner(v, "Mul") for v in node.inputs)
    if scaled is None or product is None or not only_user(product):
        return None
    for chances, total in pairs(product):
        softmax, folded = inner(chances, "Softmax"), inner(total, "ReduceSum")
        if softmax is None or folded is None or folded.inputs[0] != node.inputs[0]:
            continue
        for number, source, labels in number_and_other(scaled):
            small = 1e-6 <= abs(float(number)) <= 1
            if not small or uniform(source) is None or labels.spec.shape != scaled.specs[0].shape:
                continue
            sums = replacement.add("ReduceSum", labels, **folded.attrs)
            inside = replacement.add("Sub", replacement.add("Mul", chances, sums), labels)
            factor = replacement.constant(-number, labels.dtype)
            return replacement.add("Mul", inside, factor)
    return None


# -- sigmoid


@RULES.add(
    *("log-sigmoid", "Log"),
    reason="log(sigmoid(x)) is -softplus(-x), exactly where the probability underflows, too",
)
def _log_sigmoid(node: Node, replacement: Replacement) -> Value | None:
    sigmoid = inner(node.inputs[0], "Sigmoid")
    if sigmoid is None or not node.specs[0].dtype.is_floating:
        return None
    return replacement.add(
        "Neg", replacement.add("Softplus", replacement.add("Neg", sigmoid.inputs[0]))
    )


@RULES.add(
    *("log-one-minus-sigmoid", "Log"),
    reason="log(1 - sigmoid(x)) is -softplus(x), exactly where the difference is 0, too",
)
def _log_one_minus_sigmoid(node: Node, replacement: Replacement) -> Value | None:
    sigmoid = _one_minus_sigmoid(node.inputs[0])
    if sigmoid is None or not node.specs[0].dtype.is_floating:
        return None
    return replacement.add("Neg", replacement.add("Softplus", sigmoid.inputs[0]))


def _one_minus_sigmoid(value: Value) -> Node | None:
    difference = inner(value, "Sub")
    if difference is None:
        return None
    one = uniform(difference.inputs[0])
    return inner(difference.inputs[1], "Sigmoid") if one is not None and one == 1 else None


@RULES.add(
    *("sigmoid-log-gradient", "Mul"),
    after=("Mul",),
    reason="the gradients of log(sigmoid(x)) and log(1 - sigmoid(x)) are g * (1 - s) and -g * s: "
    "nothing is divided by a probability that may underflow",
)
def _sigmoid_log_gradient(node: Node, replacement: Replacement) -> Value | None:
    for slope, product in pairs(node):
        curve = inner(product, "Mul")
        if curve is None:
            continue
        for chance, rest in pairs(curve):
            sigmoid = inner(chance, "Sigmoid")
            if sigmoid is None or _one_minus_sigmoid(rest) is not sigmoid:
                continue
            for divisor, left in ((chance, rest), (rest, chance)):
                found = _quotient(slope, divisor, replacement)
                if found is not None:
                    return replacement.add("Mul", found, left)
    return None


def _quotient(value: Value, divisor: Value, replacement: Replacement) -> Value | None:
    """Return what is divided by ``divisor`` to make a value, also where it is negated."""
    negated = inner(value, "Neg")
    found = _divided(value if negated is None else negated.inputs[0], divisor, replacement)
    if found is None or negated is None:
        return found
    return replacement.add("Neg", found)
