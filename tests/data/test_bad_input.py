"""What goes wrong in pipelines: one clear error of the right family, and what follows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    DataLossError,
    DTypeError,
    GraphError,
    HeadraceError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
    ShapeError,
    UnimplementedError,
    UnknownError,
)

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset
experimental = hr.data.experimental


def _raises(error: Exception) -> Callable[[], Any]:
    def numbers() -> Any:
        yield 1
        raise error

    return numbers


def _yields(*items: Any) -> Callable[[], Any]:
    return lambda: iter(items)


def events(dataset: Any, count: int = 8) -> list[Any]:
    """The elements, and the errors that stand in the place of some."""
    iterator = dataset.make_initializable_iterator()
    element = iterator.get_next()
    found: list[Any] = []
    with hr.Session() as session:
        session.run(iterator.initializer)
        for _ in range(count):
            try:
                found.append(session.run(element).tolist())
            except OutOfRangeError:
                found.append("end")
            except HeadraceError as error:
                found.append(error)
    return found


def test_a_generator_that_raises_is_told_with_its_line_and_has_ended() -> None:
    first, error, *later = events(Dataset.from_generator(_raises(ValueError("no")), hr.int64), 4)
    assert first == 1
    assert isinstance(error, InvalidArgumentError)
    assert "the generator 'numbers' failed after 1 elements: ValueError: no" in str(error)
    assert "raise error" in str(error)
    assert "the data set was made at" in str(error)
    assert "test_bad_input.py" in str(error)
    assert isinstance(error.__cause__, HeadraceError | ValueError)
    assert later == ["end", "end"]


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (KeyError("key"), UnknownError),
        (TypeError("type"), InvalidArgumentError),
        (NotImplementedError("later"), UnimplementedError),
        (NotFoundError("gone"), NotFoundError),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_what_a_generator_raises_decides_the_family(error: Exception, family: type) -> None:
    for prefetch in (0, 2):
        dataset = Dataset.from_generator(_raises(error), hr.int64).prefetch(prefetch)
        assert isinstance(events(dataset, 2)[1], family)


@pytest.mark.parametrize(
    ("item", "types", "shapes", "match"),
    [
        ("text", hr.int64, None, "yielded 'text' where int64 was expected"),
        (np.float32(1.5), hr.int64, None, "yielded float32 where int64 was expected"),
        ([1, 2], hr.int64, [3], r"yielded shape \[2\] where \[3\] was expected"),
        ((1, 2), hr.int64, [], r"yielded shape \[2\] where \[\] was expected"),
        (1, (hr.int64, hr.int64), None, r"expected the structure \(\*, \*\)"),
        ({"a": 1}, {"b": hr.int64}, None, "expected the structure {'b': "),
    ],
)
def test_what_a_generator_may_not_yield(item: Any, types: Any, shapes: Any, match: str) -> None:
    iterator = Dataset.from_generator(_yields(item), types, shapes).make_one_shot_iterator()
    element = iterator.get_next()
    with hr.Session() as session, pytest.raises(InvalidArgumentError, match=match):
        session.run(element)


def test_iteration_goes_on_after_an_element_that_fails() -> None:
    def even(x: Any) -> Any:
        with hr.control_dependencies([hr.assert_equal(x % 2, hr.constant(0, hr.int64))]):
            return hr.identity(x)

    plain = Dataset.range(5)
    for dataset in (
        plain.map(even),
        plain.map(even, num_parallel_calls=2),
        plain.map(even).prefetch(2),
    ):
        found = events(dataset, 6)
        kinds = ["error" if isinstance(item, InvalidArgumentError) else item for item in found]
        assert kinds == [0, "error", 2, "error", 4, "end"]
        assert "test_bad_input.py" in str(found[1])
        assert events(dataset.apply(experimental.ignore_errors()), 4) == [0, 2, 4, "end"]


def _even_or_raise(x: Any) -> Any:
    if x % 2:
        raise ValueError("odd")
    return x


def _even(x: Any) -> Any:
    made = hr.py_func(_even_or_raise, [x], hr.int64)
    made.set_shape([])
    return made


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.map(_even),
        lambda d: d.map(_even, num_parallel_calls=2),
        lambda d: d.map(_even).prefetch(2),
        lambda d: d.map(_even).shuffle(1),
        lambda d: d.map(_even).cache(),
        lambda d: d.map(lambda x: hr.random_uniform([], 0, 1, hr.int64) + _even(x)),
        lambda d: d.filter(lambda x: _even(x) > -1),
        lambda d: d.flat_map(lambda x: Dataset.from_tensors(_even(x))),
        lambda d: d.interleave(lambda x: Dataset.from_tensors(x).map(_even), cycle_length=1),
        lambda d: d.apply(experimental.scan(0, lambda s, x: (s, _even(x)))),
        lambda d: d.apply(experimental.take_while(lambda x: _even(x) > -1)),
    ],
    ids=range(11),
)
def test_iteration_goes_on_after_a_python_function_that_fails(make: Any) -> None:
    dataset = make(Dataset.range(5))
    found = events(dataset, 6)
    kinds = ["error" if isinstance(item, InvalidArgumentError) else item for item in found]
    assert kinds == [0, "error", 2, "error", 4, "end"]
    assert events(dataset.apply(experimental.ignore_errors()), 4) == [0, 2, 4, "end"]


def test_batches_of_different_shapes() -> None:
    found = events(Dataset.range(4).map(hr.range).batch(2), 3)
    assert isinstance(found[0], InvalidArgumentError)
    assert "element 0 has shape [0], element 1 has [1]; padded_batch" in str(found[0])
    assert isinstance(found[1], InvalidArgumentError)
    assert found[2] == "end"
    found = events(Dataset.range(3).map(hr.range).padded_batch(3, [1]), 2)
    assert isinstance(found[0], DataLossError)
    assert "smaller size" in str(found[0])


REFUSALS: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "batch": (lambda: Dataset.range(3).batch(0), InvalidArgumentError, "greater than zero"),
    "shuffle": (lambda: Dataset.range(3).shuffle(0), InvalidArgumentError, "greater than zero"),
    "shard": (lambda: Dataset.range(3).shard(2, 2), InvalidArgumentError, "below num_shards"),
    "shards": (lambda: Dataset.range(3).shard(0, 0), InvalidArgumentError, "num_shards must be"),
    "prefetch": (lambda: Dataset.range(3).prefetch(-2), InvalidArgumentError, "must be >= 0"),
    "window": (lambda: Dataset.range(3).window(0), InvalidArgumentError, "size must be greater"),
    "cycle": (
        lambda: Dataset.range(3).interleave(Dataset.range, 0),
        InvalidArgumentError,
        "cycle_length must be",
    ),
    "calls": (lambda: Dataset.range(3).map(abs, 0), InvalidArgumentError, "num_parallel_calls"),
    "range": (lambda: Dataset.range(1, 2, 3, 4), InvalidArgumentError, "takes a stop"),
    "rows": (lambda: Dataset.from_tensor_slices(([1], [1, 2])), ShapeError, "different numbers"),
    "scalar": (lambda: Dataset.from_tensor_slices(3), ShapeError, "need a first axis"),
    "zip list": (lambda: Dataset.zip([Dataset.range(3)]), DTypeError, "A list is none"),
    "zip": (lambda: Dataset.zip(3), DTypeError, "nested structure of `Dataset`"),
    "filter": (lambda: Dataset.range(3).filter(lambda x: x), ValueError, "bool scalar"),
    "filter shape": (
        lambda: Dataset.range(3).batch(2).filter(lambda x: x > 0),
        ShapeError,
        "return a scalar",
    ),
    "no function": (lambda: Dataset.range(3).map(3), ValueError, "map needs a function"),
    "nothing": (lambda: Dataset.range(3).map(lambda x: None), DTypeError, "the function of map"),
    "no data set": (
        lambda: Dataset.range(3).flat_map(lambda x: x),
        DTypeError,
        "must return a data set",
    ),
    "types": (
        lambda: Dataset.range(3).concatenate(Dataset.from_tensors(1.0)),
        DTypeError,
        "expected int64, got float32",
    ),
    "structures": (
        lambda: Dataset.range(3).concatenate(Dataset.range(3).enumerate()),
        GraphError,
        "expected the structure",
    ),
    "structures as dtypes": (
        lambda: Dataset.range(3).concatenate(Dataset.range(3).enumerate()),
        TypeError,
        "expected the structure",
    ),
    "no state": (
        lambda: Dataset.range(3).reduce(0, lambda s, x: ()),
        InvalidArgumentError,
        "the state of reduce: expected the structure",
    ),
    "padded shape of a matrix": (
        lambda: Dataset.from_tensors([3]).padded_batch(2, hr.constant([[4]])),
        ShapeError,
        "padded_shapes must be vectors",
    ),
    "padded shape": (
        lambda: Dataset.range(3).padded_batch(2, [None]),
        ShapeError,
        "do not fit into",
    ),
    "padding value": (
        lambda: Dataset.range(3).padded_batch(2, [], 1.5),
        TypeError,
        "int64",
    ),
    "generator": (
        lambda: Dataset.from_generator(iter([1]), hr.int64),
        DTypeError,
        "must be callable",
    ),
    "state": (
        lambda: Dataset.range(3).reduce(0, lambda s, x: x),
        DTypeError,
        "the state of reduce",
    ),
    "unique": (
        lambda: Dataset.from_tensors(1.0).apply(experimental.unique()),
        DTypeError,
        "single component",
    ),
    "apply": (lambda: Dataset.range(3).apply(lambda d: 3), DTypeError, "must return a data set"),
    "buckets": (
        lambda: experimental.bucket_by_sequence_length(len, [3], [2]),
        ValueError,
        "must equal",
    ),
    "lengths": (
        lambda: Dataset.from_tensors([1]).apply(
            experimental.bucket_by_sequence_length(lambda x: 1.5, [3], [2, 2])
        ),
        DTypeError,
        "must return a whole number, got float32",
    ),
    "key": (
        lambda: Dataset.range(3).apply(
            experimental.group_by_window(lambda x: 1.0, lambda k, d: d, window_size=2)
        ),
        ValueError,
        "`key_func`",
    ),
    "sizes": (
        lambda: experimental.group_by_window(lambda x: x, lambda k, d: d),
        ValueError,
        "exactly one",
    ),
    "sloppy": (
        lambda: Dataset.range(2).apply(
            experimental.parallel_interleave(Dataset.range, 2, sloppy=[True])
        ),
        ValueError,
        "sloppy must be a scalar",
    ),
    "arrays in batches": (
        lambda: Dataset.range(2).map(lambda x: hr.TensorArray(hr.int32, 3)).batch(2),
        TypeError,
        "TensorArray cannot be batched",
    ),
    "rows of arrays": (
        lambda: Dataset.range(2).map(lambda x: hr.TensorArray(hr.int32, 3)).unbatch(),
        TypeError,
        "TensorArray has no rows",
    ),
    "optionals in batches": (
        lambda: Dataset.range(2).map(experimental.Optional.from_value).batch(2),
        TypeError,
        "Optional cannot be batched",
    ),
    "rows of optionals": (
        lambda: Dataset.range(2).map(experimental.Optional.from_value).unbatch(),
        TypeError,
        "unbatch: an Optional has no rows",
    ),
    "rows of a data set": (
        lambda: Dataset.range(2).window(2).unbatch(),
        TypeError,
        "unbatch: elements that are data sets have no rows",
    ),
    "a batch of data sets as one": (
        lambda: Dataset.range(4).window(2).batch(2).flat_map(lambda w: w),
        TypeError,
        "the function of flat_map: expected a data set, got a batch of them",
    ),
    "a transformation of a batch of data sets": (
        lambda: Dataset.range(4).window(2).batch(2).map(lambda w: w.batch(2)),
        TypeError,
        "batch: expected a data set, got a batch of them",
    ),
    "optionals of other values": (
        lambda: (
            Dataset.range(2)
            .map(experimental.Optional.from_value)
            .concatenate(Dataset.range(2).map(lambda x: experimental.Optional.from_value(1.0)))
        ),
        TypeError,
        "expected int64, got float32",
    ),
    "optionals and tensors": (
        lambda: (
            Dataset.range(2).map(experimental.Optional.from_value).concatenate(Dataset.range(2))
        ),
        TypeError,
        r"concatenate: expected OptionalSpec\(",
    ),
    "an optional without a data set": (
        lambda: experimental.Optional.none_from_structure(
            hr.data.DatasetSpec(hr.TensorSpec([], hr.int64))
        ),
        TypeError,
        "cannot be made without a value",
    ),
    "sparse rows": (lambda: Dataset.from_sparse_tensor_slices([1]), TypeError, "SparseTensor"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_when_the_graph_is_built(name: str) -> None:
    build, family, match = REFUSALS[name]
    with pytest.raises(family, match=match):
        build()


@pytest.mark.parametrize(
    "last", [lambda d: d, lambda d: d.repeat().prefetch(1)], ids=["alone", "inside"]
)
@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda n: Dataset.range(3).batch(n), "batch_size must be"),
        (lambda n: Dataset.range(3).shuffle(n), "buffer_size must be"),
        (lambda n: Dataset.range(3).shard(n, 0), "num_shards must be"),
        (lambda n: Dataset.range(3).window(n), "size must be"),
        (lambda n: Dataset.range(0, 3, n), "step must not be zero"),
        (lambda n: Dataset.range(3).interleave(Dataset.range, n), "cycle_length must be"),
    ],
)
def test_refused_when_the_iterator_starts(build: Any, match: str, last: Any) -> None:
    number = hr.placeholder(hr.int64, [])
    iterator = last(build(number)).make_initializable_iterator()
    with hr.Session() as session:
        with pytest.raises(InvalidArgumentError, match=match):
            session.run(iterator.initializer, {number: 0})
        session.run(iterator.initializer, {number: 1})


def test_files_that_do_not_match(tmp_path: Any) -> None:
    for pattern, family in (
        (tmp_path / "*.txt", InvalidArgumentError),
        ("/nowhere/*", NotFoundError),
    ):
        iterator = Dataset.list_files(str(pattern)).make_initializable_iterator()
        with hr.Session() as session, pytest.raises(family, match=r"No (files|such)"):
            session.run(iterator.initializer)


def _until(end: int) -> Callable[[Any], Any]:
    def until(x: Any) -> Any:
        if x == end:
            raise StopIteration
        return x

    def made(x: Any) -> Any:
        number = hr.py_func(until, [x], hr.int64)
        number.set_shape([])
        return number

    return made


@pytest.mark.parametrize("calls", [None, 1, 3])
def test_a_function_of_map_may_end_the_elements(calls: int | None) -> None:
    dataset = Dataset.range(5).map(_until(3), num_parallel_calls=calls)
    assert events(dataset, 6) == [0, 1, 2, "end", "end", "end"]
    assert events(dataset.batch(2), 4) == [[0, 1], [2], "end", "end"]
    assert events(dataset.repeat(2), 7) == [0, 1, 2, 0, 1, 2, "end"]
    assert events(dataset.cache().repeat(2), 7) == [0, 1, 2, 0, 1, 2, "end"]
    assert events(dataset.concatenate(Dataset.range(1)), 5) == [0, 1, 2, 0, "end"]
    assert events(dataset.prefetch(2).shuffle(1), 5) == [0, 1, 2, "end", "end"]
    ends = Dataset.range(3).flat_map(lambda x: Dataset.from_tensors(x).map(_until(1)))
    assert events(ends, 4) == [0, 2, "end", "end"]


@pytest.mark.parametrize("calls", [None, 2])
def test_a_position_behind_the_end_that_a_function_made(calls: int | None, tmp_path: Path) -> None:
    iterator = Dataset.range(5).map(_until(1), calls).make_initializable_iterator()
    element = iterator.get_next()
    saver = hr.train.Saver([experimental.make_saveable_from_iterator(iterator)])
    with hr.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element) == 0
        with pytest.raises(OutOfRangeError, match="has no elements left"):
            session.run(element)
        path = saver.save(session, str(tmp_path / "p"))
        session.run(iterator.initializer)
        saver.restore(session, path)
        with pytest.raises(OutOfRangeError, match="has no elements left"):
            session.run(element)


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d.filter(lambda x: _until(2)(x) > -1),
        lambda d: d.flat_map(lambda x: Dataset.from_tensors(_until(2)(x))),
        lambda d: d.apply(experimental.scan(0, lambda s, x: (s, _until(2)(x)))),
        lambda d: d.apply(experimental.map_and_batch(_until(2), 1)),
        lambda d: d.apply(experimental.take_while(lambda x: _until(2)(x) > -1)),
        lambda d: d.apply(experimental.group_by_window(_until(2), lambda k, g: g, window_size=1)),
    ],
    ids=range(6),
)
def test_other_functions_do_not_end_the_elements(make: Any) -> None:
    found = events(make(Dataset.range(4)), 4)
    assert isinstance(found[2], InvalidArgumentError)
    assert "raised OutOfRangeError" in str(found[2])
    assert str(found[3]).strip("[]") == "3"


def test_a_batch_of_mapped_elements_fails_as_a_whole() -> None:
    for dataset in (
        Dataset.range(5).map(_even).batch(2),
        Dataset.range(5).map(_even, 2).batch(2),
        Dataset.range(5).apply(experimental.map_and_batch(_even, 2, num_parallel_calls=2)),
    ):
        kinds = [k if isinstance(k, list | str) else "error" for k in events(dataset, 4)]
        assert kinds == ["error", "error", [4], "end"]
    padded = Dataset.range(4).map(_even).padded_batch(2, [])
    kinds = [k if isinstance(k, list | str) else "error" for k in events(padded, 4)]
    assert kinds == ["error", "error", "end", "end"]


def test_windows_without_what_failed_do_not_fail() -> None:
    numbers = Dataset.range(7).map(_even)
    every = numbers.window(2, 2, stride=2).flat_map(lambda w: w.batch(2))
    assert events(every, 5) == [[0, 2], [2, 4], [4, 6], [6], "end"]
    pairs = events(numbers.window(2).flat_map(lambda w: w.batch(2)), 5)
    assert [k if isinstance(k, list | str) else "error" for k in pairs] == [
        *["error"] * 3,
        [6],
        "end",
    ]
    # What lies between windows may fail.
    gaps = numbers.window(1, 4).flat_map(lambda w: w.batch(1))
    assert events(gaps, 3) == [[0], [4], "end"]


@pytest.mark.parametrize("calls", [None, 2])
def test_a_data_set_that_cannot_be_made_takes_a_turn(calls: int | None) -> None:
    dataset = Dataset.range(5).interleave(
        lambda x: Dataset.from_tensors(_even(x)).repeat(2), 2, num_parallel_calls=calls
    )
    kinds = [k if isinstance(k, int | str) else "error" for k in events(dataset, 9)]
    assert kinds == [0, "error", 0, 2, "error", 2, 4, 4, "end"]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda x: Dataset.range(4).batch(x), "batch_size must be greater than zero"),
        (lambda x: Dataset.range(4).shuffle(x), "buffer_size must be greater than zero"),
        (lambda x: Dataset.range(4).window(x).flat_map(lambda w: w), "size must be greater"),
        (lambda x: Dataset.range(4).shard(x, 0), "num_shards must be >= 1"),
        (lambda x: Dataset.range(4).prefetch(x - 5), "prefetch"),
        (lambda x: Dataset.range(0, 4, x), "step must not be zero"),
        (lambda x: Dataset.range(4).map(abs, hr.cast(x, hr.int32)), "num_parallel_calls"),
        (lambda x: Dataset.range(4).interleave(Dataset.range, x), "cycle_length must be > 0"),
        (lambda x: Dataset.range(4).batch(x).repeat(2).take(3), "batch_size must be greater"),
    ],
    ids=range(9),
)
def test_arguments_of_data_sets_that_functions_make_are_checked(make: Any, match: str) -> None:
    pair = experimental.group_by_window(lambda x: x, lambda k, g: make(k), 1)
    for dataset in (
        Dataset.range(2).flat_map(make),
        Dataset.range(2).interleave(make, 2),
        Dataset.range(2).interleave(make, 2, num_parallel_calls=2),
        Dataset.range(2).map(make).flat_map(lambda d: d),
        Dataset.range(2).apply(pair),
    ):
        first = events(dataset, 1)[0]
        assert isinstance(first, InvalidArgumentError)
        assert match in str(first)
