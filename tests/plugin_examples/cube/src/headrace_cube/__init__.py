"""The op ``Cube`` for Headrace: its declaration, its kernel, its gradient, and the hooks."""

from headrace.extend import Floating, GradientTable, KernelTable, Spec, hookimpl, op

headrace_api = 1  # the version of the plugin interface that this is written for

KERNELS = KernelTable()
GRADIENTS = GradientTable()


# The signature is the schema: a tensor of floats. The docstring is what users read. The body is
# the rule for dtype and shape; here the result has those of ``x``.
@op("Cube", elementwise=True)
def cube(x: Floating) -> Spec:
    """Cube ``x * x * x``, elementwise.

    Args:
        x: [...], floating.

    Returns:
        [...], the dtype of ``x``.
    """
    return x


# ``xp`` is the array module of the device: NumPy on the cpu, CuPy on a GPU. Kernels return a new
# array and leave their inputs as they are.
@KERNELS.plain("Cube")
def cube_kernel(xp, x):
    return x * x * x


# From the node and the gradient of its output to the gradients of its inputs, in ordinary
# tensors: gradients of gradients follow from that.
@GRADIENTS.add("Cube")
def cube_gradient(node, gy):
    (x,) = node.inputs
    return [gy * 3.0 * x * x]


# Headrace calls the hooks once, when it first needs what they bring.
@hookimpl
def headrace_declare_ops():
    """Nothing to do: importing this module has declared the op."""


@hookimpl
def headrace_register_kernels(registry):
    registry.add("cpu", KERNELS)


@hookimpl
def headrace_register_gradients(registry):
    registry.add(GRADIENTS)


@hookimpl
def headrace_register_names(registry):
    registry.add("cube", "headrace_cube:cube")  # users call headrace.cube(x)
