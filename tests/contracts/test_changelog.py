"""Entries of the changelog have names and texts that a release can gather."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAGMENTS = sorted(path for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md")
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]
TYPES = [kind["directory"] for kind in SETTINGS["type"]]
NAME = re.compile(rf"(\d+|\+[a-z0-9-]+)\.({'|'.join(TYPES)})(\.\d+)?\.md")


def fault_of(path: Path) -> str | None:
    """What is wrong with an entry, None if nothing is."""
    if not NAME.fullmatch(path.name):
        return f"call it <issue>.<type>.md or +<words>.<type>.md, with a type of {', '.join(TYPES)}"
    text = path.read_text(encoding="utf-8").strip()
    if not text.endswith("."):
        return "write one to three sentences, which end with a full stop"
    if text.startswith(("#", "*", "-")):
        return "write sentences; the release makes headings and list items"
    return "write at most 600 characters" if len(text) > 600 else None


@pytest.mark.parametrize("path", FRAGMENTS, ids=lambda path: path.name)
def test_an_entry_is_well_formed(path: Path) -> None:
    fault = fault_of(path)
    assert fault is None, f"changelog.d/{path.name}: {fault} (see changelog.d/README.md)"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("9.feature.md", "More is possible.", None),
        ("9.feature.1.md", "More is possible.", None),
        ("+a-fix.fix.md", "It works.", None),
        ("9.news.md", "More is possible.", "with a type of feature"),
        ("nine.feature.md", "More is possible.", "call it <issue>"),
        ("9.feature.md", "", "one to three sentences"),
        ("9.feature.md", "* More is possible.", "list items"),
        ("9.feature.md", "Much. " * 200, "600 characters"),
    ],
)
def test_faults_are_told(tmp_path: Path, name: str, text: str, said: str | None) -> None:
    path = tmp_path / name
    path.write_text(text)
    fault = fault_of(path)
    assert fault is None if said is None else said in str(fault)


def test_the_changelog_says_where_a_release_writes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.count(SETTINGS["start_string"]) == 1


def test_every_type_is_documented() -> None:
    table = (ROOT / "changelog.d" / "README.md").read_text(encoding="utf-8")
    assert [kind for kind in TYPES if f"| `{kind}` |" not in table] == []
