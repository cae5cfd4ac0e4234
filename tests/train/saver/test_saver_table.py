"""Programs that save and restore do what they do in TensorFlow 1.15: results, files and errors."""

from __future__ import annotations

import builtins
import json
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from tests.train.saver.saver_programs import PROGRAMS

pytestmark = pytest.mark.needs("backend-cpu")

HERE = Path(__file__).parent
TABLE = json.loads((HERE / "saver_table.json").read_text())["programs"]


class Failed:
    """An error, equal to every family to which it belongs."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def fits(self, family: str) -> bool:
        kind = getattr(hr.errors, family, None) or getattr(builtins, family)
        return isinstance(self.error, kind)


def attempt(function: Any) -> Any:
    try:
        return function()
    except hr.errors.HeadraceError as error:
        return Failed(error)


def check(found: Any, expected: Any, folder: str, where: str) -> None:
    if isinstance(expected, dict) and set(expected) == {"error"}:
        assert isinstance(found, Failed), f"{where}: got {found!r}, expected {expected}"
        assert found.fits(expected["error"]), f"{where}: {found.error!r}, expected {expected}"
    elif isinstance(found, Failed):
        raise AssertionError(f"{where}: {expected!r} was expected") from found.error
    elif isinstance(expected, dict):
        assert set(found) == set(expected), where
        for key in expected:
            check(found[key], expected[key], folder, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), f"{where}: {found} != {expected}"
        for number, (one, other) in enumerate(zip(found, expected, strict=True)):
            check(one, other, folder, f"{where}[{number}]")
    elif isinstance(expected, str):
        assert found.replace(folder, "D") == expected, where
    else:
        assert found == expected, where


def test_every_program_is_in_the_table() -> None:
    assert set(PROGRAMS) == set(TABLE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(name: str, tmp_path: Path) -> None:
    with hr.Graph().as_default():
        found = PROGRAMS[name](hr, str(tmp_path), attempt)
    check(found, TABLE[name], str(tmp_path), name)
