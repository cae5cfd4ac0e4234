"""Lines and records of files, and what is damaged in them."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

import headrace as hr
from headrace.errors import (
    DataLossError,
    DTypeError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from headrace_io.records import TFRecordWriter

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset


def elements(dataset: Any) -> list[Any]:
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with hr.Session() as session:
        while True:
            try:
                found.append(session.run(element))
            except OutOfRangeError:
                return found


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = [str(tmp_path / f"{i}.txt") for i in range(3)]
    for i, name in enumerate(names):
        Path(name).write_bytes(b"".join(b"%d-%d\n" % (i, line) for line in range(i + 2)))
    return names


def test_lines_of_several_files(files: list[str]) -> None:
    whole = [b"0-0", b"0-1", b"1-0", b"1-1", b"1-2", b"2-0", b"2-1", b"2-2", b"2-3"]
    assert elements(hr.data.TextLineDataset(files)) == whole
    names = Dataset.from_tensor_slices(files)
    assert elements(hr.data.TextLineDataset(names)) == whole
    turns = [b"0-0", b"1-0", b"0-1", b"1-1", b"1-2", b"2-0", b"2-1", b"2-2", b"2-3"]
    assert elements(hr.data.TextLineDataset(files, num_parallel_reads=2)) == turns
    listed = Dataset.list_files(str(Path(files[0]).parent / "*.txt"), shuffle=False)
    assert elements(listed) == [name.encode() for name in files]
    assert elements(listed.flat_map(hr.data.TextLineDataset)) == whole
    shuffled = Dataset.list_files(str(Path(files[0]).parent / "*.txt"), seed=1)
    assert sorted(elements(shuffled)) == [name.encode() for name in files]


@pytest.mark.parametrize("function", [hr.string_to_hash_bucket_fast, hr.string_to_hash_bucket])
def test_strings_one_by_one_have_scalar_hashes_and_entries(function: Any) -> None:
    table = hr.lookup.StaticHashTable(hr.lookup.KeyValueTensorInitializer(["b"], [5]), -1)
    words = Dataset.from_tensor_slices(["a", "b"])
    with hr.Session() as session:
        session.run(hr.tables_initializer())
        assert elements(words.map(lambda x: function(x, 1))) == [0, 0]
        iterator = words.map(table.lookup).make_initializable_iterator()
        element = iterator.get_next()
        session.run(iterator.initializer)
        assert [session.run(element) for _ in range(2)] == [-1, 5]


def test_names_of_files_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d").mkdir()
    for name in ("a.x", "b.x", "d/c.x"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    for pattern, names in {
        "*.x": [b"./a.x", b"./b.x"],
        "./*.x": [b"./a.x", b"./b.x"],
        "a.x": [b"./a.x"],
        "*/c.x": [b"./d/c.x"],
        "d/*.x": [b"d/c.x"],
        f"{tmp_path}/a*": [f"{tmp_path}/a.x".encode()],
    }.items():
        assert elements(Dataset.list_files(pattern, shuffle=False)) == names


def test_records_and_records_of_one_length(tmp_path: Path) -> None:
    name = str(tmp_path / "a.tfrecord")
    with TFRecordWriter(name) as writer:
        for item in (b"one", b"", b"three"):
            writer.write(item)
    assert elements(hr.data.TFRecordDataset(name)) == [b"one", b"", b"three"]
    fixed = tmp_path / "fixed"
    fixed.write_bytes(b"HEAD" + b"abcdef" + b"F")
    assert elements(hr.data.FixedLengthRecordDataset(str(fixed), 2, 4, 1)) == [b"ab", b"cd", b"ef"]
    packed = tmp_path / "lines.gz"
    packed.write_bytes(gzip.compress(b"x\ny"))
    assert elements(hr.data.TextLineDataset(str(packed), "GZIP")) == [b"x", b"y"]


@pytest.mark.parametrize(
    ("content", "lengths", "got"),
    [
        (b"abcdefgh", (3,), "header of 0 and a footer of 0, got 8"),
        (b"abcdefgh", (3, 2, 1), "header of 2 and a footer of 1, got 5"),
        (b"abcdefgh", (2, 10), "header of 10 and a footer of 0, got -2"),
    ],
)
def test_a_file_of_fixed_records_with_a_tail_is_refused_and_the_next_follows(
    tmp_path: Path, content: bytes, lengths: tuple[int, ...], got: str
) -> None:
    names = [tmp_path / "tail", tmp_path / "whole"]
    record, header, footer = (*lengths, 0, 0)[:3]
    names[0].write_bytes(content)
    names[1].write_bytes(b"H" * header + b"r" * record + b"F" * footer)
    dataset = hr.data.FixedLengthRecordDataset([str(name) for name in names], *lengths)
    element = dataset.make_one_shot_iterator().get_next()
    with hr.Session() as session:
        with pytest.raises(InvalidArgumentError, match=f"whole number of records.*{got}"):
            session.run(element)
        assert session.run(element) == b"r" * record


@pytest.mark.parametrize(("lengths", "ends"), [((3,), 2), ((3, 1, 2), 4)])
def test_a_compressed_file_with_a_tail_is_refused_at_its_end(
    tmp_path: Path, lengths: tuple[int, ...], ends: int
) -> None:
    name = tmp_path / "tail.gz"
    name.write_bytes(gzip.compress(b"abcdefgh"))
    dataset = hr.data.FixedLengthRecordDataset(str(name), *lengths, compression_type="GZIP")
    element = dataset.make_one_shot_iterator().get_next()
    with hr.Session() as session:
        assert len(session.run(element)) == 3
        if not lengths[1:]:
            session.run(element)
        with pytest.raises(DataLossError, match=f"ends with {ends} bytes that are neither"):
            session.run(element)


def test_a_damaged_record_is_named_and_the_next_file_follows(tmp_path: Path) -> None:
    names = [str(tmp_path / f"{i}.tfrecord") for i in range(2)]
    for name in names:
        with TFRecordWriter(name) as writer:
            for item in (b"one", b"two", b"three"):
                writer.write(item)
    data = bytearray(Path(names[0]).read_bytes())
    data[19 + 12] ^= 1
    Path(names[0]).write_bytes(bytes(data))
    dataset = hr.data.TFRecordDataset(names)
    element = dataset.make_one_shot_iterator().get_next()
    with hr.Session() as session:
        assert session.run(element) == b"one"
        with pytest.raises(DataLossError, match=r"record 1 of '.*0.tfrecord', at byte 19"):
            session.run(element)
        assert session.run(element) == b"one"
    assert elements(dataset.apply(hr.data.experimental.ignore_errors())) == [
        *(b"one", b"one", b"two", b"three")
    ]


def test_files_that_are_not_there(files: list[str]) -> None:
    element = hr.data.TextLineDataset(["/nowhere", files[0]]).make_one_shot_iterator().get_next()
    with hr.Session() as session:
        with pytest.raises(NotFoundError, match="/nowhere"):
            session.run(element)
        assert session.run(element) == b"0-0"
    with pytest.raises(DTypeError, match="data set of strings"):
        hr.data.TextLineDataset(Dataset.range(3))


def test_a_position_in_files(files: list[str]) -> None:
    for dataset in (
        hr.data.TextLineDataset(files),
        hr.data.TextLineDataset(files, num_parallel_reads=2).prefetch(2),
        Dataset.list_files(files).interleave(hr.data.TextLineDataset, 2, 2),
    ):
        iterator = dataset.make_initializable_iterator()
        element = iterator.get_next()
        saveable = hr.data.experimental.make_saveable_from_iterator(iterator)
        saved = hr.placeholder(hr.string, [])
        restore = saveable.restore(saved)
        states, whole = [], []
        with hr.Session() as session:
            session.run(iterator.initializer)
            for _ in range(9):
                states.append(session.run(saveable.snapshot))
                whole.append(session.run(element))
        with hr.Session() as session:
            session.run(iterator.initializer)
            for i, state in enumerate(states):
                session.run(restore, {saved: state})
                assert [session.run(element) for _ in whole[i:]] == whole[i:]
                with pytest.raises(OutOfRangeError, match="no elements left"):
                    session.run(element)
