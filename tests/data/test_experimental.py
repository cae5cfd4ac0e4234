"""Data sets of databases, of examples and by chance: what a table of outcomes does not hold."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import InvalidArgumentError, OutOfRangeError, UnknownError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset


def elements(dataset: Any) -> list[Any]:
    following = dataset.make_one_shot_iterator().get_next()
    found = []
    with hr.Session() as session:
        try:
            while True:
                found.append(session.run(following))
        except OutOfRangeError:
            return found


def database(folder: Path) -> str:
    path = str(folder / "people.db")
    with sqlite3.connect(path) as connection:
        connection.execute("create table people (name text, age integer)")
        connection.executemany("insert into people values (?, ?)", [("a", 3), ("b", None)])
    connection.close()
    return path


class TestDatabases:
    def test_rows_are_elements_and_what_is_missing_is_zero(self, tmp_path: Path) -> None:
        path = database(tmp_path)
        query = "select name, age from people order by name"
        found = elements(
            hr.data.experimental.SqlDataset("sqlite", path, query, (hr.string, hr.int32))
        )
        assert found == [(b"a", 3), (b"b", 0)]

    @pytest.mark.parametrize(
        ("driver", "query", "types", "error", "text"),
        [
            ("mysql", "select 1", hr.int32, InvalidArgumentError, "only driver"),
            ("sqlite", "select lost", hr.int32, UnknownError, "no such column"),
            ("sqlite", "select 1, 2", hr.int32, InvalidArgumentError, "number of columns"),
        ],
    )
    def test_what_cannot_be_asked_is_refused(
        self, tmp_path: Path, driver: str, query: str, types: Any, error: Any, text: str
    ) -> None:
        path = database(tmp_path)
        with pytest.raises(error, match=text):
            elements(hr.data.experimental.SqlDataset(driver, path, query, types))

    def test_a_column_of_float32_is_refused(self) -> None:
        with pytest.raises(hr.errors.DTypeError, match="a column is of integers"):
            hr.data.experimental.SqlDataset("sqlite", "x", "y", hr.float32)


def test_a_choice_that_is_none_is_refused() -> None:
    chosen = hr.data.experimental.choose_from_datasets(
        [Dataset.range(2)], Dataset.from_tensors(np.int64(4))
    )
    with pytest.raises(InvalidArgumentError, match="there are 1 data sets, got the number 4"):
        elements(chosen)


def test_data_sets_to_choose_from_have_elements_of_one_kind() -> None:
    with pytest.raises(hr.errors.DTypeError, match="expected int64, got float32"):
        hr.data.experimental.sample_from_datasets([Dataset.range(2), Dataset.from_tensors(1.0)])


def test_records_that_cannot_be_read_may_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n3\nx,5\n6,7\n")
    data = hr.data.experimental.make_csv_dataset(
        str(tmp_path / "a.csv"),
        1,
        column_defaults=[hr.int32, hr.int32],
        num_epochs=1,
        shuffle=False,
        ignore_errors=True,
    )
    assert [(x["a"].item(), x["b"].item()) for x in elements(data)] == [(1, 2), (6, 7)]


def test_a_file_of_records_is_complete_when_the_operation_has_run(tmp_path: Path) -> None:
    path = str(tmp_path / "records.gz")
    writer = hr.data.experimental.TFRecordWriter(path, "GZIP")
    write = writer.write(Dataset.from_tensor_slices(["a", "b"]))
    with hr.Session() as session:
        for _ in range(2):
            session.run(write)
            assert elements(hr.data.TFRecordDataset(path, "GZIP")) == [b"a", b"b"]


def test_no_value_of_unknown_size_has_no_elements() -> None:
    data = Dataset.from_tensors([1.0, 2.0]).map(lambda x: (x, hr.where(x > 1.0), hr.constant("s")))
    iterator = data.make_initializable_iterator()
    optional = hr.data.experimental.get_next_as_optional(iterator)
    with hr.Session() as session:
        session.run(iterator.initializer)
        assert session.run(optional.has_value())
        assert not session.run(optional.has_value())
        with pytest.raises(InvalidArgumentError, match="does not have a value"):
            session.run(optional.get_value())


def test_frequencies_are_estimated_over_several_batches_of_classes() -> None:
    kinds = np.array([0, 0, 0, 1], np.int32)
    data = Dataset.from_tensor_slices(kinds).repeat(400)
    data = data.apply(
        hr.data.experimental.rejection_resample(lambda kind: kind, [0.5, 0.5], seed=1)
    )
    found = [kind.item() for kind, _ in elements(data)][200:]
    assert 0.4 < np.mean(found) < 0.6
