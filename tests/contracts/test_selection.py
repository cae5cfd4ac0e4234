"""``--at-most N`` takes cases of every test, spread evenly, and drops no test."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

CONFTEST = str(Path(__file__).parents[1] / "conftest.py")


@pytest.mark.parametrize(
    ("limit", "chosen"),
    [
        (None, ["alone", "t[0]", "t[1]", "t[2]", "t[3]", "t[4]", "T::t[0]"]),
        (1, ["alone", "t[0]", "T::t[0]"]),
        (2, ["alone", "t[0]", "t[2]", "T::t[0]"]),
        (5, ["alone", "t[0]", "t[1]", "t[2]", "t[3]", "t[4]", "T::t[0]"]),
        (9, ["alone", "t[0]", "t[1]", "t[2]", "t[3]", "t[4]", "T::t[0]"]),
    ],
)
def test_cases_are_spread(
    request: pytest.FixtureRequest, limit: int | None, chosen: list[str]
) -> None:
    conftest = request.config.pluginmanager.get_plugin(CONFTEST)
    names = ["alone", *(f"t[{case}]" for case in range(5)), "T::t[0]"]
    kept, dropped = conftest.at_most([SimpleNamespace(nodeid=name) for name in names], limit)
    assert [item.nodeid for item in kept] == chosen
    assert [item.nodeid for item in dropped] == [name for name in names if name not in chosen]
