"""What pages and hooks say of the checks is what the checks are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NOXFILE = (ROOT / "noxfile.py").read_text(encoding="utf-8")
SESSIONS = set(re.findall(r"(?m)^def (\w+)\(session: nox\.Session(?:, \w+: \w+)*\)", NOXFILE))
SESSIONS -= {"build_docs"}
PAGES = ["README.md", "CONTRIBUTING.md", "tests/README.md", "changelog.d/README.md"]
PAGES += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))]
PAGES += [".github/pull_request_template.md", ".pre-commit-config.yaml"]


def test_the_sessions_are_found() -> None:
    assert {"tests", "pythons", "release", "coverage"} <= SESSIONS


@pytest.mark.parametrize("page", PAGES)
def test_a_page_names_sessions_that_exist(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    calls = re.findall(r"nox(?: -R)? -s ((?:\w+[ `]?)+)", text)
    named = {word for call in calls for word in call.partition("`")[0].split()}
    assert named <= SESSIONS


def test_how_to_contribute_lists_every_session() -> None:
    text = (ROOT / "docs/how-to/contribute.md").read_text(encoding="utf-8")
    table = text.partition("## Sessions")[2].partition("\n## ")[0]
    first_cells = re.findall(r"(?m)^\| (`.*?) \|", table)
    assert {word for cell in first_cells for word in re.findall(r"`(\w+)`", cell)} == SESSIONS


def test_ci_runs_sessions_that_exist() -> None:
    script = (ROOT / ".ci/run").read_text(encoding="utf-8")
    calls = re.findall(r"(?m)^run -s ((?:(?! --|#).)*)", script)
    named = [word for call in calls for word in call.split()]
    assert set(named) <= SESSIONS
    assert len(named) == len(set(named))


def test_the_hooks_use_the_linter_of_ci() -> None:
    pinned = re.search(r'LINTER = "(.*?)"', NOXFILE)
    assert pinned is not None
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r'"(ruff.*?)"', hooks)) == {pinned[1]}


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_links_of_the_front_pages_lead_to_files(page: str) -> None:
    targets = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []
