"""Steps of very many operations: kernels of bounded size, and work that grows with the step.

What is planned and split is counted, not timed: kernels of bounded size are compiled in time that
grows with their number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import headrace as hr
from headrace_cpu.fusion.fusion_group import _MOST_NODES

Build = Callable[[Any, int], Any]


def chain(x: Any, n: int) -> Any:
    for _ in range(n // 2):
        x = hr.sin(x) * 1.01
    return x


def sum_of_all(x: Any, n: int) -> Any:
    return hr.add_n([x * float(i) for i in range(n)])


def sum_in_pairs(x: Any, n: int) -> Any:
    parts = [x * float(i) for i in range(n // 2)]
    while len(parts) > 1:
        odd = parts[len(parts) // 2 * 2 :]
        parts = [a + b for a, b in zip(parts[::2], parts[1::2], strict=False)] + odd
    return parts[0]


def gradients(x: Any, n: int) -> Any:
    return hr.gradients(chain(x, n // 3), x)


def gradients_of_a_sum(x: Any, n: int) -> Any:
    return hr.gradients(hr.add_n([hr.tanh(x * float(i)) for i in range(n // 5)]), x)


def many_results(x: Any, n: int) -> Any:
    return [hr.sin(x) * float(i) for i in range(n // 2)]


def concatenated(x: Any, n: int) -> Any:
    return hr.concat([x * float(i) for i in range(n)], 0)


def stacked(x: Any, n: int) -> Any:
    return hr.reduce_sum(hr.stack([hr.cos(x + float(i)) for i in range(n // 2)]), 0)


def ladder(x: Any, n: int) -> Any:
    a = b = x
    for _ in range(n // 3):
        a, b = b + a * 0.5, hr.tanh(a)
    return a + b


def sums_within(x: Any, n: int) -> Any:
    for _ in range(n // 3):
        x = x * 0.5 + hr.reduce_sum(x)
    return x


def far_uses(x: Any, n: int) -> Any:
    values = [x]
    for _ in range(n // 2):
        values.append(hr.sin(values[-1] + values[len(values) // 2]))
    return values[-1]


def matrices(x: Any, n: int) -> Any:
    x = hr.reshape(x, [2, 4])
    for _ in range(n // 2):
        x = hr.tanh(hr.matmul(x, hr.ones([4, 4])))
    return x


BUILDS: tuple[Build, ...] = (
    chain,
    sum_of_all,
    sum_in_pairs,
    gradients,
    gradients_of_a_sum,
    many_results,
    concatenated,
    stacked,
    ladder,
    sums_within,
    far_uses,
    matrices,
)


def planned(build: Build, n: int) -> tuple[int, list[Any]]:
    """Return how many calls of Python it took to plan a step of n operations, and its kernels."""
    calls = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal calls
        calls += event == "call"

    with hr.Graph().as_default():
        fetched = build(hr.placeholder(hr.float32, [8]), n)
        with hr.Session(config=hr.Config(compile_after=0)) as session:
            before = sys.getprofile()
            sys.setprofile(count)
            try:
                explained = session.explain(fetched)
            finally:
                sys.setprofile(before)
    return calls, [work for part in explained.parts for work in part.works]


@pytest.mark.needs("autodiff")
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.__name__)
def test_kernels_are_bounded_and_work_grows_with_the_step(build: Build) -> None:
    planned(build, 30)  # what is imported and remembered once
    few, _ = planned(build, 150)
    many, works = planned(build, 600)
    assert sum(len(work.ops) for work in works) >= 150
    assert max(len(work.ops) for work in works) <= 2 * _MOST_NODES
    # Four times as many operations; sixteen times the work would be quadratic.
    assert many < 7 * few
