"""The public API is what its files say, and its changes are in the changelog."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load_api() -> ModuleType:
    """Return the program that tells the public API."""
    spec = importlib.util.spec_from_file_location("tools_api", ROOT / "tools" / "api.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


api = load_api()


@pytest.mark.needs("autodiff", "backend-cpu", "data", "dist-mpi", "serve", "train")
def test_public_names_and_signatures_are_those_of_the_files() -> None:
    changed = api.difference(api.stored(api.FOLDER), api.api())
    assert not changed, (
        "The public API is not what tests/contracts/api says. If that is meant, run "
        "`python tools/api.py --write`, and name what changed in changelog.d; names keep working "
        "for some releases, as docs/compatibility.md tells.\n" + "\n".join(changed)
    )


def test_every_change_since_the_release_is_in_the_changelog() -> None:
    changed = api.difference(api.stored(api.RELEASED), api.stored(api.FOLDER))
    paths = [path for path in (ROOT / "changelog.d").glob("*.md") if path.name != "README.md"]
    missing = api.unexplained(changed, [path.read_text(encoding="utf-8") for path in paths])
    assert not missing, (
        "The public API has changed since the last release, and no file of changelog.d names "
        "these, or their module, in backquotes (see changelog.d/README.md):\n" + "\n".join(missing)
    )


BEFORE = {
    "headrace": ["class Thing(a) < Base", "  Thing.go(self)", "add(x, y)", "pi: float"],
    "headrace.nn": ["relu(features, name=None)"],
}
AFTER = {
    "headrace": ["class Thing(a) < Base", "  Thing.go(self, fast=False)", "add(x, y, name=None)"],
    "headrace.nn": ["relu(features, name=None)", "relu7(features)"],
}
CHANGED = api.difference(BEFORE, AFTER)


def test_a_difference_tells_module_and_line() -> None:
    assert CHANGED == [
        "headrace: -   Thing.go(self)",
        "headrace: - add(x, y)",
        "headrace: - pi: float",
        "headrace: +   Thing.go(self, fast=False)",
        "headrace: + add(x, y, name=None)",
        "headrace.nn: + relu7(features)",
    ]


@pytest.mark.parametrize(
    ("entries", "missing"),
    [
        ([], {"Thing", "add", "pi", "relu7"}),
        (["`add` takes a name."], {"Thing", "pi", "relu7"}),
        (["`hr.add(x, y, name)` is new."], {"Thing", "pi", "relu7"}),
        (["`hr.nn.relu7` is new.", "`headrace.Thing.go` may be fast."], {"add", "pi"}),
        (["`Thing` may be fast."], {"add", "pi", "relu7"}),
        (["add, `pi` and relu7 are new."], {"Thing", "add", "relu7"}),
        (["`headrace.nn` has more."], {"Thing", "add", "pi"}),
        (["`headrace` is another."], {"relu7"}),
    ],
)
def test_an_entry_explains_what_it_names(entries: list[str], missing: set[str]) -> None:
    lines = api.unexplained(CHANGED, entries)
    assert {line.split()[2].partition("(")[0].partition(".")[0].rstrip(":") for line in lines} == (
        missing
    )


def test_a_signature_is_told_without_annotations_and_addresses() -> None:
    def function(a: int, /, b: str = "x", *, c: object = test_a_difference_tells_module_and_line):
        del a, b, c

    told = api.signature_of(function)
    assert told == "(a, /, b='x', *, c=<function test_a_difference_tells_module_and_line>)"


def test_files_are_written_and_read_back(tmp_path: Path) -> None:
    api.write(tmp_path, BEFORE)
    api.write(tmp_path, AFTER)
    assert api.stored(tmp_path) == AFTER


def test_a_package_stands_for_its_modules() -> None:
    changed = api.difference({}, {"headrace.extend.ops": ["op(name)"]})
    assert api.unexplained(changed, ["`headrace.extend` is another."]) == []
    assert api.unexplained(changed, ["`headrace` is another."]) == changed
