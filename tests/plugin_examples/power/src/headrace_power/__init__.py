"""Powers with small whole exponents by multiplication: a specialized kernel for an op of core."""

from headrace.extend import hookimpl
from headrace.extend.kernels import KernelTable

KERNELS = KernelTable()


# A specialized kernel is a factory. It is called once for each node of a plan, with all that is
# known of the node, and returns the function that computes it: what can be prepared is prepared
# once. For nodes that it does not do better, it returns None, and the next kernel is asked.
#
# ``Pow`` on the cpu belongs to other packages. Who replaces what others own says why; the reason
# is shown by ``python -m headrace plugins`` and ``ops Pow``. Without it the plugin is refused.
@KERNELS.specialized(
    "Pow", dtypes=["float32", "float64"], override="whole exponents take multiplications only"
)
def whole_power(node):
    """Return a kernel for ``x ** n``, n from 4 to 16, a constant."""
    exponent = node.op.inputs[1].spec.value
    if exponent is None or exponent.size != 1 or exponent.ndim > node.op.outputs[0].shape.rank:
        return None
    n = exponent.item()
    if n != int(n) or not 4 <= n <= 16:
        return None
    digits = bin(int(n))[3:]

    def power(x, exponent):
        result = x
        for digit in digits:
            result = result * result
            if digit == "1":
                result = result * x
        return result

    return power


@hookimpl
def headrace_register_kernels(registry):
    registry.add("cpu", KERNELS)
