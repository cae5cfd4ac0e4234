"""Iterators: the four kinds, what they raise, and threads that share one."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    DTypeError,
    FailedPreconditionError,
    GraphError,
    InvalidArgumentError,
    NotFoundError,
    OutOfRangeError,
)
from headrace_data.errors import NoInitializerError, UnknownOptionError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset


def rest(session: Any, element: Any) -> list[Any]:
    found = []
    while True:
        try:
            found.append(session.run(element))
        except OutOfRangeError:
            return found


def test_a_one_shot_iterator_starts_by_itself_and_stays_at_its_end() -> None:
    element = Dataset.range(3).make_one_shot_iterator().get_next()
    with hr.Session() as session:
        assert rest(session, element) == [0, 1, 2]
        with pytest.raises(OutOfRangeError, match="has no elements left"):
            session.run(element)


def test_sessions_have_positions_of_their_own() -> None:
    element = Dataset.range(3).make_one_shot_iterator().get_next()
    with hr.Session() as one, hr.Session() as other:
        assert one.run(element) == 0
        assert one.run(element) == 1
        assert other.run(element) == 0


def test_placeholders_are_fed_to_the_initializer() -> None:
    count = hr.placeholder(hr.int64, [])
    values = hr.placeholder(hr.float32, [None])
    dataset = Dataset.from_tensor_slices(values).map(lambda x: x + hr.cast(count, hr.float32))
    iterator = dataset.take(count).make_initializable_iterator()
    element = iterator.get_next()
    given = np.array([1.0, 2.0, 3.0], np.float32)
    with hr.Session() as session:
        session.run(iterator.initializer, {count: 2, values: given})
        # What was fed belongs to the caller, who may change it.
        given[:] = 9
        assert rest(session, element) == [3.0, 4.0]
        session.run(iterator.initializer, {count: 1, values: [7.0]})
        assert rest(session, element) == [8.0]


def test_functions_read_variables_when_they_are_called() -> None:
    factor = hr.Variable(np.int64(2))
    iterator = Dataset.range(1, 4).map(lambda x: x * factor).make_initializable_iterator()
    element = iterator.get_next()
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(iterator.initializer)
        assert session.run(element) == 2
        session.run(factor.assign(np.int64(10)))
        assert rest(session, element) == [20, 30]


def test_an_iterator_of_a_structure_takes_one_data_set_after_the_other() -> None:
    iterator = hr.data.Iterator.from_structure((hr.int64, hr.float32), ([], [None]))
    one = Dataset.range(2).map(lambda x: (x, hr.zeros([1])))
    other = Dataset.range(1).map(lambda x: (x + 5, hr.ones([3])))
    starts = [iterator.make_initializer(d) for d in (one, other)]
    number, row = iterator.get_next()
    assert row.shape.as_list() == [None]
    with hr.Session() as session:
        session.run(starts[0])
        assert rest(session, number) == [0, 1]
        session.run(starts[1])
        assert session.run([number, row])[1].tolist() == [1.0, 1.0, 1.0]
        session.run(starts[0])
        assert session.run(number) == 0


def test_a_string_handle_chooses_the_iterator_of_a_step() -> None:
    handle = hr.placeholder(hr.string, [])
    element = hr.data.Iterator.from_string_handle(handle, hr.int64, []).get_next()
    training = Dataset.range(100).make_one_shot_iterator()
    checking = Dataset.range(500, 600).make_initializable_iterator()
    other = Dataset.from_tensors(1.0).make_one_shot_iterator()
    with hr.Session() as session:
        train, check, wrong = session.run(
            [training.string_handle(), checking.string_handle(), other.string_handle()]
        )
        session.run(checking.initializer)
        chosen = [session.run(element, {handle: h}) for h in (train, check, train, check)]
        assert chosen == [0, 500, 1, 501]
        with pytest.raises(
            InvalidArgumentError, match=r"has elements of float32\[\], and .* int64"
        ):
            session.run(element, {handle: wrong})
        gone = "headrace-iterator-0-0"
        with pytest.raises(NotFoundError, match=f"no iterator has the string handle '{gone}'"):
            session.run(element, {handle: gone})
        for junk in (b"nobody", b"", b"\xff"):
            with pytest.raises(InvalidArgumentError, match="is no string handle of an iterator"):
                session.run(element, {handle: junk})


def test_iterators_of_a_shared_name_are_one_in_a_container() -> None:
    with hr.container("iterators-of-a-test"):
        iterator = Dataset.range(5).make_initializable_iterator(shared_name="shared")
    element = iterator.get_next()
    with hr.Session() as session:
        session.run(iterator.initializer)
        assert session.run(element) == 0
    with hr.Session() as session:
        assert session.run(element) == 1
    hr.reset_containers("iterators-of-a-test")
    with hr.Session() as session, pytest.raises(FailedPreconditionError, match="initialized"):
        session.run(element)


def test_threads_get_each_element_once() -> None:
    dataset = Dataset.range(2000).map(lambda x: x * 1, num_parallel_calls=2).prefetch(4)
    element = dataset.make_one_shot_iterator().get_next()
    found: list[list[Any]] = [[] for _ in range(8)]
    with hr.Session() as session:
        threads = [
            threading.Thread(target=lambda into: into.extend(rest(session, element)), args=(into,))
            for into in found
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
    assert sorted(int(x) for part in found for x in part) == list(range(2000))


def test_fetched_elements_belong_to_the_caller() -> None:
    data = np.arange(6.0).reshape(3, 2)
    for dataset in (
        Dataset.from_tensor_slices(data).repeat(2),
        Dataset.from_tensors(data).repeat(2),
        Dataset.from_tensor_slices(data).map(lambda x: x + 1).cache().repeat(2),
    ):
        element = dataset.make_one_shot_iterator().get_next()
        with hr.Session() as session:
            first = session.run(element)
            kept = first.copy()
            first[:] = -1
            again = rest(session, element)
            assert any(np.array_equal(kept, other) for other in again)
            assert not any((other == -1).any() for other in again)


def test_refusals() -> None:
    dataset = Dataset.range(3)
    with pytest.raises(NoInitializerError, match="has no initializer"):
        _ = dataset.make_one_shot_iterator().initializer
    with pytest.raises(ValueError, match="has no initializer"):
        _ = hr.data.Iterator.from_structure(hr.int64).initializer
    with pytest.raises(GraphError, match="Cannot capture a placeholder"):
        Dataset.from_tensors(hr.placeholder(hr.int32, [])).make_one_shot_iterator()
    count = hr.Variable(np.int64(3))
    with pytest.raises(GraphError, match="Cannot capture a stateful node"):
        dataset.map(lambda x: x + count).make_one_shot_iterator()
    iterator = hr.data.Iterator.from_structure(hr.int64, [])
    with pytest.raises(DTypeError, match="expected output types"):
        iterator.make_initializer(Dataset.from_tensors(1.0))
    with pytest.raises(DTypeError, match="expected output shapes"):
        iterator.make_initializer(dataset.batch(2))
    with pytest.raises(GraphError, match="expected the structure"):
        iterator.make_initializer(Dataset.zip((dataset, dataset)))
    with pytest.raises(RuntimeError, match="is a description"):
        list(dataset)
    with pytest.raises(AttributeError, match="has no option 'speed'"):
        hr.data.Options().speed = 3  # type: ignore[attr-defined]
    with pytest.raises(UnknownOptionError, match="there are experimental_deterministic"):
        hr.data.Options().speed = 3  # type: ignore[attr-defined]
    with pytest.raises(NotImplementedError, match="experimental_stats: pipelines gather no"):
        hr.data.Options().experimental_stats = object()  # type: ignore[attr-defined]
    with pytest.raises(GraphError, match="another graph"), hr.Graph().as_default():
        dataset.make_one_shot_iterator()


def test_options_are_those_of_all_data_sets() -> None:
    options, others = hr.data.Options(), hr.data.Options()
    options.experimental_deterministic = True
    others.experimental_slack = False
    dataset = Dataset.range(3).with_options(options).batch(2).with_options(others)
    assert dataset.options().experimental_deterministic is True
    assert dataset.options().experimental_slack is False
    assert dataset.options() == options.merge(others)


def test_options_have_types() -> None:
    options = hr.data.Options()
    with pytest.raises(TypeError, match="experimental_deterministic must be of type bool"):
        options.experimental_deterministic = 1  # type: ignore[assignment]
    with pytest.raises(TypeError, match="private_threadpool_size must be of type int"):
        options.experimental_threading.private_threadpool_size = 2.0  # type: ignore[assignment]
    with pytest.raises(AttributeError, match="OptimizationOptions has no option 'fusion'"):
        options.experimental_optimization.fusion = True  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"expected an hr\.data\.Options"):
        options.merge(hr.data.experimental.ThreadingOptions())  # type: ignore[arg-type]
    options.experimental_optimization.map_vectorization.enabled = True
    assert options != hr.data.Options()
    others = hr.data.Options()
    others.experimental_optimization.map_vectorization.use_choose_fastest = False
    both = options.merge(others).experimental_optimization.map_vectorization
    assert (both.enabled, both.use_choose_fastest) == (True, False)
    assert others.experimental_optimization.map_vectorization.enabled is None


def test_an_iterator_without_a_start_says_so() -> None:
    element = Dataset.range(3).make_initializable_iterator().get_next()
    with (
        hr.Session() as session,
        pytest.raises(FailedPreconditionError, match="run its initializer"),
    ):
        session.run(element)


def test_structures_classes_and_single_elements() -> None:
    sparse = hr.SparseTensor([[0, 1]], [3.0], [2, 2])
    dataset = Dataset.from_tensors({"a": (1, sparse)})
    assert hr.data.get_output_types(dataset) == {"a": (hr.int32, hr.float32)}
    assert hr.data.get_output_classes(dataset) == {"a": (hr.Tensor, hr.SparseTensor)}
    assert hr.data.get_output_shapes(dataset)["a"][1].as_list() == [2, 2]
    windows = Dataset.range(3).window(2)
    spec = windows.element_spec
    assert spec == hr.data.DatasetSpec(hr.TensorSpec([], hr.int64))
    assert (windows.output_types, windows.output_shapes, windows.output_classes) == (spec,) * 3
    assert isinstance(spec, hr.TypeSpec)
    assert hash(spec) == hash(hr.data.DatasetSpec.from_value(Dataset.range(2)))
    assert spec != hr.data.DatasetSpec({"a": hr.TensorSpec([], hr.int64)})
    assert spec.is_compatible_with(Dataset.range(2))
    assert hr.data.DatasetSpec(hr.TensorSpec(None, hr.int64)).is_compatible_with(spec)
    for other in (Dataset.from_tensors(1), Dataset.zip((Dataset.range(2),) * 2), spec.element_spec):
        assert not spec.is_compatible_with(other)
    with pytest.raises(DTypeError, match="expected a data set"):
        hr.data.DatasetSpec.from_value(3)
    iterator = hr.data.Iterator.from_structure(spec, spec, output_classes=spec)
    window = hr.data.experimental.get_single_element(iterator.get_next().batch(3))
    with hr.Session() as session:
        session.run(iterator.make_initializer(windows))
        assert session.run(window).tolist() == [0, 1]
    single = hr.data.experimental.get_single_element(dataset)
    with hr.Session() as session:
        assert session.run(single)["a"][1].values.tolist() == [3.0]
        for count, match in ((0, "is empty"), (2, "more than one")):
            wrong = hr.data.experimental.get_single_element(Dataset.range(count))
            with pytest.raises(InvalidArgumentError, match=match):
                session.run(wrong)
