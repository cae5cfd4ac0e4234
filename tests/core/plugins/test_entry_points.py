"""Entry points are found without ``importlib.metadata``, and are those that it finds."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from headrace.plugins.entry_points import FoundEntry, found_entries
from tests.children import run_program

GROUP = "headrace"


def facts(entries: object) -> list[tuple[str, str, str]]:
    return sorted((e.name, e.value, str(e.dist.metadata["Name"])) for e in entries)


def distribution(folder: Path, name: str, text: str, ending: str = "dist-info") -> None:
    about = folder / f"{name}-1.0.{ending}"
    about.mkdir(parents=True)
    file = "METADATA" if ending == "dist-info" else "PKG-INFO"
    (about / file).write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(text)


def test_what_is_installed_is_found() -> None:
    found = found_entries(GROUP)
    assert found
    assert facts(found) == facts(metadata.entry_points(group=GROUP))


TEXTS = {
    "one": "[headrace]\none = one.plugin\n",
    "some": "# a comment\n[other]\nx = y\n\n[headrace]\n two=two.plugin:made \nthree = m [extra]\n",
    "none": "[console_scripts]\nrun = run:main\n",
    "bare": "one = lost\n[headrace]\n",
}


@pytest.mark.parametrize("ending", ["dist-info", "egg-info"])
def test_folders_are_read_as_the_standard_library_reads_them(
    ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for name, text in TEXTS.items():
        distribution(first, name, text, ending)
    # Of two of one name, however it is written, the first on the path counts.
    distribution(second, "One", "[headrace]\nhidden = hidden\n", ending)
    distribution(second, "new_one", "[headrace]\nnew = new\n", ending)
    monkeypatch.setattr(sys, "path", [str(first), str(tmp_path / "absent"), str(second)])
    found = found_entries(GROUP)
    assert {entry.name for entry in found} == {"one", "two", "three", "new"}
    assert facts(found) == facts(metadata.entry_points(group=GROUP))


@pytest.mark.parametrize("kind", ["archive", "egg", "finder"])
def test_other_ways_to_install_are_left_to_the_standard_library(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ("toy.egg" if kind == "egg" else "toy")
    if kind == "archive":
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("toy-1.0.dist-info/entry_points.txt", TEXTS["one"])
            archive.writestr("toy-1.0.dist-info/METADATA", "Name: toy\nVersion: 1.0\n")
    elif kind == "egg":
        (place / "EGG-INFO").mkdir(parents=True)
        (place / "EGG-INFO" / "entry_points.txt").write_text(TEXTS["one"])
        (place / "EGG-INFO" / "PKG-INFO").write_text("Name: toy\nVersion: 1.0\n")
    else:
        distribution(place, "toy", TEXTS["one"])

        class Finder(metadata.DistributionFinder):
            def find_distributions(self, context=None):
                return [metadata.PathDistribution(place / "toy-1.0.dist-info")]

            def find_spec(self, *_):
                return None

        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    if kind != "finder":
        monkeypatch.setattr(sys, "path", [str(place)])
    assert "one" in {entry.name for entry in found_entries(GROUP)}


def test_entries_load_modules_and_attributes() -> None:
    assert FoundEntry("x", "os.path", GROUP, "f").load().__name__.endswith("path")
    assert FoundEntry("x", "os.path:join [fast]", GROUP, "f").load() is not None
    assert FoundEntry("x", "os:path.join", GROUP, "f").load() is not None
    with pytest.raises(ValueError, match=r"must name a module, as in 'package\.plugin', got 'a b'"):
        FoundEntry("x", "a b", GROUP, "f").load()


@pytest.mark.needs("train")
def test_importing_a_namespace_imports_no_metadata() -> None:
    program = "import sys, headrace.train; print('importlib.metadata' in sys.modules)"
    done = run_program(program)
    assert done.stdout == "False\n", done.stderr
