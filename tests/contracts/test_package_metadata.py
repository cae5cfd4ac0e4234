"""The six packages are released together, and say the same about themselves."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))


def project_of(folder: str) -> dict[str, Any]:
    """The project table of a package."""
    text = (ROOT / "packages" / folder / "pyproject.toml").read_text()
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def test_the_workspace_has_six_packages_of_one_version() -> None:
    assert FOLDERS == ["autodiff", "backend-cpu", "backend-cuda", "core", "dist-mpi", "train"]
    assert len({project_of(folder)["version"] for folder in FOLDERS}) == 1


@pytest.mark.parametrize("folder", FOLDERS)
def test_siblings_are_required_at_the_same_minor_version(folder: str) -> None:
    project = project_of(folder)
    wanted = f"~={project['version'].rsplit('.', 1)[0]}.0"
    siblings = [line for line in project["dependencies"] if line.startswith("headrace-")]
    assert bool(siblings) == (folder != "core")
    assert all(line.endswith(wanted) for line in siblings), siblings


@pytest.mark.parametrize("folder", FOLDERS)
def test_packages_agree_on_python_and_licence(folder: str) -> None:
    project, core = project_of(folder), project_of("core")
    assert project["name"] == f"headrace-{folder}"
    for key in ("requires-python", "classifiers", "authors"):
        assert project[key] == core[key], key
    assert "Apache-2.0" in project["license"].split(" AND ")
    assert (ROOT / "packages" / folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_requirement_has_a_lower_bound(folder: str) -> None:
    project = project_of(folder)
    extras = project.get("optional-dependencies", {}).values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    assert [line for line in lines if not re.search(r"(>=|~=)\d", line)] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_import_packages_are_typed(folder: str) -> None:
    (source,) = (ROOT / "packages" / folder / "src").iterdir()
    assert (source / "py.typed").is_file()
