"""Functions of batches give the bits that functions of elements give, or are not used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import OutOfRangeError

pytestmark = pytest.mark.needs("backend-cpu")
Dataset = hr.data.Dataset

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (23, 6, 5), dtype=np.uint8)
FLOATS = RNG.normal(size=(23, 6, 5)).astype(np.float32)
LABELS = np.arange(23) % 4


def prepare(image: Any, label: Any) -> Any:
    x = hr.reshape(hr.cast(image, hr.float32) / 255.0, [6, 5, 1])
    return (hr.pad(x, [[1, 1], [0, 2], [0, 0]]) - 0.1307) / 0.3081, hr.one_hot(label, 4)


JOINED: dict[str, tuple[Any, Callable[..., Any]]] = {
    "prepare": ((IMAGES, LABELS), prepare),
    "arithmetic": (FLOATS, lambda x: hr.sqrt(hr.abs(x * 3.7 - 1.1)) / (x * x + 0.3)),
    "broadcast": (
        (FLOATS, LABELS),
        lambda x, n: hr.cast(n, hr.float32) * x + hr.constant(FLOATS[0, 0]),
    ),
    "rows": ((FLOATS, FLOATS[:, 0]), lambda x, row: hr.maximum(x, row) - hr.reshape(x, [6, 5])),
    "moves": (
        FLOATS,
        lambda x: hr.concat([hr.transpose(x), hr.transpose(-x, [1, 0])], 1),
    ),
    "choice": (FLOATS, lambda x: (hr.where(x > 0, x, -x), x > 0, hr.constant(3))),
    "scalars": (LABELS, lambda n: {"a": n * 2, "b": hr.stop_gradient(n)}),
}


def shifted(x: Any) -> Any:
    noise = hr.random_normal([6, 5], seed=2) * 0.5
    return hr.random_crop(hr.pad(x, [[1, 1], [2, 2]]) * 2.0, [5, 4], seed=3), x + noise


JOINED["random"] = (FLOATS, shifted)

# What makes it impossible, or inexact.
IN_PARTS: dict[str, Callable[..., Any]] = {
    "random": lambda x: x + hr.random_uniform(hr.shape(x), maxval=hr.reduce_sum(x)),
    "sum": lambda x: hr.reduce_sum(x, 0),
    "exp": lambda x: hr.exp(x),
    "matmul": lambda x: hr.matmul(x, x, transpose_b=True),
    "state": lambda x: hr.py_func(lambda a: a, [x], hr.float32),
    "check": lambda x: hr.check_numerics(x, "no"),
}


def fetched(dataset: Any) -> list[Any]:
    element = dataset.make_one_shot_iterator().get_next()
    found = []
    with hr.Session() as session:
        while True:
            try:
                found.append(session.run(element))
            except OutOfRangeError:
                return found


def kind(dataset: Any) -> str:
    return dataset.variant.op.attrs["kind"]


@pytest.mark.parametrize("calls", [None, 2])
@pytest.mark.parametrize("name", JOINED)
def test_batches_have_the_bits_of_their_elements(name: str, calls: int | None) -> None:
    data, function = JOINED[name]
    with hr.Graph().as_default():
        mapped = Dataset.from_tensor_slices(data).map(function, calls)
        whole = mapped.batch(4)
        assert kind(whole) == "map_batch"
        # Elements one by one: a transformation between keeps the function apart from the batch.
        parts = mapped.take(-1).batch(4)
        assert kind(parts) == "batch"
        assert whole.output_types == parts.output_types
        assert str(whole.output_shapes) == str(parts.output_shapes)
        left, right = fetched(whole), fetched(parts)
    assert len(left) == len(right) == 6
    for a, b in zip(left, right, strict=True):
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("name", IN_PARTS)
def test_other_functions_stay_functions_of_elements(name: str) -> None:
    with hr.Graph().as_default():
        dataset = Dataset.from_tensor_slices(FLOATS).map(IN_PARTS[name]).batch(4)
        assert kind(dataset) == "batch"


def test_shapes_that_are_not_known_keep_a_function_apart() -> None:
    with hr.Graph().as_default():
        rows = Dataset.from_generator(lambda: iter([[1], [2]]), hr.int64, [None])
        assert kind(rows.map(lambda x: x + 1).batch(2)) == "batch"
        variable = hr.Variable(np.float32(2))
        read = Dataset.from_tensor_slices(FLOATS).map(lambda x: x * variable)
        assert kind(read.batch(2)) == "batch"


def test_captured_tensors_are_values_of_when_the_iterator_starts() -> None:
    with hr.Graph().as_default():
        factor = hr.placeholder(hr.int64, [])
        dataset = Dataset.range(5).map(lambda x: x * factor).batch(2, drop_remainder=True)
        assert kind(dataset) == "map_batch"
        iterator = dataset.make_initializable_iterator()
        element = iterator.get_next()
        with hr.Session() as session:
            session.run(iterator.initializer, {factor: 10})
            assert session.run(element).tolist() == [0, 10]
            assert session.run(element).tolist() == [20, 30]
            with pytest.raises(OutOfRangeError, match="no elements left"):
                session.run(element)


def test_options_and_handles_between_a_function_and_batches_change_nothing() -> None:
    options = hr.data.Options()
    options.experimental_deterministic = True
    experimental = hr.data.experimental
    with hr.Graph().as_default():
        mapped = Dataset.range(4).map(lambda x: x * 2 + 1)
        spec = hr.TensorSpec([], hr.int64)
        chosen = mapped.with_options(options).with_options(hr.data.Options())
        for dataset in (chosen, experimental.from_variant(experimental.to_variant(mapped), spec)):
            batched = dataset.batch(2)
            assert batched.options() == dataset.options()
            element = batched.make_one_shot_iterator().get_next()
            again = batched.map(lambda x: x - 1).batch(2).make_one_shot_iterator().get_next()
            with hr.Session() as session:
                assert session.run(element).tolist() == [1, 3]
                assert session.run(element).tolist() == [5, 7]
                assert session.run(again).tolist() == [[0, 2], [4, 6]]
