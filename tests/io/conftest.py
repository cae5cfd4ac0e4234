"""What the tests of files share: tables of what TensorFlow 1.15 does, and its files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

TABLES = Path(__file__).parent / "tables"


def table(name: str) -> Any:
    """Return a table; ``generate_<name>.py`` beside it has made it."""
    return json.loads((TABLES / f"{name}.json").read_text())


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files of the table of readers, those of records written by TensorFlow."""
    folder = tmp_path_factory.mktemp("files")
    for name, content in table("readers")["files"].items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode("latin-1"))
    return folder
