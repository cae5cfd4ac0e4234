"""What the package adds to Headrace, and where."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import headrace as hr
import headrace_io
from headrace.extend.plugins import host
from headrace_io.names import ELSEWHERE, FOUND_IN, targets


def test_the_package_is_the_namespace_io() -> None:
    assert hr.io is headrace_io
    assert set(headrace_io.__all__) <= set(dir(hr.io))
    with pytest.raises(AttributeError, match=r"headrace\.io has no attribute 'red_file'"):
        _ = hr.io.red_file


def test_every_public_name_is_imported_for_type_checkers() -> None:
    tree = ast.parse(Path(str(headrace_io.__file__)).read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    read = {
        alias.asname: str(node.module).removeprefix("headrace_io.")
        for node in imports
        for alias in node.names
        if alias.asname
    }
    assert read == FOUND_IN
    assert sorted(FOUND_IN) == headrace_io.__all__


@pytest.mark.needs("train")
@pytest.mark.parametrize("name", targets())
def test_names_elsewhere_are_found(name: str) -> None:
    found = hr
    for part in name.split("."):
        assert part in dir(found)
        found = getattr(found, part)
    assert found is host().resolve_name(name)


def test_names_are_where_tensorflow_has_them() -> None:
    assert hr.read_file is hr.io.read_file
    assert hr.python_io.TFRecordWriter is hr.io.TFRecordWriter
    assert "match_filenames_once" in ELSEWHERE["train"]
