"""What a profile says of its slowest kernel, and of the time between kernels."""

from __future__ import annotations

import dataclasses

import pytest

from headrace.runtime.devices.limits import MachineLimits
from headrace.runtime.profiling.profile_hints import hints
from headrace.runtime.profiling.profile_row import ProfileRow

ROW = ProfileRow(
    name="fused_0", computes="Add, Mul", calls=10, seconds=0.01, share=1.0, bytes=10**7,
    flops=10**6, line="model.py:3", limit_seconds=0.001, memory_bound=True, compiled=True,
)  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"waits": True}, "it waits"),
        ({"calls": 10_000}, "10000 calls of 1 us: each takes longer to make than to compute"),
        ({"limit_seconds": None}, "is not counted"),
        ({"limit_seconds": 0.009}, "at 90% of the machine's limit, moving 1 MB a call"),
        (
            {"limit_seconds": 0.009, "memory_bound": False},
            "at 90% of the machine's limit, computing 100 kflop a call",
        ),
        ({"compiled": False}, "at 10% of the machine's limit; it runs by itself"),
        ({"computes": "2 Exp, Mul"}, "Exp takes tens of operations for each element"),
        ({}, "too small for all threads, or reads its memory in leaps"),
    ],
)
def test_the_slowest_kernel_is_explained(changed, says):
    (hint,) = hints(10, 0.011, [dataclasses.replace(ROW, **changed)])
    assert hint.startswith("slowest: fused_0 (")
    assert " at model.py:3, 100% of the time of kernels" in hint
    assert says in hint


def test_time_between_kernels_is_told():
    between, _ = hints(10, 0.1, [ROW])
    assert between.startswith("90% of the time of a step (10 ms) passes between kernels")


def test_without_kernels_nothing_is_slowest():
    assert hints(0, 0.0, []) == ()


def test_the_longer_of_memory_and_arithmetic_bounds():
    limits = MachineLimits(bytes_per_second=1e9, flops_per_second=1e10)
    assert limits.seconds(1e6, 1e6) == pytest.approx(1e-3)
    assert limits.seconds(1e6, 1e8) == pytest.approx(1e-2)
