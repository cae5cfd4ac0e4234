"""Elements in the order in which they are ready: none waits, none is lost, positions go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import HeadraceError, InvalidArgumentError, OutOfRangeError

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]
Dataset = hr.data.Dataset
experimental = hr.data.experimental


def allowed(deterministic: bool = False) -> Any:
    options = hr.data.Options()
    options.experimental_deterministic = deterministic
    return options


class Gate:
    """Calls for 0 wait until it is opened."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.reached = threading.Event()

    def __call__(self, x: Any) -> Any:
        def through(value: Any) -> Any:
            if value == 0:
                self.reached.set()
                assert self.opened.wait(30)
            return value

        made = hr.py_func(through, [x], hr.int64)
        made.set_shape([])
        return made


def _inner(gate: Any) -> Callable[[Any], Any]:
    return lambda x: Dataset.range(3).map(lambda y: 10 * gate(x) + y)


# Of a gate: a pipeline in which what is made of 0 waits, and what is not.
PIPELINES: dict[str, tuple[Callable[[Any], Any], list[int], list[int]]] = {
    "map": (
        lambda gate: Dataset.range(6).map(gate, 2).with_options(allowed()),
        [1, 2, 3, 4, 5],
        [0],
    ),
    "map of options before": (
        lambda gate: Dataset.range(6).with_options(allowed()).map(gate, 3).prefetch(1).take(99),
        [1, 2, 3, 4, 5],
        [0],
    ),
    "interleave": (
        lambda gate: (
            Dataset.range(4)
            .interleave(_inner(gate), 2, num_parallel_calls=2)
            .with_options(allowed())
        ),
        [10, 11, 12, 20, 21, 22, 30, 31, 32],
        [0, 1, 2],
    ),
    "interleave in blocks": (
        lambda gate: (
            Dataset.range(3)
            .with_options(allowed())
            .interleave(_inner(gate), 3, 2, num_parallel_calls=-1)
        ),
        [10, 11, 12, 20, 21, 22],
        [0, 1, 2],
    ),
    "sloppy": (
        lambda gate: Dataset.range(4).apply(
            experimental.parallel_interleave(_inner(gate), 2, sloppy=True)
        ),
        [10, 11, 12, 20, 21, 22, 30, 31, 32],
        [0, 1, 2],
    ),
    "sloppy by a tensor": (
        lambda gate: Dataset.range(3).apply(
            experimental.parallel_interleave(
                _inner(gate), 3, sloppy=hr.placeholder_with_default(True, [])
            )
        ),
        [10, 11, 12, 20, 21, 22],
        [0, 1, 2],
    ),
    "in a function": (
        lambda gate: (
            Dataset.range(1)
            .flat_map(lambda x: Dataset.range(3).map(gate, 3))
            .with_options(allowed())
        ),
        [1, 2],
        [0],
    ),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_what_is_slow_holds_up_nothing(name: str) -> None:
    build, ready, slow = PIPELINES[name]
    gate = Gate()
    iterator = build(gate).make_initializable_iterator()
    element = iterator.get_next()
    with hr.Session() as session:
        session.run(iterator.initializer)
        try:
            assert sorted(session.run(element).item() for _ in ready) == ready
        finally:
            gate.opened.set()
        assert [session.run(element).item() for _ in slow] == slow
        for _ in range(2):
            with pytest.raises(OutOfRangeError, match="no elements left"):
                session.run(element)


@pytest.mark.parametrize("name", PIPELINES)
def test_closing_the_session_wakes_who_waits(name: str) -> None:
    build, ready, _ = PIPELINES[name]
    gate = Gate()
    iterator = build(gate).make_initializable_iterator()
    element = iterator.get_next()
    session = hr.Session()
    session.run(iterator.initializer)
    for _ in ready:
        session.run(element)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            session.run(element)
        except HeadraceError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert gate.reached.wait(10)
    session.close()
    gate.opened.set()
    waiting.join(10)
    assert not waiting.is_alive()
    assert len(raised) == 1


def test_options_that_say_two_things_are_refused() -> None:
    dataset = Dataset.range(5).with_options(allowed()).map(lambda x: x * 2, 3)
    with pytest.raises(ValueError, match="experimental_deterministic is set to False and to True"):
        dataset.with_options(allowed(True))
    both = dataset.concatenate(Dataset.range(2).with_options(allowed(True)))
    with pytest.raises(ValueError, match="experimental_deterministic is set to True and to False"):
        both.make_one_shot_iterator()
    assert dataset.with_options(hr.data.Options()).options() == allowed()


def test_options_of_a_data_set_that_is_in_many_are_asked_for_once() -> None:
    dataset = Dataset.range(1).with_options(allowed())
    for _ in range(60):
        dataset = Dataset.zip((dataset, dataset)).map(lambda a, b: a)
    assert dataset.options() == allowed()


def test_options_of_an_iterator_of_a_structure_count() -> None:
    gate = Gate()
    iterator = hr.data.Iterator.from_structure(hr.int64, [])
    start = iterator.make_initializer(Dataset.range(3).map(gate, 3).with_options(allowed()))
    element = iterator.get_next()
    with hr.Session() as session:
        session.run(start)
        try:
            assert sorted(session.run(element).item() for _ in range(2)) == [1, 2]
        finally:
            gate.opened.set()
        assert session.run(element) == 0


def _noise(x: Any) -> Any:
    return x * 1000 + hr.cast(900 * hr.random_uniform([]), hr.int64)


# Pipelines of whose elements each is there once, whatever their order.
WHOLE: dict[str, Callable[[], Any]] = {
    "map": lambda: Dataset.range(9).map(lambda x: x * 3, 4),
    "map of noise": lambda: Dataset.range(9).map(_noise, 4),
    "interleave": lambda: Dataset.range(5).interleave(
        lambda x: Dataset.range(x).map(lambda y: 10 * x + y), 2, 2, num_parallel_calls=2
    ),
    "interleave of more places than data sets": lambda: Dataset.range(3).interleave(
        lambda x: Dataset.range(4).map(lambda y: _noise(10 * x + y)), 5, num_parallel_calls=3
    ),
    "both, fetched ahead": lambda: (
        Dataset.range(4)
        .interleave(lambda x: Dataset.range(3).map(lambda y: 10 * x + y), 2, num_parallel_calls=2)
        .map(lambda x: x + 1, 3)
        .prefetch(2)
    ),
    "repeated": lambda: (
        Dataset.range(3)
        .interleave(lambda x: Dataset.range(2).map(lambda y: 10 * x + y), 2, num_parallel_calls=2)
        .repeat(2)
    ),
}


def _taken(session: Any, element: Any, count: int) -> list[int]:
    return [session.run(element).item() for _ in range(count)]


@pytest.mark.parametrize("after", ["any", "fixed"])
@pytest.mark.parametrize("before", ["any", "fixed"])
@pytest.mark.parametrize("name", WHOLE)
def test_a_position_goes_on_with_what_was_not_delivered(name: str, before: str, after: str) -> None:
    hr.set_random_seed(5)
    pipelines = {}
    for order in {before, after}:
        dataset = WHOLE[name]()
        if order == "any":
            dataset = dataset.with_options(allowed())
        iterator = dataset.make_initializable_iterator()
        saveable = experimental.make_saveable_from_iterator(iterator)
        saved = hr.placeholder(hr.string, [])
        pipelines[order] = (iterator, iterator.get_next(), saveable, saved, saveable.restore(saved))
    iterator, element, saveable, _, _ = pipelines[before]
    there, get, _, saved, restore = pipelines[after]
    states: list[tuple[list[int], bytes]] = []
    taken: list[int] = []
    with hr.Session() as session:
        session.run(iterator.initializer)
        while True:
            states.append((list(taken), session.run(saveable.snapshot)))
            try:
                taken.append(session.run(element).item())
            except OutOfRangeError:
                break
    assert len(taken) > 5
    with hr.Session() as session:
        session.run(there.initializer)
        for seen, state in states:
            session.run(restore, {saved: state})
            rest = _taken(session, get, len(taken) - len(seen))
            if "noise" not in name and "more" not in name:
                assert sorted(seen + rest) == sorted(taken)
            elif before == after == "fixed":
                assert seen + rest == taken
            # Thousands, and tens of them, tell which element it is.
            assert sorted(x // 1000 for x in seen + rest) == sorted(x // 1000 for x in taken)
            with pytest.raises(OutOfRangeError, match="no elements left"):
                session.run(get)


def test_random_numbers_follow_from_the_element_in_any_order() -> None:
    def drawn(options: Any) -> list[int]:
        with hr.Graph().as_default():
            hr.set_random_seed(3)
            dataset = Dataset.range(20).map(_noise, 4).with_options(options)
            element = dataset.make_one_shot_iterator().get_next()
            with hr.Session() as session:
                return _taken(session, element, 20)

    assert sorted(drawn(allowed())) == drawn(hr.data.Options())


def test_what_fails_is_one_element_of_many() -> None:
    def fails(x: Any) -> Any:
        with hr.control_dependencies([hr.assert_equal(x % 3, hr.constant(0, hr.int64))]):
            return hr.identity(x)

    inner = lambda x: Dataset.from_tensors(fails(x)).repeat(2)  # noqa: E731
    for dataset, count, errors in [
        (Dataset.range(6).map(fails, 3), 2, 4),
        (Dataset.range(6).interleave(inner, 2, num_parallel_calls=2), 4, 4),
        (Dataset.range(6).map(fails).interleave(Dataset.range, 2, num_parallel_calls=2), 3, 4),
    ]:
        element = dataset.with_options(allowed()).make_one_shot_iterator().get_next()
        found, failed = 0, 0
        with hr.Session() as session:
            while True:
                try:
                    session.run(element)
                    found += 1
                except OutOfRangeError:
                    break
                except InvalidArgumentError:
                    failed += 1
        assert (found, failed) == (count, errors)


def test_a_function_ends_the_elements_behind_its_own_alone() -> None:
    gate = Gate()

    def ends(x: Any) -> Any:
        def check(value: Any) -> Any:
            if value == 2:
                raise StopIteration
            return value

        return hr.py_func(check, [gate(x)], hr.int64)

    element = Dataset.range(9).map(ends, 3).with_options(allowed()).make_one_shot_iterator()
    get = element.get_next()
    with hr.Session() as session:
        first = session.run(get)
        gate.opened.set()
        assert [first.item(), session.run(get).item()] == [1, 0]
        with pytest.raises(OutOfRangeError, match="no elements left"):
            session.run(get)


def test_files_are_read_in_any_order(tmp_path: Any) -> None:
    for i in range(3):
        rows = "".join(f"{10 * i + j}\n" for j in range(4))
        (tmp_path / f"{i}.csv").write_text("a\n" + rows)
    dataset = experimental.make_csv_dataset(
        str(tmp_path / "*.csv"),
        1,
        num_epochs=1,
        shuffle=False,
        num_parallel_reads=2,
        sloppy=True,
    )
    element = dataset.make_one_shot_iterator().get_next()
    with hr.Session() as session:
        found = np.concatenate([session.run(element)["a"] for _ in range(12)])
    assert sorted(found.tolist()) == [10 * i + j for i in range(3) for j in range(4)]
