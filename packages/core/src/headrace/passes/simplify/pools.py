"""Rules for pools."""

from __future__ import annotations

from headrace.ops.windows import channel_axis
from headrace.passes.simplify.matching import axes_of, inner, is_zero, only_user, uniform
from headrace.passes.simplify.replacement import Replacement
from headrace.passes.simplify.rules import RuleTable
from headrace.passes.simplify.workgraph import Node, Value

RULES = RuleTable()


@RULES.add(
    *("mask-of-max-pool-grad", "Select"),
    after=("MaxPoolGrad",),
    reason="the gradient of a window is at its first maximum, which is above 0 where the window's "
    "maximum is: masking the few windows is masking all elements",
)
def _mask_of_max_pool_grad(node: Node, replacement: Replacement) -> Value | None:
    """Take the gradient of a rectifier before a pool where the images are smaller."""
    condition, kept, other = node.inputs
    grad, above = inner(kept, "MaxPoolGrad"), inner(condition, "Greater")
    if grad is None or above is None or not only_user(grad) or not _is_plain_zero(other):
        return None
    images, outer = grad.inputs
    if above.inputs[0] != images or not is_zero(uniform(above.inputs[1])):
        return None
    if Value(node, 0).dims is None or Value(node, 0).dims != images.dims:
        return None
    pooled = next((user for user in images.node.users if _pools_alike(user, images, grad)), None)
    if pooled is None:
        return None
    positive = replacement.add("Greater", Value(pooled, 0), above.inputs[1])
    masked = replacement.add("Select", positive, outer, other)
    return replacement.add("MaxPoolGrad", images, masked, **grad.attrs)


def _is_plain_zero(value: Value) -> bool:
    return value.dims == () and is_zero(uniform(value), negative=False)


def _pools_alike(node: Node, images: Value, grad: Node) -> bool:
    """Whether a node pools the same images as the pool that a gradient belongs to."""
    if node.type != "MaxPool" or node.controls or node.inputs[0] != images:
        return False
    return dict(node.attrs) == dict(grad.attrs)


@RULES.add(
    *("sum-of-pool-grad", "ReduceSum"),
    after=("MaxPoolGrad", "AvgPoolGrad"),
    reason="each window's gradient is spread over elements of its own channel, to the last bit or "
    "within rounding: what the images get is what the windows had",
)
def _sum_of_pool_grad(node: Node, replacement: Replacement) -> Value | None:
    grad = inner(node.inputs[0], "MaxPoolGrad", "AvgPoolGrad")
    axes = axes_of(node)
    if grad is None or axes is None or any(step != 1 for step in grad.attrs["dilations"] or ()):
        # With gaps, a window may lie in the padding with all its elements.
        return None
    rank = len(grad.attrs["data_format"])
    spatial = set(range(1, rank)) - {channel_axis(grad.attrs["data_format"])}
    if not spatial <= set(axes):
        return None
    return replacement.again([grad.inputs[1]])
