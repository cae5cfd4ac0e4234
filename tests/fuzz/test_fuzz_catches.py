"""The fuzzer itself: it catches each kind of mistake that an op can make."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from headrace.extend import Floating, KernelTable, Spec, TensorSpec, hookimpl, op
from headrace.graph.schema import OPS
from headrace.plugins import host as host_module
from headrace.plugins.host import PluginHost
from headrace.shapes import Shape
from headrace.testing import Sample, uniform
from headrace.testing.fuzz import function_target, fuzz, op_target, summary
from headrace_testing.fuzz import execute
from headrace_testing.fuzz.arguments import Given
from headrace_testing.fuzz.generate import Call

pytestmark = pytest.mark.needs("backend-cpu")

KERNELS = KernelTable()


def declare(name, kernel, infer=lambda x: x):
    """Declare an op that should double its input."""

    def rule(x: Floating) -> Spec:
        """Twice ``x``."""
        return infer(x)

    rule.__annotations__ = {"x": Floating, "return": Spec}
    op(name, public="")(rule)
    # Called as our own kernels are, without the guard of the border, which would see some mistakes
    # first and make others harmless.
    kernel.__module__ = "headrace_cpu.mistaken"
    KERNELS.plain(name)(kernel)


def changing(xp, x):
    if x.flags.writeable:
        x += x
        return x.copy()
    return x + x


def differing(xp, x):
    return x + x.flags.writeable


def unclear(xp, x):
    return x.reshape((7, 11))


def clear(xp, x):
    raise ValueError("x is not liked")


def unchecked(xp, x):
    return x.nothing


def allocating(xp, x):
    return xp.zeros((1 << 34,))[: x.size].reshape(x.shape)


def crashing(xp, x):
    os.abort()


def hanging(xp, x):
    time.sleep(60)


declare("FuzzRight", lambda xp, x: x + x)
declare("FuzzClear", clear)
declare("FuzzUnclear", unclear)
declare("FuzzUnchecked", unchecked)
declare("FuzzAllocating", allocating)
declare("FuzzChanging", changing)
declare("FuzzDiffering", differing)
declare("FuzzWrongDtype", lambda xp, x: x.astype(np.complex64))
declare("FuzzWrongShape", lambda xp, x: x + x, lambda x: TensorSpec(x.dtype, Shape([3, 3, 3, 3])))
declare("FuzzCrashing", crashing)
declare("FuzzHanging", hanging)


class Plugin:
    @hookimpl
    def headrace_register_kernels(self, registry):
        registry.add("cpu", KERNELS)


@pytest.fixture(autouse=True)
def _host(monkeypatch):
    """Give the ops of this module kernels, in a host of their own."""
    entry = SimpleNamespace(name="fuzz", value="fuzz", dist=None, load=Plugin)
    plugins = PluginHost([*PluginHost()._collection.found(), entry])
    monkeypatch.setattr(host_module, "_HOST", plugins)


def run(name, calls=40, **options):
    sample = Sample(name, [uniform((2, 3))], oracle=lambda x: x + x)
    target = op_target(OPS[name], [sample])
    return fuzz({name: target}, calls, workers=1, **options)


def test_right_op_passes():
    report = run("FuzzRight")
    assert not report.forbidden, summary(report, {})
    assert report.outcomes["right"] > 10


def test_error_of_the_kernel_passes():
    assert not run("FuzzClear").forbidden


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("FuzzUnclear", "unclear message", "cannot reshape"),
        ("FuzzUnchecked", "unchecked", "AttributeError"),
        ("FuzzAllocating", "huge allocation", "Unable to allocate"),
        ("FuzzChanging", "inputs changed", "to float"),
        ("FuzzDiffering", "results differ", "one way"),
        ("FuzzWrongDtype", "wrong spec", "complex64"),
        ("FuzzWrongShape", "wrong spec", "[3, 3, 3, 3]"),
    ],
)
def test_mistake_is_caught(name, kind, text):
    report = run(name)
    assert report.outcomes[kind] > 0, summary(report, {})
    assert any(f.kind == kind and text in f.text for f in report.failures)
    assert "--seed 1 --at" in report.failures[0].call


def test_crash_is_counted_and_the_rest_goes_on():
    report = run("FuzzCrashing", calls=6)
    assert report.outcomes["crash"] > 0
    assert report.outcomes.total() == 6
    assert "Abort" in next(f.text for f in report.failures if f.kind == "crash")


@pytest.mark.slow
def test_hang_is_counted_and_the_rest_goes_on():
    report = run("FuzzHanging", calls=3, time_limit=1.0)
    assert report.outcomes["hang"] > 0
    assert report.outcomes.total() == 3


def test_exception_while_building_is_caught():
    target = function_target("broken", lambda x, axis: {}[axis])
    report = fuzz({"broken": target}, 5, workers=1)
    assert report.outcomes["other exception"] == 5


def test_same_seed_makes_the_same_calls():
    first, second = (run("FuzzUnchecked", calls=10) for _ in range(2))
    assert [f.call for f in first.failures] == [f.call for f in second.failures]
    assert first.outcomes == second.outcomes


# -- NaN and infinities of convolutions


def verdict(inputs, one, two, *, convolves=True):
    """Return what the fuzzer says of a call whose two ways yield these."""
    target = function_target("mistaken", lambda x: x)
    call = Call(target, 1, 1, {"x": Given(np.array(inputs, np.float32))})
    runs = [execute._Run([np.array(r, np.float32)], convolves=convolves) for r in (one, two)]
    return execute._compared(call, *runs).kind


def test_nans_of_convolutions_spread_as_the_algorithm_has_it():
    for bad in (np.nan, np.inf, -np.inf):
        assert verdict([1, bad], [1, np.nan], [1, 2]) == "right"
        assert verdict([1, bad], [np.nan, np.inf], [-np.inf, np.nan]) == "right"


def test_all_else_of_convolutions_is_compared():
    nan, inf = np.nan, np.inf
    # Finite inputs; other values beside a NaN; an infinity that is lost; other operations.
    assert verdict([1, 2], [1, nan], [1, 2]) == "results differ"
    assert verdict([1, nan], [nan, 3], [2, 4]) == "results differ"
    assert verdict([1, inf], [1, inf], [1, 2]) == "results differ"
    assert verdict([1, inf], [1, inf], [1, -inf]) == "results differ"
    assert verdict([1, nan], [1, nan], [1, 2], convolves=False) == "results differ"


@pytest.mark.parametrize(
    ("name", "apart", "expected"),
    [
        ("hr.losses.log_loss", 1e-7, "right"),
        ("hr.metrics.mean", 1e-7, "right"),
        ("hr.losses.log_loss", 1e-2, "results differ"),
        ("hr.reduce_mean", 1e-7, "results differ"),
        ("hr.reduce_mean", 1e-14, "right"),
    ],
)
def test_what_computes_in_float32_rounds_as_float32(name, apart, expected):
    target = replace(function_target("mistaken", lambda x: x), name=name)
    call = Call(target, 1, 1, {"x": Given(np.array([1.0]))})
    runs = [execute._Run([np.array([x])]) for x in (1.0, 1.0 + apart)]
    assert execute._compared(call, *runs).kind == expected
