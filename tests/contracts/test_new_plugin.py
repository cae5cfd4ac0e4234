"""``python -m headrace new-plugin``: what it writes installs, works, and passes its own tests."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

import headrace as hr
from headrace.cli.main import main
from tests.children import run_python

pytestmark = pytest.mark.needs("core", "autodiff", "backend-cpu", "testing")

USE = """
import numpy as np
import headrace as hr

x = hr.placeholder(hr.float32, [None])
y = hr.soft_clip(x, scale=0.5) + 1.0
(g,) = hr.gradients(y, [x])
with hr.Session(config=hr.Config(compile_after=0)) as session:
    values = session.run([y, g], {x: [1.0, -2.0]})
print(*(v.tolist() for v in values))
"""


def python(*arguments: str, site: Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run_python(
        *arguments, env={"PYTHONPATH": str(site)}, cwd=cwd, timeout_s=55.0, check=False
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new")
    assert main(["new-plugin", "soft_clip", "--into", str(folder)]) == 0
    return folder / "headrace-soft_clip"


@pytest.fixture(scope="module")
def site(package: Path) -> Path:
    pytest.importorskip("hatchling", reason="the build backend of the package is not installed")
    build = "from hatchling.build import build_wheel; print(build_wheel('dist'))"
    done = python("-c", build, site=package, cwd=package)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(package / "dist" / done.stdout.strip().splitlines()[-1]) as wheel:
        wheel.extractall(package / "site")
    return package / "site"


def test_it_works(package: Path, site: Path) -> None:
    done = python("-c", USE, site=site, cwd=package)
    assert done.stdout.strip() == "[1.5, -1.0] [1.0, 2.0]", done.stderr


def test_its_own_tests_pass(package: Path, site: Path) -> None:
    flags = ["-q", "-p", "no:cacheprovider", "--rootdir", str(package), "-c", os.devnull]
    done = python("-m", "pytest", *flags, str(package / "tests"), site=site, cwd=package)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_it_is_documented_line_by_line(package: Path) -> None:
    lines = (package / "src/headrace_soft_clip/__init__.py").read_text().splitlines()
    comments = sum(line.lstrip().startswith("#") for line in lines)
    assert comments > 0.2 * len(lines)
    assert not any("@" in line and not line.lstrip().startswith(("@", "#")) for line in lines)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        (
            "Fancy",
            "lower-case words of letters and digits joined by _, as in soft_clip, got 'Fancy'",
        ),
        ("1st", "got '1st'"),
        ("a-b", "got 'a-b'"),
        ("class", "got 'class'"),
        ("../up", "got '../up'"),
        ("", "got ''"),
        ("sin", "an op 'Sin' is declared at headrace.ops"),
        ("linspace", "the name 'linspace' is taken"),
        ("cpu", "the name 'cpu' is taken"),
    ],
)
def test_a_name_that_will_not_do_is_refused(name, match, tmp_path, capsys) -> None:
    assert main(["new-plugin", name, "--into", str(tmp_path)]) == 2
    assert match in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_is_there_is_left_alone(tmp_path, capsys) -> None:
    (tmp_path / "headrace-fresh").mkdir()
    assert main(["new-plugin", "fresh", "--into", str(tmp_path)]) == 2
    assert "exists already" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["new-plugin", "fresh", "--into", str(tmp_path / "file")]) == 2
    assert "cannot write" in capsys.readouterr().err
    assert not hasattr(hr, "fresh")
