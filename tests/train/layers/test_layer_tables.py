"""Layers compute, name and collect what TensorFlow 1.15's do."""

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
    spec = importlib.util.spec_from_file_location("layer_cases", HERE / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _load()


@pytest.fixture(params=["plan", "plain"], autouse=True)
def executor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_EXECUTOR", request.param)


def test_every_case_has_a_row() -> None:
    assert set(cases.CASES) == set(TABLES["cases"])


@pytest.mark.parametrize("name", list(cases.CASES))
def test_a_layer_is_tensorflows(name: str) -> None:
    expected = TABLES["cases"][name]
    with hr.Graph().as_default():
        found = cases.record(hr, cases.CASES[name])
    for key in ("shape", "variables", "trainable", "updates"):
        assert found[key] == expected[key], key
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=2e-5, atol=2e-6)
    np.testing.assert_allclose(found["output"], expected["output"], rtol=2e-5, atol=5e-6)
    assert len(found["after"]) == len(expected["after"])
    for ours, theirs in zip(found["after"], expected["after"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6)


def test_a_net_trains_as_tensorflows() -> None:
    expected = TABLES["net"]
    with hr.Graph().as_default():
        found = cases.record_net(hr, hr.train)
    assert found["variables"] == expected["variables"]
    np.testing.assert_allclose(found["losses"], expected["losses"], rtol=1e-5)
    for ours, theirs in zip(found["after"], expected["after"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5)


def test_names_are_tensorflows() -> None:
    expected = TABLES["names"]
    with hr.Graph().as_default():
        found = cases.names(hr)
        assert [v.name for v in hr.global_variables()] == expected["variables"]
        updates = [op.name for op in hr.get_collection(hr.GraphKeys.UPDATE_OPS)]
    assert found == expected["outputs"]
    assert updates == expected["updates"]
