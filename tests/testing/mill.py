"""A small plugin in which nothing is wrong. ``mutants`` puts one fault after another into it."""

import numpy as np

import headrace as hr
from headrace.extend import (
    Floating,
    GradientTable,
    Index,
    KernelTable,
    Resource,
    Spec,
    TensorSpec,
    hookimpl,
    op,
)
from headrace.extend.gradients import shape_of, sum_to_shape
from headrace.extend.passes import RuleTable, inner
from headrace.extend.state import handle_spec
from headrace.testing import Reject, Sample, Scenario, array, rule_case, uniform

KERNELS = KernelTable()
DEVICE_KERNELS = KernelTable()
GRADIENTS = GradientTable()
RULES = RuleTable()


# -- an elementwise op of one tensor


@op("MillCube", elementwise=True)
def mill_cube(x: Floating) -> Spec:
    """Cube ``x * x * x``, elementwise."""
    return x


@KERNELS.plain("MillCube")
def cube_kernel(xp, x):
    return x * x * x


@GRADIENTS.add("MillCube")
def cube_gradient(node, gy):
    (x,) = node.inputs
    return [gy * 3.0 * x * x]


# -- an elementwise op of two tensors, with an attribute


@op("MillBlend", elementwise=True)
def mill_blend(x: Floating, y: Floating, *, share: float = 0.25) -> Spec:
    """Blend ``share * x * y + (1 - share) * y``, elementwise with broadcasting."""
    return x.with_shape(hr.broadcast_static_shape(x.shape, y.shape))


@KERNELS.plain("MillBlend")
def blend_kernel(xp, x, y, *, share):
    part = x.dtype.type(share)
    return part * x * y + (x.dtype.type(1) - part) * y


@GRADIENTS.add("MillBlend")
def blend_gradient(node, gy):
    x, y = node.inputs
    share = node.attrs["share"]
    by_x = gy * share * y
    by_y = gy * (share * x + (1.0 - share))
    return [sum_to_shape(by_x, shape_of(x)), sum_to_shape(by_y, shape_of(y))]


# -- a reduction that has a second kernel, for float32


@op("MillTotal", reduction=True)
def mill_total(x: Floating) -> Spec:
    """Sum of squares over the last axis."""
    return x.with_shape(x.shape[:-1] if x.rank is not None else None)


@KERNELS.plain("MillTotal")
def total_kernel(xp, x):
    return xp.sum(x * x, axis=-1, dtype=x.dtype)


@KERNELS.plain("MillTotal", dtypes=["float32"], priority=5)
def total_float32(xp, x):
    return xp.einsum("...i,...i->...", x, x)


@GRADIENTS.add("MillTotal")
def total_gradient(node, gy):
    (x,) = node.inputs
    return [2.0 * x * hr.expand_dims(gy, -1)]


# -- an op that reads the value of an input


@op(
    "MillRows",
    host_inputs=["count"],
    no_gradient="it copies rows; the sum of their gradients is not needed here",
)
def mill_rows(x: Floating, count: Index) -> Spec:
    """The first ``count[0]`` rows of a matrix."""
    if count.value is None or x.rank is None:
        return x.with_shape([None, None])
    return x.with_shape([int(count.value[0]), x.shape[1]])


@KERNELS.plain("MillRows")
def rows_kernel(xp, x, count):
    n = int(np.asarray(count)[0])
    if not 0 <= n <= x.shape[0]:
        raise ValueError(f"count must be in [0, {x.shape[0]}], got {n}")
    return x[:n].copy()


# -- an op that draws


@op("MillNoise", effects="draws", no_gradient="it draws")
def mill_noise(x: Floating, *, seeds: tuple[int, int] | None = None) -> Spec:
    """Uniform numbers in [0, 1) of the shape of ``x``."""
    return x


@KERNELS.stateful("MillNoise")
def noise_kernel(ctx, x, *, seeds):
    key, draw = ctx.draw(seeds)
    bits = np.random.Philox(key=np.array(key, np.uint64), counter=draw << 64)
    return np.random.Generator(bits).random(x.shape).astype(x.dtype)


# -- a counter, which outlives steps


@op("MillCounter", stateful=True, no_gradient="a handle")
def mill_counter(*, container: str = "", shared_name: str = "") -> Spec:
    """The handle of a counter."""
    return handle_spec(TensorSpec(hr.int64, hr.Shape([])))


class Counter:
    """Counts."""

    def __init__(self, name):
        self.count = 0

    def reset(self):
        """Start again."""
        self.count = 0


KERNELS.resource("MillCounter")(Counter)


@op("MillCount", stateful=True, no_gradient="it counts")
def mill_count(counter: Resource) -> Spec:
    """Count one more, and return how many it are."""
    return counter.content


@KERNELS.plain("MillCount")
def count_kernel(xp, counter):
    counter.count += 1
    return np.int64(counter.count)


# -- a device


class MillDevice:
    """The host's memory under another name."""

    xp = np

    def __init__(self, name):
        self.name = name

    def from_host(self, array):
        return array.copy()

    def to_host(self, array):
        return np.asarray(array)

    def activate(self):
        return np.errstate(all="ignore")

    def synchronize(self):
        pass

    def describe(self):
        return {"made of": "numpy"}


@DEVICE_KERNELS.plain("MillCube")
def cube_on_the_device(xp, x):
    return x * x * x


@DEVICE_KERNELS.plain("Identity")
def identity_on_the_device(xp, input):
    return input


# -- a rewrite rule


@RULES.add("mill-cube-of-negated", "MillCube", reason="a cube is odd, exactly", after=["Neg"])
def cube_of_negated(node, replacement):
    negated = inner(node.inputs[0], "Neg")
    if negated is None:
        return None
    return replacement.add("Neg", replacement.add("MillCube", negated.inputs[0]))


# -- the hooks


@hookimpl
def headrace_register_devices(registry):
    registry.add("mill", count=lambda: 1, factory=MillDevice, priority=-5)


@hookimpl
def headrace_register_kernels(registry):
    registry.add("cpu", KERNELS)
    registry.add("cuda", [k for k in KERNELS if k.op in ("MillCube", "MillBlend", "MillRows")])
    registry.add("mill", DEVICE_KERNELS)


@hookimpl
def headrace_register_gradients(registry):
    registry.add(GRADIENTS)


@hookimpl
def headrace_register_passes(registry):
    registry.add_rules(RULES)


@hookimpl
def headrace_register_names(registry):
    registry.add("mill_cube", "headrace_mill:mill_cube")


# -- what the kit is told


def counting():
    counter = mill_counter(shared_name="c")
    return [mill_count(counter), [mill_count(counter), mill_count(counter)], mill_count(counter)]


ROWS = [
    Sample("MillCube", [uniform((3, 4), -2, 2)], oracle=lambda x: x**3),
    Sample(
        "MillCube",
        [array([0.0, -0.0, 1e-3, np.inf, -np.inf, np.nan])],
        oracle=lambda x: x**3,
        grad=False,
    ),
    Sample(
        "MillBlend",
        [uniform((3, 4), -2, 2), uniform((3, 4), -2, 2)],
        {"share": 0.125},
        oracle=lambda x, y, share: share * x * y + (1 - share) * y,
    ),
    Sample("MillTotal", [uniform((2, 3, 4), -2, 2)], oracle=lambda x: np.sum(x * x, -1)),
    Sample("MillRows", [uniform((3, 4)), array([2], "int32")], oracle=lambda x, n: x[: n[0]]),
    Reject(
        "MillRows",
        [array([[1.0]], "float32"), array([9], "int32")],
        match="count must be in",
        when="run",
    ),
    Sample(
        "MillNoise",
        [uniform((20, 30))],
        {"seeds": (1, 2)},
        holds=lambda found: 0.4 < found[0].astype(np.float64).mean() < 0.6,
    ),
    rule_case("mill-cube-of-negated", lambda x: mill_cube(-x), "Neg(MillCube(x))"),
    Scenario("counting", counting, [1, None, 4], ops=["MillCounter", "MillCount"]),
]
