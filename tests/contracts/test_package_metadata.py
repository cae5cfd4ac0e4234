"""The packages are released together, and say the same about themselves."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import headrace
from tests.children import run_python

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent.name for path in ROOT.glob("packages/*/pyproject.toml"))


def settings_of(folder: str) -> dict[str, Any]:
    """The pyproject.toml of a package."""
    return tomllib.loads((ROOT / "packages" / folder / "pyproject.toml").read_text())


def project_of(folder: str) -> dict[str, Any]:
    """The project table of a package."""
    project: dict[str, Any] = settings_of(folder)["project"]
    return project


def test_the_workspace_has_these_packages() -> None:
    plugins = [
        "autodiff",
        "backend-cpu",
        "backend-cuda",
        "data",
        "dist-mpi",
        "io",
        "serve",
        "tensorflow",
        "testing",
        "train",
    ]
    assert sorted([*plugins, "core"]) == FOLDERS


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_version_stands_in_one_place(folder: str) -> None:
    data = settings_of(folder)
    assert data["project"]["dynamic"] == ["version"]
    stands = ROOT / "packages" / folder / data["tool"]["hatch"]["version"]["path"]
    assert stands.resolve() == ROOT / "packages/core/src/headrace/version.py"
    # Without it uv goes on to install what it built of another version.
    keys = [key["file"] for key in data["tool"]["uv"]["cache-keys"]]
    assert keys == ["pyproject.toml", data["tool"]["hatch"]["version"]["path"]]


def test_the_installed_version_is_the_one_of_the_source() -> None:
    assert version("headrace-core") == headrace.__version__


@pytest.mark.parametrize("folder", FOLDERS)
def test_siblings_are_required_at_the_same_minor_version(folder: str) -> None:
    major, minor, _ = headrace.__version__.split(".", 2)
    siblings = [line for line in project_of(folder)["dependencies"] if line.startswith("headrace-")]
    assert bool(siblings) == (folder != "core")
    wrong = [line for line in siblings if not line.endswith(f"~={major}.{minor}.0")]
    assert not wrong, f"{wrong}: run python tools/set_version.py {headrace.__version__}"


def copy_of_sources(folder: Path) -> Path:
    """Copy what holds the version to a folder, with the program that changes it."""
    places = ["packages/core/src/headrace/version.py", "tools/set_version.py"]
    places += [f"packages/{name}/pyproject.toml" for name in FOLDERS]
    for place in places:
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / place, folder / place)
    return folder


def set_version(folder: Path, number: str) -> subprocess.CompletedProcess[str]:
    return run_python(folder / "tools/set_version.py", number, check=False)


def test_one_command_sets_the_version_and_what_siblings_require(tmp_path: Path) -> None:
    folder = copy_of_sources(tmp_path)
    done = set_version(folder, "7.3.2")
    assert done.returncode == 0, done.stderr
    assert '__version__ = "7.3.2"' in (folder / "packages/core/src/headrace/version.py").read_text()
    for name in FOLDERS:
        text = (folder / "packages" / name / "pyproject.toml").read_text()
        pins = re.findall(r'"headrace-[a-z-]+(?:\[[a-z0-9,]+\])?(.*?)"', text)
        assert set(pins) <= {"~=7.3.0", ""}, name
        before = (ROOT / "packages" / name / "pyproject.toml").read_text()
        assert re.sub(r"~=7\.3\.0", "~=X", text) == re.sub(
            r"(headrace-[^\"]*)~=[\d.]+", r"\1~=X", before
        )


@pytest.mark.parametrize("number", ["7.3", "seven", "7.3.2-final"])
def test_what_is_no_version_is_refused_and_changes_nothing(tmp_path: Path, number: str) -> None:
    folder = copy_of_sources(tmp_path)
    refused = set_version(folder, number)
    assert refused.returncode == 1
    assert f"{number!r} is not a version: expected three numbers" in refused.stderr
    assert headrace.__version__ in (folder / "packages/core/src/headrace/version.py").read_text()


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
