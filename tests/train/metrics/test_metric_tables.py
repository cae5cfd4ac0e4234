"""Metrics have the values, variables and names of TensorFlow 1.15's over several batches."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

HERE = Path(__file__).parent
TABLES = json.loads((HERE / "tables.json").read_text(encoding="utf-8"))


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("metric_cases", HERE / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _load()


def test_every_case_has_a_row() -> None:
    assert set(cases.CASES) == set(TABLES["cases"])


def test_every_metric_has_a_case() -> None:
    named = {
        max((m for m in hr.metrics.__all__ if c.startswith(m)), key=len, default="")
        for c in cases.CASES
    }
    named |= {"sensitivity_at_specificity", "specificity_at_sensitivity"}
    assert named - {""} == set(hr.metrics.__all__)


def check(name: str, found: dict[str, Any]) -> None:
    expected = TABLES["cases"][name]
    for key in ("dtype", "shape"):
        assert found[key] == expected[key], (name, key)
    tolerance = {"rtol": 2e-6, "atol": 2e-7} if found["dtype"] == "float32" else {"rtol": 1e-6}
    for key in ("before", "after", "updates"):
        ours, theirs = np.float64(found[key]), np.float64(expected[key])
        np.testing.assert_allclose(ours, theirs, **tolerance, err_msg=f"{name}, {key}")


def check_group(names: list[str], shapes_known: bool = True) -> None:
    with hr.Graph().as_default():
        given = cases.inputs(hr, shapes_known)
        metrics = [cases.CASES[name](hr, given) for name in names]
        for name, found in zip(names, cases.computed(hr, metrics, given), strict=True):
            check(name, found)


# Metrics of one graph are computed in one step, which takes a fraction of the time.
GROUPS = [list(cases.CASES)[start::12] for start in range(12)]


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_metrics_are_tensorflows(group: int) -> None:
    check_group(GROUPS[group])


@pytest.mark.parametrize("group", range(1, len(GROUPS), 3))
def test_the_plain_executor_computes_the_same(group: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_EXECUTOR", "plain")
    check_group(GROUPS[group])


@pytest.mark.parametrize("group", range(0, len(GROUPS), 3))
def test_sizes_need_not_be_known(group: int) -> None:
    check_group([n for n in GROUPS[group] if not n.startswith("mean_tensor")], shapes_known=False)


# Weights change no names.
NAMED = [name for name in cases.CASES if not name.endswith(("weights", "scalar"))]


@pytest.mark.parametrize("name", NAMED)
def test_variables_are_tensorflows(name: str) -> None:
    with hr.Graph().as_default():
        cases.CASES[name](hr, cases.inputs(hr))
        found = cases.variables(hr)
    for key in ("variables", "metrics"):
        assert found[key] == TABLES["cases"][name][key], key
