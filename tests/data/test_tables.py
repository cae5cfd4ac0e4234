"""Pipelines yield the elements that they yield in TensorFlow 1.15."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "tables.json").read_text())["cases"]
pytestmark = pytest.mark.needs("backend-cpu")


def _cases() -> Any:
    spec = importlib.util.spec_from_file_location("data_cases", HERE / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _cases()


def test_the_table_has_every_case() -> None:
    assert set(TABLE) == set(cases.CASES)


@pytest.mark.parametrize("name", cases.CASES)
def test_elements_dtypes_and_shapes_are_those_of_tensorflow(name: str) -> None:
    with hr.Graph().as_default():
        found = cases.record(hr, cases.CASES[name])
    assert json.loads(json.dumps(found)) == TABLE[name]
