"""Hooks run in the order in which TensorFlow runs them, also where something raises."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "hook_order.json").read_text())["cases"]


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("hook_cases", HERE / "hook_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


hook_cases = _load()


@pytest.mark.parametrize("name", hook_cases.CASES)
def test_hooks_run_in_the_recorded_order(name: str) -> None:
    found, expected = hook_cases.record(hr, name), TABLE[name]
    # Errors of Headrace are of several kinds: TensorFlow's, and the builtin one that it resembles.
    same = [
        b if a.rpartition(" ")[0] == b.rpartition(" ")[0] and _kinds(b) <= _kinds(a) else a
        for a, b in zip(found, expected, strict=False)
    ]
    assert [*same, *found[len(same) :]] == expected


def _kinds(event: str) -> set[str]:
    return set(event.rpartition(" ")[2].split("|"))
