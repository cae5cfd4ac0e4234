"""Mutable tables are saved and restored with the variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace import errors

pytestmark = pytest.mark.needs("backend-cpu", "train")


def dense(**options: Any) -> Any:
    default = np.zeros(2, np.float32)
    return hr.lookup.experimental.DenseHashTable(
        hr.int64, hr.float32, default, empty_key=-1, deleted_key=-2, name="dense", **options
    )


def words(**options: Any) -> Any:
    return hr.lookup.MutableHashTable(hr.string, hr.int64, -1, name="words", **options)


FILLED = [
    (words, ["a", "b"], np.array([1, 2])),
    (dense, np.array([5, 6]), np.array([[1, 2], [3, 4]], np.float32)),
]


@pytest.mark.parametrize("executor", ["plain", "plan"])
@pytest.mark.parametrize(("make", "keys", "values"), FILLED, ids=["words", "dense"])
def test_a_restored_table_has_what_was_saved_alone(
    make: Any, keys: Any, values: Any, executor: str, tmp_path: Path
) -> None:
    config = hr.Config(executor=executor)
    for saves in (True, False):
        with hr.Graph().as_default(), hr.Session(config=config) as session:
            variable = hr.Variable([1.0, 2.0], name="v")
            table = make()
            saver = hr.train.Saver()
            if saves:
                session.run([variable.initializer, table.insert(keys, values)])
                saver.save(session, tmp_path / "model")
                continue
            session.run(table.insert(np.array(keys)[:1], values[1:]))
            session.run(
                table.insert(np.array(["x"]) if make is words else np.array([9]), values[:1])
            )
            saver.restore(session, tmp_path / "model")
            found = session.run([*table.export(), variable])
            wanted = np.array([k.encode() for k in keys], object) if make is words else keys
            np.testing.assert_array_equal(found[0], wanted)
            np.testing.assert_array_equal(found[1], values)
            np.testing.assert_array_equal(found[2], [1, 2])
    names = [name for name, _ in hr.train.list_variables(tmp_path / "model")]
    assert names == sorted([f"{table.name}-keys", f"{table.name}-values", "v"])


def test_an_empty_table_is_saved_too_and_names_are_unique(tmp_path: Path) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        first = words()
        with hr.name_scope("inner"):
            second = words()
        saver = hr.train.Saver()
        session.run(second.insert(["k"], np.array([3])))
        saver.save(session, tmp_path / "model")
        session.run([first.insert(["k"], np.array([4])), second.remove(hr.constant(["k"]))])
        saver.restore(session, tmp_path / "model")
        assert session.run([first.size(), second.size()]) == [0, 1]
    names = [name for name, _ in hr.train.list_variables(tmp_path / "model")]
    assert "words-keys" in names
    assert "inner/words-keys" in names


def test_tables_that_ask_for_it_are_left_out() -> None:
    with hr.Graph().as_default() as graph:
        words(checkpoint=False)
        dense(checkpoint=False)
        assert graph.get_collection(hr.GraphKeys.SAVEABLE_OBJECTS) == []


def test_a_table_of_tensorflow_is_read_with_its_empty_buckets(tmp_path: Path) -> None:
    """TensorFlow 1.15 saves the keys of a dense table as [buckets, 1], of which most are none."""
    keys = np.array([[-1], [5], [-2], [6]])
    values = np.array([[0, 0], [1, 2], [9, 9], [3, 4]], np.float32)
    with hr.Graph().as_default(), hr.Session() as session:
        saved = {"dense-keys": hr.Variable(keys), "dense-values": hr.Variable(values)}
        session.run(hr.global_variables_initializer())
        hr.train.Saver(saved).save(session, tmp_path / "model")
    with hr.Graph().as_default(), hr.Session() as session:
        table = dense()
        hr.train.Saver().restore(session, tmp_path / "model")
        found = session.run(table.export())
    np.testing.assert_array_equal(found[0], [5, 6])
    np.testing.assert_array_equal(found[1], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("keys", "values", "error", "match"),
    [
        (["a"], [1, 2], errors.ShapeError, r"expects values of shape \[1\], got \[2\]"),
        (["a"], [[1]], errors.ShapeError, r"expects values of shape \[1\], got \[1, 1\]"),
        ([1], [1], errors.DTypeError, "has keys string, got int64"),
        (["a"], [1.0], errors.DTypeError, "has values int64, got float"),
    ],
)
def test_parts_that_do_not_fit_leave_the_table_as_it_was(
    keys: Any, values: Any, error: type[Exception], match: str
) -> None:
    with hr.Graph().as_default() as graph, hr.Session() as session:
        table = words()
        session.run(table.insert(["kept"], np.array([7])))
        first, second = graph.get_collection(hr.GraphKeys.SAVEABLE_OBJECTS)
        given = [hr.constant(np.array(part)) for part in (keys, values)]
        session.run(first.restore(given[0]))
        assert session.run(table.size()) == 1, "half of a table changes nothing"
        with pytest.raises(error, match=match):
            session.run(second.restore(given[1]))
        assert session.run(table.lookup(["kept"])).tolist() == [7]


def test_static_tables_and_other_parts_are_refused() -> None:
    from headrace.ops.lookup import table_restore

    with hr.Graph().as_default(), hr.Session() as session:
        filled = hr.lookup.KeyValueTensorInitializer(["a"], [1])
        static = hr.lookup.StaticHashTable(filled, -1)
        session.run(static.init)
        with pytest.raises(errors.ResourceStateError, match="restore table 'hash_table': it is"):
            session.run(table_restore(static.handle, ["a"], "keys"))
        with pytest.raises(ValueError, match="what must be 'keys' or 'values', got 'rows'"):
            table_restore(static.handle, ["a"], "rows")
