"""Means over moving windows, whose size a step may compute: an op with an input on the host."""

import headrace as hr
from headrace.errors import AttributeValueError, ShapeError
from headrace.extend import Floating, GradientTable, Index, KernelTable, Spec, hookimpl, op, require

KERNELS = KernelTable()
GRADIENTS = GradientTable()


# The size decides how large the result is, so the kernel must know it before any memory is there:
# on a GPU, too, it comes as an array of NumPy.
@op("RollingMean", host_inputs=["size"])
def rolling_mean(x: Floating, size: Index) -> Spec:
    """Means of ``size`` elements that follow one another.

    Args:
        x: [n], floating.
        size: [], how many elements a window has, 1 to n.

    Returns:
        [n - size + 1], the dtype of ``x``: element i is the mean of ``x[i : i + size]``.
    """
    require(x.rank in (None, 1), f"x must have one axis, got shape {x.shape}", ShapeError)
    require(size.rank in (None, 0), f"size must be a scalar, got shape {size.shape}", ShapeError)
    # Known where the size is a constant; otherwise the step knows it.
    (n,) = x.shape.dims or [None]
    if n is None or size.value is None:
        return x.with_shape([None])
    check(int(size.value), n)
    return x.with_shape([n - int(size.value) + 1])


def check(size, n):
    """Refuse a window that does not fit; the rule asks, and the kernel where the rule cannot."""
    require(1 <= size <= n, f"size must be in 1 to {n}, got {size}", AttributeValueError)


# The same kernel serves NumPy and CuPy: ``size`` is a number of the host for both.
@KERNELS.plain("RollingMean")
def rolling_mean_kernel(xp, x, size):
    size, (n,) = int(size), x.shape
    check(size, n)
    sums = xp.zeros(n - size + 1, x.dtype)
    for start in range(size):
        sums += x[start : n - size + 1 + start]
    return sums / x.dtype.type(size)


# An element counts in each window that holds it: the gradient is a rolling mean, too, of the
# incoming one with zeros on both sides.
@GRADIENTS.add("RollingMean")
def rolling_mean_gradient(node, gy):
    size = node.inputs[1]
    beside = hr.reshape(size - 1, [1, 1])
    padded = hr.pad(gy, hr.concat([beside, beside], 1))
    return [rolling_mean(padded, size), None]


@hookimpl
def headrace_declare_ops():
    """Nothing to do: importing this module has declared the op."""


@hookimpl
def headrace_register_kernels(registry):
    registry.add("cpu", KERNELS)
    registry.add("cuda", KERNELS)


@hookimpl
def headrace_register_gradients(registry):
    registry.add(GRADIENTS)


@hookimpl
def headrace_register_names(registry):
    registry.add("rolling_mean", "headrace_rolling:rolling_mean")
