"""Throws of dice: a random op that repeats with its seeds."""

import numpy as np

import headrace as hr
from headrace.extend import Index, KernelTable, Spec, TensorSpec, as_shape, hookimpl, op, require
from headrace.extend.state import op_seeds

KERNELS = KernelTable()


# What draws random numbers is stateful: two throws are not merged, and none is computed ahead.
@op("ThrowDice", stateful=True, public="", no_gradient="throws do not depend on anything")
def throw(shape: Index, seeds: tuple[int, int] | None, *, sides: int = 6) -> Spec:
    """Throws of a die.

    Args:
        shape: [n], how many throws along each axis.
        seeds: The graph's and the op's seed, None for the system's entropy.
        sides: How many sides the die has, at least 2.

    Returns:
        [*shape], int32, uniform in 1 to ``sides``.
    """
    require(2 <= sides < 2**31, f"a die has 2 to 2**31 - 1 sides, got {sides}")
    return TensorSpec(hr.int32, as_shape(shape))


# ``ctx.generator`` gives NumPy's generator of this run: equal in every process that has the same
# seeds, another one in the next step.
@KERNELS.stateful("ThrowDice")
def throw_kernel(ctx, shape, *, seeds, sides):
    return ctx.generator(seeds).integers(1, sides + 1, shape, np.int32)


def throw_dice(shape, sides=6, seed=None, name=None):
    """Return throws of a die; ``seed`` and the graph's seed make them repeat."""
    return throw(hr.convert_to_tensor(shape, hr.int32), op_seeds(seed), sides=sides, name=name)


@hookimpl
def headrace_declare_ops():
    """Nothing to do: importing this module has declared the op."""


@hookimpl
def headrace_register_kernels(registry):
    registry.add("cpu", KERNELS)


@hookimpl
def headrace_register_names(registry):
    registry.add("throw_dice", "headrace_dice:throw_dice")
