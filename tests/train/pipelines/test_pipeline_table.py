"""Pipelines compute what TensorFlow 1.15 does, and refuse what it refuses (``table.json``)."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu", "train")

FOLDER = Path(__file__).parent
TABLE = json.loads((FOLDER / "table.json").read_text())
BUILTINS = {"ValueError": ValueError, "TypeError": TypeError}


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the modules of programs importable, as the generator of the table does."""
    monkeypatch.syspath_prepend(str(FOLDER))


def run(build: Any) -> Any:
    """Return what a program computes, in the form of the table."""
    with hr.Graph().as_default():
        return json.loads(json.dumps(build(hr)))


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("name", TABLE["values"])
def test_values(name: str, executor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_EXECUTOR", executor)
    assert run(importlib.import_module("pipeline_programs").PROGRAMS[name]) == TABLE["values"][name]


@pytest.mark.parametrize("name", TABLE["errors"])
def test_refusals(name: str) -> None:
    family = TABLE["errors"][name]
    expected = BUILTINS.get(family) or getattr(hr.errors, family)
    with pytest.raises(expected, match=r"\w"):
        run(importlib.import_module("pipeline_refusals").REFUSALS[name])


def test_the_table_has_all_programs() -> None:
    assert set(importlib.import_module("pipeline_programs").PROGRAMS) == set(TABLE["values"])
    assert set(importlib.import_module("pipeline_refusals").REFUSALS) == set(TABLE["errors"])
