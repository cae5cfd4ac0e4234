"""The checks of the built site find what is wrong, and the names on the pages exist."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import headrace as hr
from tests.children import run_python

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs"


def load(name: str) -> ModuleType:
    """Return a module beside this one."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


checks = load("site_checks")

GOOD = """<!DOCTYPE html><html><head><link rel="stylesheet" href="style.css"></head><body>
<h1 id="top">A page</h1><a href="#top">up</a><a href="other.html#there">other</a>
<a href="https://example.org/x">away</a>
<svg viewBox="0 0 100 40" class="headrace-drawing" xmlns="http://www.w3.org/2000/svg">
<rect width="100" height="40" fill="#ffffff"/>
<text x="10" y="20" font-size="12" text-anchor="start" fill="#000000">fits</text></svg>
</body></html>"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(GOOD)
    (tmp_path / "other.html").write_text('<p id="there">x</p>')
    (tmp_path / "style.css").write_text("")
    return tmp_path


def test_a_sound_site_has_no_problems(folder: Path) -> None:
    assert list(checks.problems(folder)) == []
    assert checks.main([str(folder)]) == 0


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("#top", "#bottom", "index.html:2: #bottom: there is no such anchor"),
        ("other.html#there", "other.html#here", "other.html#here: there is no such anchor"),
        ("other.html#there", "gone.html", "gone.html: there is no such file"),
        ("style.css", "gone.css", "loads gone.css, which is not there"),
        ("style.css", "https://cdn.example.org/s.css", "from another host"),
        ('<h1 id="top">', '<i id="top"></i><h1 id="top">', "the id 'top' stands there more than"),
        (">fits<", ">does not fit into it<", "the text 'does not fit into it' leaves it"),
        ('y="20"', 'y="60"', "the text 'fits' leaves it"),
        ("</text></svg>", "</svg>", "drawing 1: is no XML"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    folder: Path, old: str, new: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "index.html").write_text(GOOD.replace(old, new))
    assert checks.main([str(folder)]) == 1
    assert problem in capsys.readouterr().out


def test_a_folder_without_pages_is_a_problem(tmp_path: Path) -> None:
    assert checks.main([str(tmp_path)]) == 1


@pytest.mark.needs("autodiff", "dist-mpi", "train")
def test_functions_that_pages_name_exist() -> None:
    missing = []
    for page in [DOCS / "index.md", DOCS / "coming-from.md", *(DOCS / "tutorials").glob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for code in re.findall(r"`([^`]+)`", text):
            for name in re.findall(r"\bhr((?:\.\w+)+)", code):
                found: Any = hr
                for part in name[1:].split("."):
                    found = getattr(found, part, None)
                if found is None and "*" not in code:
                    missing.append(f"{page.name}: hr{name}")
    assert not missing


# -- in a browser


def render(folder: Path) -> subprocess.CompletedProcess[str]:
    return run_python(HERE / "render_site.py", folder, timeout_s=55.0, check=False)


def test_without_a_browser_it_says_that_it_looked_at_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CHROMIUM", raising=False)
    result = render(folder)
    assert result.returncode == 0
    assert result.stdout.startswith("SKIPPED: no Chromium here")


WRONG = GOOD.replace(
    "</body>",
    """<div style="width:600px">a block that is wider than a telephone</div>
    <img src="https://example.invalid/x.png"><script>console.error("told")</script></body>""",
).replace('fill="#000000">fits', 'fill="#eeeeee">fits')


@pytest.mark.skipif(
    not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    reason="there is no Chromium here",
)
def test_a_browser_finds_what_is_wrong(folder: Path) -> None:
    sound = render(folder)
    assert sound.returncode == 0, sound.stdout
    assert "2 pages, 4 looks: 0 problems" in sound.stdout

    (folder / "index.html").write_text(WRONG)
    result = render(folder)
    assert result.returncode == 1
    narrow = [line for line in result.stdout.splitlines() if "at 390 px, dark" in line]
    told = "\n".join(narrow)
    assert "px over the border: <div" in told
    assert "console: error: told" in told
    assert "asks for https://example.invalid/x.png" in told
    assert "a text of too little contrast in a drawing: fits" in told
    assert not any("over the border" in x for x in result.stdout.splitlines() if "1400 px" in x)
