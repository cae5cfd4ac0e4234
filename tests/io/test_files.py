"""Reading, writing and finding files in the graph."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import headrace as hr
from headrace import errors
from headrace_io.matching import part_expression
from tests.steps import run

pytestmark = pytest.mark.needs("backend-cpu", "train")

PATTERNS = json.loads((Path(__file__).parent / "tables" / "readers.json").read_text())["patterns"]


def test_a_file_that_is_written_is_read(tmp_path):
    path = str(tmp_path / "new" / "folder" / "file")
    run(hr.write_file(path, b"\x00first\n"))
    run(hr.io.write_file(path, b"second"))
    read = hr.read_file(path)
    assert read.shape == []
    assert run(read) == b"second"


def test_a_file_is_read_in_each_step(tmp_path):
    path = tmp_path / "file"
    read = hr.io.read_file(str(path))
    with hr.Session() as session:
        for content in (b"one", b"two", b""):
            path.write_bytes(content)
            assert session.run(read) == content


@pytest.mark.parametrize(
    ("name", "family", "message"),
    [
        ("gone", errors.NotFoundError, "cannot read '.*gone': No such file"),
        (".", errors.FailedPreconditionError, "cannot read '.*': Is a directory"),
        ("a.txt/b", errors.FailedPreconditionError, "cannot read '.*b': Not a directory"),
        ("a\0b", errors.InvalidArgumentError, "is no name of a file: it has a NUL byte"),
    ],
)
def test_what_cannot_be_read_says_so(files, name, family, message):
    read = hr.read_file(f"{files}/{name}")
    with pytest.raises(family, match=message):
        run(read)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (".", "cannot write '.*': Is a directory"),
        ("a.txt/b", "cannot write '.*': '.*a.txt' is not a directory"),
        ("a.txt/b/c", "cannot write '.*': Not a directory"),
    ],
)
def test_what_cannot_be_written_says_so(files, name, message):
    write = hr.write_file(f"{files}/{name}", b"new")
    with pytest.raises(errors.FailedPreconditionError, match=message):
        run(write)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_says_so(tmp_path):
    path = tmp_path / "secret"
    path.write_bytes(b"secret")
    path.chmod(0)
    with pytest.raises(errors.PermissionDeniedError, match=r"cannot read .*: Permission denied"):
        run(hr.read_file(str(path)))


def test_names_and_contents_are_scalars(tmp_path):
    with pytest.raises(errors.ShapeError, match="filename must be a scalar"):
        hr.read_file(["a", "b"])
    with pytest.raises(errors.ShapeError, match="contents must be a scalar"):
        hr.write_file("a", ["b"])
    with pytest.raises(errors.DTypeError, match="filename"):
        hr.read_file(3)
    fed = hr.placeholder(hr.string)
    with pytest.raises(errors.InvalidArgumentError, match="filename must be a scalar"):
        run(hr.read_file(fed), {fed: [b"a"]})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_tensorflow_matches(files, pattern):
    expected = PATTERNS[pattern]
    matching = hr.matching_files(f"{files}/{pattern}")
    if isinstance(expected, dict):
        with pytest.raises(getattr(errors, expected["error"]), match=r"cannot list '.*nodir'"):
            run(matching)
        return
    assert [os.fsdecode(name) for name in run(matching)] == [f"{files}/{n}" for n in expected]


def test_names_of_several_patterns_are_sorted_together(files):
    patterns = [f"{files}/{name}" for name in ("b*.txt", "a*.txt", "a.*")]
    matching = hr.io.matching_files(patterns)
    assert matching.shape.as_list() == [None]
    names = [Path(os.fsdecode(name)).name for name in run(matching)]
    assert names == ["a.txt", "a.txt", "b.txt"]
    assert run(hr.matching_files(hr.constant([], hr.string))).shape == (0,)


def test_a_pattern_without_a_directory_is_one_of_the_current(files, monkeypatch):
    monkeypatch.chdir(files)
    assert run(hr.matching_files("a.t*")).tolist() == [b"./a.txt"]
    assert run(hr.matching_files("./a.t*")).tolist() == [b"./a.txt"]
    assert run(hr.matching_files("")).tolist() == []
    Path("folder").mkdir(exist_ok=True)
    Path("folder/z.csv").touch()
    assert run(hr.matching_files("*/z.csv")).tolist() == [b"./folder/z.csv"]
    assert hr.gfile.Glob("a.t*") == hr.io.gfile.glob(["./a.t*"]) == ["./a.txt"]
    assert hr.gfile.Glob("*/z.csv") == ["./folder/z.csv"]
    assert hr.gfile.Glob("folder/z*") == ["folder/z.csv"]


def test_patterns_have_one_dimension_at_most():
    with pytest.raises(errors.ShapeError, match="pattern must be a scalar or a vector"):
        hr.matching_files([["a"]])
    fed = hr.placeholder(hr.string)
    with pytest.raises(errors.ShapeError, match="pattern must be a scalar or a vector"):
        run(hr.matching_files(fed), {fed: [[b"a"]]})


@pytest.mark.parametrize("part", ["[", "[!", "[]", "[^]", "[[:", "\\", "[\\", "[a-"])
def test_a_bracket_without_an_end_stands_for_itself(part):
    assert part_expression(part).fullmatch(part)


def test_names_are_looked_up_once(files, tmp_path):
    (tmp_path / "one.txt").write_bytes(b"")
    names = hr.train.match_filenames_once(f"{tmp_path}/*.txt")
    assert hr.local_variables() == [names]
    assert hr.global_variables() == []
    with hr.Session() as session:
        with pytest.raises(errors.FailedPreconditionError, match="not initialized"):
            session.run(names)
        session.run(hr.local_variables_initializer())
        (tmp_path / "two.txt").write_bytes(b"")
        assert session.run(names).tolist() == [os.fsencode(tmp_path / "one.txt")]
        session.run(hr.local_variables_initializer())
        assert len(session.run(names)) == 2
