"""The schedule: results are those of the graph's order, and few values are kept at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.onednn.library import load

SIDE, FAN = 512, 20
VALUE = SIDE * SIDE * 4
# Where oneDNN does not add to what is there, there is a product beside the sums.
ADDED = 3.1 if load() is not None else 5.1


def products(depth: int) -> list[Any]:
    """Return so many products, each of two variables and a value of the step's own."""
    rng = np.random.default_rng(1)
    rows = [hr.Variable(rng.normal(size=(SIDE, depth)).astype(np.float32)) for _ in range(FAN)]
    columns = [hr.Variable(rng.normal(size=(depth, SIDE)).astype(np.float32)) for _ in range(FAN)]
    return [hr.matmul(a, b) for a, b in zip(rows, columns, strict=True)]


def summed(values: list[Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def branches(values: list[Any]) -> Any:
    """Return a sum of products of pairs, each of which two values wait for."""
    pairs = zip(values[::2], values[1::2], strict=True)
    return hr.add_n([hr.sigmoid(a) * b for a, b in pairs])


# What adds them up, and how many values it may keep at once: those that one kernel reads, and sums.
@pytest.mark.parametrize("depth", [8, 512])
@pytest.mark.parametrize(
    ("add", "most"),
    [
        (hr.add_n, ADDED),
        (summed, ADDED),
        (lambda values: hr.add_n([hr.tanh(v) for v in values]), 9.1),
        (branches, 10.1),
    ],
    ids=["add_n", "chain", "functions", "branches"],
)
def test_a_fan_in_of_products_keeps_few_of_them(
    depth: int, add: Callable[[list[Any]], Any], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As for values of many megabytes, which would take long.
    monkeypatch.setattr("headrace_cpu.fusion.fusion_group._MUCH_HELD", 2 * VALUE)
    result = add(products(depth))
    found = hr.reduce_sum(result, 0)
    with hr.Session(config=hr.Config(compile_after=0)) as session:
        session.run(hr.global_variables_initializer())
        got = session.run(found)
        (part,) = session.explain(found).parts
        assert part.report.peak_bytes <= most * VALUE
    with hr.Session(config=hr.Config(executor="plain")) as session:
        session.run(hr.global_variables_initializer())
        np.testing.assert_allclose(got, session.run(found), rtol=1e-4, atol=2e-3 * depth)


def test_small_sums_and_a_few_large_values_are_one_kernel() -> None:
    small = [hr.matmul(hr.placeholder(hr.float32, [4, 4]), hr.ones([4, 4])) for _ in range(8)]
    large = [hr.matmul(hr.placeholder(hr.float32, [900, 8]), hr.ones([8, 900])) for _ in range(3)]
    for values in (small, large):
        fetched = hr.reduce_max(hr.tanh(values[0]) * hr.sigmoid(values[1]) + hr.add_n(values))
        fed = {v.op.inputs[0]: np.ones(v.op.inputs[0].shape.known, np.float32) for v in values}
        with hr.Session(config=hr.Config(compile_after=0)) as session:
            session.run(fetched, fed)
            text = str(session.explain(fetched, fed))
            assert "fused_0" in text
            assert "fused_1" not in text
