"""The kit itself: each kind of mistake is caught, by the check meant for it, and explained."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from headrace.errors import DTypeError, ShapeError
from headrace.extend import (
    Floating,
    GradientTable,
    KernelTable,
    Numeric,
    Spec,
    TensorSpec,
    hookimpl,
    op,
)
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.testing import (
    ConformanceError,
    Reject,
    Sample,
    SkipCheck,
    array,
    cases,
    uniform,
)

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

KERNELS = KernelTable()
GRADIENTS = GradientTable()


def declare(name, kernel, *, infer=lambda x: x, gradient=None, kind=Floating, **options):
    """Declare an op that should double its input."""

    def rule(x: kind) -> Spec:
        """Twice ``x``."""
        return infer(x)

    rule.__annotations__ = {"x": kind, "return": Spec}
    op(name, elementwise=True, public="", **options)(rule)
    # Called as our own kernels are, without the guard of the border, which would see some mistakes
    # first and make others harmless.
    kernel.__module__ = "headrace_cpu.mistaken"
    KERNELS.plain(name)(kernel)
    if gradient is not None:
        GRADIENTS.add(name)(gradient)


def right(xp, x):
    return x + x


def mutating(xp, x):
    if x.flags.writeable:
        x += x
        return x.copy()
    return x + x


def needs_writable(xp, x):
    x += 0
    return x + x


def reads_memory(xp, x):
    """Take the elements in the order of memory, as a kernel in C might."""
    base = x if x.base is None else x.base
    first = np.asarray(base).reshape(-1)[: x.size].reshape(x.shape)
    return first + first


def narrow(xp, x):
    return (x + x).astype(np.float32)


def wrong_for_integers(xp, x):
    return x if x.dtype.kind in "iu" else x + x


def wrong_for_scalars(xp, x):
    return x if x.ndim == 0 else x + x


def fails_for_empty(xp, x):
    if not x.size:
        raise ValueError("no elements")
    return x + x


def fails_for_extremes(xp, x):
    if not np.isfinite(x).all():
        raise ValueError("not finite")
    return x + x


def twice(node, gy):
    return [2.0 * gy]


declare("KitRight", right, gradient=twice)
declare("KitWrong", lambda xp, x: x * x, gradient=twice)
declare("KitSlightlyWrong", lambda xp, x: x * 2.0001, gradient=twice)
declare("KitMutating", mutating, gradient=twice)
declare("KitWritable", needs_writable, gradient=twice)
declare("KitMemory", reads_memory, gradient=twice)
declare("KitNarrow", narrow, gradient=twice)
declare("KitIntegers", wrong_for_integers, kind=Numeric, gradient=twice)
declare("KitScalars", wrong_for_scalars, gradient=twice)
declare("KitEmpty", fails_for_empty, gradient=twice)
declare("KitTotal", fails_for_extremes, gradient=twice, total=True)
declare("KitShape", right, infer=lambda x: x.with_shape([7]), gradient=twice)
declare("KitUnknown", right, infer=lambda x: TensorSpec(x.dtype), gradient=twice)
declare("KitValue", right, infer=lambda x: TensorSpec(x.dtype, x.shape, x.value), gradient=twice)
declare("KitNeedsRank", right, infer=lambda x: x.with_shape(list(x.shape)), gradient=twice)
declare("KitNoRule", right)
declare("KitWrongRule", right, gradient=lambda node, gy: [3.0 * gy])
declare("KitRuleOfOtherSign", lambda xp, x: x * x, gradient=lambda node, gy: [-gy * node.inputs[0]])
declare(
    "KitConstantRule",
    lambda xp, x: x * x,
    # Right where it stands, but a constant to whoever differentiates it again.
    gradient=lambda node, gy: [2.0 * gy * stopped(node.inputs[0])],
)
declare("KitNotDifferentiable", right, no_gradient="it is a test")


def stopped(tensor):
    from headrace.ops.array import stop_gradient

    return stop_gradient(tensor)


class Plugin:
    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cpu", KERNELS)

    @hookimpl
    def headrace_register_gradients(self, registry):
        registry.add(GRADIENTS)


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    """Give the ops of this module kernels and rules, in a host of their own."""
    entry = SimpleNamespace(name="kit", value="kit", dist=None, load=Plugin)
    plugins = PluginHost([*PluginHost()._collection.found(), entry])
    monkeypatch.setattr(host_module, "_HOST", plugins)


def failures(row):
    """Return the messages of the checks that a row fails, by check."""
    found = {}
    for case in cases([row]):
        try:
            case.run()
        except ConformanceError as error:
            found[case.name.rpartition("-")[2]] = str(error)
    return found


def doubled(op_type, **options):
    return Sample(op_type, [uniform((3, 4), -2, 2)], oracle=lambda x: 2 * x, **options)


def test_right_op_passes():
    assert failures(doubled("KitRight")) == {}


# For each mistake, the checks that must see it and what they must say.
MISTAKES = {
    "KitWrong": ("forward", r"float16: output 0: 12 of 12 elements are off; the worst is at \["),
    "KitSlightlyWrong": ("forward", r"KitSlightlyWrong on cpu, float32: .*tolerance 5e-06"),
    "KitMutating": ("inputs_kept", "the kernel changed its input 0"),
    "KitWritable": ("inputs_kept", "read-only"),
    "KitMemory": ("layouts", "strided float32: output 0"),
    "KitNarrow": ("forward", r"output 0 is declared float16\[3, 4\], got float32"),
    "KitIntegers": ("forward", "KitIntegers on cpu, int8: output 0: .* elements are wrong"),
    "KitScalars": ("scalar", "0-d float16: output 0"),
    "KitEmpty": ("empty", "no elements"),
    "KitTotal": ("total", r"extremes float32: the op is total, and fails(.|\n)*not finite"),
    "KitShape": ("forward", r"output 0 is declared float16\[7\], got shape \[3, 4\]"),
    "KitUnknown": ("inferred_shape", "though all inputs are constants"),
    "KitValue": ("routes", "folded float32: output 0"),
    "KitNeedsRank": ("unknown_shapes", "unknown rank: the op fails"),
    "KitNoRule": ("gradient", "no gradient rule.*\n.*\n.*\n.*\n.*\n.*\n.*grad=False"),
}


@pytest.mark.parametrize("op_type", MISTAKES)
def test_mistake_is_caught(op_type):
    check, match = MISTAKES[op_type]
    found = failures(doubled(op_type))
    assert check in found
    with pytest.raises(ConformanceError, match=match):
        raise ConformanceError(found[check])
    assert "row: test_kit_catches.py:" in found[check]


def test_wrong_gradient_shows_direction_and_both_gradients():
    found = failures(doubled("KitWrongRule"))
    assert set(found) == {"gradient"}
    text = found["gradient"]
    for part in (
        "reverse derivative along u is wrong: expected",
        "for Placeholder float64[3, 4] alone: expected",
        "u[0] = [[",
        "w[0] = [[",
        "J'w[0] = [[",
        "input 0: float64[3, 4]",
    ):
        assert part in text, text


def test_gradient_of_the_wrong_sign():
    row = Sample("KitRuleOfOtherSign", [uniform((3,))], oracle=lambda x: x * x)
    assert "gradient" in failures(row)


def test_second_order_is_checked():
    row = Sample("KitConstantRule", [uniform((3,))], oracle=lambda x: x * x)
    assert set(failures(row)) == {"second_order"}
    row = Sample("KitConstantRule", [uniform((3,))], oracle=lambda x: x * x, second_order=False)
    assert failures(row) == {}


def test_no_gradient_checks_where_none_is_declared():
    names = {case.name for case in cases([doubled("KitNotDifferentiable")])}
    assert "KitNotDifferentiable-gradient" not in names


def test_outputs_of_the_wrong_number():
    row = Sample("KitRight", [uniform((2,))], oracle=lambda x: (2 * x, x))
    assert "the oracle gives 2 outputs, the op 1" in failures(row)["forward"]


def test_property_in_place_of_oracle():
    row = Sample("KitRight", [uniform((2,))], holds=lambda results: False)
    assert "the outputs are not right" in failures(row)["forward"]


REJECTS = {
    "it is built": (Reject("KitRight", [array([1.0], "float32")], match="x"), "the op was built"),
    "wrong error": (
        Reject("KitRight", [array([1], "int32")], error=ShapeError, match="floating"),
        "expected ShapeError, got DTypeError",
    ),
    "wrong message": (
        Reject("KitRight", [array([1], "int32")], error=DTypeError, match="complex"),
        "expected a message with 'complex'",
    ),
    "it runs": (
        Reject("KitRight", [array([1.0], "float32")], match="x", when="run"),
        "the step succeeded",
    ),
    "refused too early": (
        Reject("KitRight", [array([1], "int32")], error=DTypeError, match="float", when="run"),
        "expected to be refused when it is run",
    ),
}


@pytest.mark.parametrize("kind", REJECTS)
def test_reject_rows_can_fail(kind):
    row, message = REJECTS[kind]
    assert message in failures(row)["refused"]


def test_op_without_kernel():
    @op("KitNoKernel", public="")
    def rule(x: Floating) -> Spec:
        """Nothing computes it."""
        return x

    row = doubled("KitNoKernel", grad=False)
    assert "cpu has no kernel of KitNoKernel" in failures(row)["forward"]
    with pytest.raises(SkipCheck, match="cuda has no kernel of KitNoKernel"):
        cases([row], device="cuda")[0].run()


def test_rows_are_checked_when_they_are_made():
    with pytest.raises(ValueError, match=r"needs one of oracle= and holds="):
        Sample("KitRight", [uniform((2,))])
    with pytest.raises(ValueError, match="needs match="):
        Reject("KitRight", [uniform((2,))])


def test_cases_have_unique_names():
    rows = [doubled("KitRight"), doubled("KitRight")]
    names = [case.name for case in cases(rows)]
    assert len(set(names)) == len(names)
    assert "KitRight-2-forward" in names
