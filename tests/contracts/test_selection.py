"""``--at-most N`` takes cases of every test, spread evenly; ``one_in(n)`` marks the others slow."""

from __future__ import annotations

from pathlib import Path

import pytest

CONFTEST = str(Path(__file__).parents[1] / "conftest.py")


class Case:
    """A test with marks."""

    def __init__(self, name: str, *marks: pytest.MarkDecorator) -> None:
        self.nodeid = name
        self._marks = [mark.mark for mark in marks]

    def get_closest_marker(self, name: str) -> pytest.Mark | None:
        return next((mark for mark in self._marks if mark.name == name), None)

    def add_marker(self, mark: pytest.MarkDecorator) -> None:
        self._marks.append(mark.mark)


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
    kept, dropped = conftest.at_most([Case(name) for name in names], limit)
    assert [item.nodeid for item in kept] == chosen
    assert [item.nodeid for item in dropped] == [name for name in names if name not in chosen]


@pytest.mark.parametrize(("limit", "chosen"), [(1, [0]), (2, [0, 2]), (3, [0, 2, 4])])
def test_slow_cases_are_not_chosen_where_others_are_there(
    request: pytest.FixtureRequest, limit: int, chosen: list[int]
) -> None:
    conftest = request.config.pluginmanager.get_plugin(CONFTEST)
    slow = [Case(f"s[{n}]", pytest.mark.slow) for n in range(3)]
    cases = [Case(f"t[{n}]", *[pytest.mark.slow] * (n % 2)) for n in range(6)]
    kept, _ = conftest.at_most([*slow, *cases], limit)
    assert [case for case in kept if case in cases] == [cases[n] for n in chosen]
    assert len([case for case in kept if case in slow]) == limit


def test_one_in_some_cases_is_quick(request: pytest.FixtureRequest) -> None:
    conftest = request.config.pluginmanager.get_plugin(CONFTEST)
    cases = [Case(f"t[{n}]", pytest.mark.one_in(3)) for n in range(7)]
    others = [Case("u[0]"), Case("u[1]")]
    conftest.mark_cases_slow([*cases, *others])
    quick = [case.nodeid for case in [*cases, *others] if not case.get_closest_marker("slow")]
    assert quick == ["t[0]", "t[3]", "t[6]", "u[0]", "u[1]"]
