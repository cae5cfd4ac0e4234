"""The plugins that the documentation shows: built as wheels, installed, and tested as they come."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.children import run_python
from tests.contracts.test_import_direction import imports_in

EXAMPLES = Path(__file__).parents[1] / "plugin_examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/pyproject.toml"))
DOCS = Path(__file__).parents[2] / "docs"
# What a plugin may import of Headrace: what the documentation of the door tells of.
DOOR = ("headrace.errors", "headrace.extend", "headrace.testing")

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu", "train", "testing")


def python(*arguments: str, site: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a Python process that finds what is installed in the folder ``site``, too."""
    return run_python(*arguments, env={"PYTHONPATH": str(site)}, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the wheels of all examples are installed."""
    pytest.importorskip("hatchling", reason="the build backend of the examples is not installed")
    work = tmp_path_factory.mktemp("examples")
    build = "from hatchling.build import build_wheel; print(build_wheel('..'))"
    for name in NAMES:
        source = shutil.copytree(EXAMPLES / name, work / name / "source")
        done = python("-c", build, site=work, cwd=source)
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(work / name / done.stdout.strip().splitlines()[-1]) as wheel:
            wheel.extractall(work / "site")
    return work / "site"


def test_there_is_one_for_each_kind_of_extension() -> None:
    assert (
        sorted(
            {
                "cube",  # op, gradient, kernel
                "power",  # specialized kernel, in place of another one
                "mailbox",  # resource, blocking op
                "dice",  # random op
                "rolling",  # input on the host
                "ledger",  # kind of devices
                "odd",  # rewrite rule
                "signum",  # optimizer
                "recorder",  # session target
            }
        )
        == NAMES
    )


@pytest.mark.parametrize("name", NAMES)
def test_its_own_tests_pass(name: str, site: Path) -> None:
    tests = EXAMPLES / name / "tests"
    flags = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tests), "-c", os.devnull]
    done = python("-m", "pytest", *flags, str(tests), site=site, cwd=site)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


@pytest.mark.parametrize("name", NAMES)
def test_it_uses_the_door_only(name: str) -> None:
    for path in (EXAMPLES / name / "src").rglob("*.py"):
        wrong = [
            found
            for found in imports_in(path.read_text(), str(path))
            if (found.module.startswith("headrace.") and not found.module.startswith(DOOR))
            or found.module.startswith(("headrace_cpu", "headrace_autodiff", "headrace_cuda"))
        ]
        assert not wrong


@pytest.mark.parametrize("name", NAMES)
def test_it_declares_what_it_imports(name: str) -> None:
    project = tomllib.loads((EXAMPLES / name / "pyproject.toml").read_text())["project"]
    declared = {line.replace("headrace-", "") for line in project["dependencies"]}
    known = {"core": "headrace", "numpy": "numpy"}
    for path in (EXAMPLES / name / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        tops = {found.module.split(".")[0] for found in imports_in(path.read_text(), str(path))}
        foreign = tops - {*sys.stdlib_module_names, f"headrace_{name}"}
        assert foreign <= {known[d] for d in declared if d in known}
        if any(isinstance(n, ast.Attribute) and n.attr == "Optimizer" for n in ast.walk(tree)):
            assert "train" in declared


@pytest.mark.parametrize("name", NAMES)
def test_a_page_of_the_documentation_shows_it(name: str) -> None:
    pages = [page.read_text() for page in (DOCS / "how-to").rglob("*.md")]
    assert any(f"plugin_examples/{name}/src/headrace_{name}/" in text for text in pages)
