"""Medians, ratios and the agreement of losses."""

from __future__ import annotations

import math

import pytest

from benchmarks.quiet import busy_share, others_share
from benchmarks.statistics import Summary, disagreeing, ratio, summarise


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([3.0], Summary(3.0, 3.0, 3.0)),
        ([3.0, 1.0, 9.0], Summary(3.0, 1.0, 9.0)),
        ([4.0, 1.0, 2.0, 9.0], Summary(3.0, 1.0, 9.0)),
    ],
)
def test_summarise(seconds: list[float], expected: Summary) -> None:
    assert summarise(seconds) == expected


def test_summarise_refuses_no_rounds() -> None:
    with pytest.raises(ValueError, match="expected at least one time, got none"):
        summarise([])


@pytest.mark.parametrize(
    ("value", "reference", "expected"), [(1.0, 4.0, 0.25), (1.0, None, None), (1.0, 0.0, None)]
)
def test_ratio(value: float, reference: float | None, expected: float | None) -> None:
    assert ratio(value, reference) == expected


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ({}, []),
        ({"a": 1.0}, []),
        ({"a": 1.0, "b": 1.00005, "c": 0.99995}, []),
        ({"a": 1.0, "b": 1.01, "c": 1.0}, ["b"]),
        ({"a": -2.0, "b": -2.1, "c": -2.0}, ["b"]),
        ({"a": math.nan, "b": 1.0, "c": math.inf}, ["a", "c"]),
        ({"a": math.nan, "b": math.nan}, ["a", "b"]),
        ({"a": 1.0, "b": 2.0}, ["b"]),
    ],
)
def test_disagreeing(losses: dict[str, float], expected: list[str]) -> None:
    assert disagreeing(losses, 1e-4) == expected


def test_busy_share_counts_all_but_idle_and_waiting() -> None:
    before = "cpu  100 0 50 1000 20 0 0 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n"
    after = "cpu  120 0 55 1060 30 3 1 1 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n"
    assert busy_share(before, after) == pytest.approx(0.3)
    assert busy_share(before, before) is None


@pytest.mark.parametrize(
    ("pauses", "expected"), [([], None), ([None], None), ([0.1, None, 0.3, 0.9], 0.3)]
)
def test_others_share(pauses: list[float | None], expected: float | None) -> None:
    assert others_share(pauses) == expected
