"""Ragged tensors as elements; ``tables.json`` has what is of the same value in TensorFlow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import DTypeError, InvalidArgumentError, ShapeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset
ROWS = [[1, 2], [], [3, 4, 5]]


def _elements(dataset: Any) -> list[Any]:
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with hr.Session() as session:
        try:
            while True:
                found.append(session.run(element))
        except hr.errors.OutOfRangeError:
            return found


def test_rows_are_tensors_and_stay_ragged_for_batches() -> None:
    rows = Dataset.from_tensor_slices(hr.ragged.constant(ROWS))
    assert rows.element_spec == hr.RaggedTensorSpec([None], hr.int32, 0)
    assert [row.tolist() for row in _elements(rows)] == ROWS
    assert [b.to_list() for b in _elements(rows.batch(2))] == [ROWS[:2], ROWS[2:]]


@pytest.mark.parametrize("dtype", [hr.int32, hr.int64])
def test_splits_keep_their_dtype(dtype: Any) -> None:
    rows = hr.ragged.constant([[ROWS, []], [[[7]]]], row_splits_dtype=dtype)
    dataset = Dataset.from_tensor_slices(rows).batch(2).unbatch().batch(1)
    assert dataset.element_spec.facts()[3] == dtype
    found = _elements(dataset)
    assert [b.to_list() for b in found] == [[[ROWS, []]], [[[[7]]]]]
    assert {s.dtype for b in found for s in b.nested_row_splits} == {np.dtype(dtype.numpy)}


def test_batches_of_batches_of_different_sizes_are_ragged() -> None:
    nested = Dataset.range(4).map(lambda x: hr.ragged.range([x, 1])).batch(3).batch(2)
    (found,) = _elements(nested)
    assert found.to_list() == [[[[], [0]], [[0], [0]], [[0, 1], [0]]], [[[0, 1, 2], [0]]]]


def test_a_structure_states_ragged_elements() -> None:
    rows = Dataset.from_tensors({"r": hr.ragged.constant(ROWS)})
    assert hr.data.get_output_classes(rows)["r"] == hr.RaggedTensorSpec([3, None], hr.int32)
    structure = hr.data.experimental.RaggedTensorStructure(hr.int32, [3, None], 1)
    assert rows.element_spec == {"r": structure}
    iterator = hr.data.Iterator.from_structure(
        rows.output_types, rows.output_shapes, output_classes=rows.output_classes
    )
    element = iterator.get_next()["r"]
    assert element.shape.as_list() == [3, None]
    with hr.Session() as session:
        session.run(iterator.make_initializer(rows))
        assert session.run(element).to_list() == ROWS


def test_an_iterator_of_tensors_takes_no_ragged_ones() -> None:
    iterator = hr.data.Iterator.from_structure(hr.int32, [3, None])
    with pytest.raises(DTypeError, match="make_initializer"):
        iterator.make_initializer(Dataset.from_tensors(hr.ragged.constant(ROWS)))


def test_states_of_functions_may_be_ragged() -> None:
    def longer(state: Any, x: Any) -> Any:
        return hr.concat([state, hr.expand_dims(hr.ragged.range(x + 1).values, 0)], 0)

    start = hr.ragged.constant([[7]], hr.int64)
    made = Dataset.range(2).reduce(start, longer)
    with hr.Session() as session:
        assert session.run(made).to_list() == [[7], [0], [0, 1]]


def test_a_position_holds_ragged_elements(tmp_path: Path) -> None:
    rows = [[i] * (i % 3) for i in range(8)]
    dataset = Dataset.from_tensor_slices(hr.ragged.constant(rows)).batch(2).shuffle(3, seed=1)
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    position = hr.data.experimental.make_saveable_from_iterator(iterator)
    saver = hr.train.Saver([position])
    with hr.Session() as session:
        session.run(iterator.initializer)
        session.run(element)
        path = saver.save(session, str(tmp_path / "p"))
        expected = [session.run(element).to_list() for _ in range(3)]
        saver.restore(session, path)
        assert [session.run(element).to_list() for _ in range(3)] == expected


def test_values_of_other_shapes_are_not_batched() -> None:
    def inner(x: Any) -> Any:
        return hr.RaggedTensor.from_row_splits(hr.zeros(hr.stack([2, x + 1])), [0, 2])

    with pytest.raises(InvalidArgumentError, match="different shapes cannot be batched"):
        _elements(Dataset.range(2).map(inner).batch(2))


def test_different_numbers_of_rows_are_refused() -> None:
    ragged = hr.ragged.constant(ROWS)
    with pytest.raises(ShapeError, match="different numbers of rows"):
        Dataset.from_tensor_slices((ragged, [1, 2]))
    unknown = hr.placeholder_with_default([1, 2], [None])
    dataset = Dataset.from_tensor_slices((ragged, unknown))
    iterator = dataset.make_initializable_iterator()
    with hr.Session() as session, pytest.raises(InvalidArgumentError, match="numbers of rows"):
        session.run(iterator.initializer)


def test_ragged_elements_are_not_padded() -> None:
    dataset = Dataset.from_tensors(hr.ragged.constant(ROWS))
    with pytest.raises(DTypeError, match="dense tensors only"):
        dataset.padded_batch(2, [None, None])
