"""Every mistake of the catalogue is told in its golden file's words, in few lines that help.

``python -m tests.mistakes.told --write`` renews the files; read what changed.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from headrace.errors import MAX_LINES

from .mistake_files import FOLDER, WHEN, Mistake, mistakes
from .told import told

ALL = list(mistakes())
PARTS = {
    *("graphs", "shapes", "dtypes", "names", "variables", "feeds", "fetches", "sessions"),
    *("control_flow", "gradients", "queues", "data", "optimizers", "checkpoints", "summaries"),
    *("layers", "losses", "metrics", "saved_models", "serve", "devices", "config", "plugins"),
    *("cli", "clusters", "lookup", "io", "monitored"),
}

pytestmark = pytest.mark.needs(
    "autodiff", "backend-cpu", "data", "dist-mpi", "io", "serve", "train"
)


def test_the_catalogue_covers_every_part() -> None:
    assert {mistake.part for mistake in ALL} == PARTS
    assert len(ALL) >= 80
    # Every part but the small ones has several.
    assert min(Counter(mistake.part for mistake in ALL).values()) >= 2


def test_files_are_in_the_form() -> None:
    titles = Counter(mistake.title for mistake in ALL)
    assert [title for title, count in titles.items() if count > 1] == []
    goldens = {mistake.golden for mistake in ALL}
    assert set(FOLDER.glob("*/*.txt")) == goldens
    for mistake in ALL:
        assert mistake.refused in WHEN, mistake.name
        # What is found in a step says why it could not be found before.
        assert bool(mistake.reason) == (mistake.refused == "step"), mistake.name
        assert bool(mistake.line) == (mistake.path.suffix == ".py"), mistake.name


@pytest.mark.parametrize("mistake", ALL, ids=lambda mistake: mistake.name)
def test_mistake(mistake: Mistake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text, frames = told(mistake)
    assert text == mistake.golden.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    message = text.replace(mistake.path.name, "")
    for field, part in mistake.says.items():
        assert part in message, f"the error lacks what is {field}: {part}"
    if mistake.refused == "command":
        return
    place = re.escape(mistake.path.name)
    assert re.search(rf'{place}(:|", line ){mistake.line}\b', text), "the error names another line"
    if mistake.refused == "building":
        ran = [f for f in frames if f.f_globals["__name__"] == "headrace.session.session"]
        assert "run" not in [frame.f_code.co_name for frame in ran], "it was refused by a step"
