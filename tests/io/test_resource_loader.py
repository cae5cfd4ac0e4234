"""``hr.resource_loader``: files beside the one that asks, and those of Headrace."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, NotFoundError

pytestmark = pytest.mark.needs("io")

HERE = Path(__file__).parent


def test_files_lie_beside_the_one_that_asks(tmp_path: Path) -> None:
    assert hr.resource_loader.get_data_files_path() == str(HERE)
    assert hr.resource_loader.get_path_to_datafile("a/b.txt") == str(HERE / "a" / "b.txt")
    program = tmp_path / "program.py"
    program.write_text(
        "import headrace as hr\n"
        "folder = hr.resource_loader.get_data_files_path()\n"
        "path = hr.resource_loader.get_path_to_datafile('data')\n"
    )
    found = runpy.run_path(str(program))
    assert (found["folder"], found["path"]) == (str(tmp_path), str(tmp_path / "data"))


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("a/b", "a/b"),
        ("x.runfiles/repository/a/b", "x.runfiles/repository"),
        ("x.runfiles/repository", "x.runfiles/repository"),
        ("x.runfiles", "x.runfiles"),
    ],
)
def test_a_build_has_a_folder_of_all_files(inside: str, expected: str, tmp_path: Path) -> None:
    folder = tmp_path / inside
    folder.mkdir(parents=True)
    program = folder / "program.py"
    program.write_text(
        "import headrace as hr\nfound = hr.resource_loader.get_root_dir_with_all_resources()\n"
    )
    assert runpy.run_path(str(program))["found"] == str(tmp_path / expected)


def test_files_of_headrace() -> None:
    expected = Path(hr.__file__).read_bytes()
    assert hr.resource_loader.load_resource("__init__.py") == expected
    for path in ("none.txt", "graph", "a\0b"):
        with pytest.raises(NotFoundError, match="cannot be read") as caught:
            hr.resource_loader.load_resource(path)
        assert isinstance(caught.value, OSError)
    for function in ("load_resource", "get_path_to_datafile"):
        with pytest.raises(ArgumentTypeError, match="path must be"):
            getattr(hr.resource_loader, function)(3)


def test_paths_are_read_ahead_by_the_system() -> None:
    assert hr.resource_loader.readahead_file_path("a", readahead="1G") == "a"
