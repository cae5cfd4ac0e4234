"""Positions are state: iterators that go on exactly where they stood."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headrace as hr
from headrace.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    OutOfRangeError,
)
from headrace_data.state.encoding import decode, encode
from headrace_data.transformations import prefetching

pytestmark = pytest.mark.needs("backend-cpu")
Dataset = hr.data.Dataset
LIMIT = 40


def _noise(x: Any) -> Any:
    return x + hr.cast(100 * hr.random_uniform([]), hr.int64)


def _numbers() -> Any:
    yield from range(11)


def _rows() -> Any:
    # A database without a table of its own.
    query = (
        "with recursive n(x) as (select 1 union all select x * 2 from n limit 12) select * from n"
    )
    return hr.data.experimental.SqlDataset("sqlite", ":memory:", query, hr.int64)


SOURCES = {
    "sql": _rows,
    "range": lambda: Dataset.range(17),
    "slices": lambda: Dataset.from_tensor_slices(np.arange(13, dtype=np.int64) * 3),
    "generator": lambda: Dataset.from_generator(_numbers, hr.int64, []),
    "random": lambda: hr.data.experimental.RandomDataset(7).take(12),
    "unseeded_random": lambda: hr.data.experimental.RandomDataset().take(12).repeat(2),
    "tensors": lambda: Dataset.from_tensors(np.int64(5)).repeat(9),
    "zip": lambda: Dataset.zip((Dataset.range(9), Dataset.range(20, 40))).map(lambda a, b: a + b),
}

# Each takes and gives scalars, int64, so that they follow one another in any order.
STEPS = {
    "map": lambda d: d.map(lambda x: x * 3 + 1),
    "parallel_map": lambda d: d.map(lambda x: x - 2, num_parallel_calls=3),
    "random_map": lambda d: d.map(_noise, num_parallel_calls=2),
    "filter": lambda d: d.filter(lambda x: hr.not_equal(x % 3, 1)),
    "random_filter": lambda d: d.filter(lambda x: hr.random_uniform([]) < 0.7),
    "shuffle": lambda d: d.shuffle(5),
    "same_shuffle": lambda d: d.shuffle(4, seed=3, reshuffle_each_iteration=False).repeat(2),
    "repeat": lambda d: d.repeat(2),
    "shuffled_repeat": lambda d: d.shuffle(3).repeat(2),
    "take": lambda d: d.take(12),
    "skip": lambda d: d.skip(2),
    "shard": lambda d: d.shard(2, 1),
    "concatenate": lambda d: d.concatenate(Dataset.range(4)),
    "batch": lambda d: d.batch(3).map(hr.reduce_sum),
    "unbatch": lambda d: d.batch(4).unbatch(),
    "padded": lambda d: d.map(lambda x: hr.range(x % 4)).padded_batch(2, [-1]).map(hr.reduce_sum),
    "ragged": lambda d: (
        d.map(lambda x: hr.ragged.range(hr.stack([x % 3, x % 4])))
        .batch(2)
        .shuffle(2)
        .unbatch()
        .map(lambda r: hr.reduce_sum(r.flat_values))
    ),
    "sparse": lambda d: (
        d.map(lambda x: hr.range(x % 4))
        .apply(hr.data.experimental.dense_to_sparse_batch(2, [None]))
        .map(lambda s: hr.sparse.reduce_sum(s))
    ),
    "arrays": lambda d: (
        d.map(lambda x: hr.TensorArray(hr.int64, size=2, element_shape=[]).write(0, x), 2)
        .shuffle(3)
        .prefetch(2)
        .map(lambda a: a.read(0) + hr.cast(a.size(), hr.int64))
    ),
    "scanned_arrays": lambda d: d.apply(
        hr.data.experimental.scan(
            hr.TensorArray(hr.int64, size=0, dynamic_size=True, element_shape=[]),
            lambda a, x: (a.write(a.size(), x), hr.reduce_sum(a.stack()) + x),
        )
    ),
    "batched_data_sets": lambda d: (
        d.window(2).batch(2).shuffle(2).prefetch(1).unbatch().flat_map(lambda w: w)
    ),
    "optionals": lambda d: (
        d.map(hr.data.experimental.Optional.from_value, 2)
        .shuffle(3)
        .prefetch(1)
        .map(lambda o: o.get_value() + hr.cast(o.has_value(), hr.int64))
    ),
    "window": lambda d: d.window(3, 2).flat_map(lambda w: w.batch(3)).map(hr.reduce_sum),
    "shuffled_windows": lambda d: d.window(2).shuffle(3).flat_map(lambda w: w),
    "flat_map": lambda d: d.flat_map(lambda x: Dataset.range(x % 4).shuffle(3)),
    "interleave": lambda d: d.interleave(
        lambda x: Dataset.from_tensors(x).repeat(3), cycle_length=3, block_length=2
    ),
    "parallel_interleave": lambda d: d.interleave(
        lambda x: Dataset.range(x % 5).map(lambda y: _noise(x + y)), 2, num_parallel_calls=2
    ),
    "cache": lambda d: d.cache().repeat(2),
    "cached_noise": lambda d: d.map(_noise).cache().repeat(2),
    "prefetch": lambda d: d.prefetch(3),
    "prefetched_map": lambda d: d.map(lambda x: x * 2, num_parallel_calls=2).prefetch(2),
    "enumerate": lambda d: d.enumerate(5).map(lambda i, x: i * 1000 + x % 1000),
    "scan": lambda d: d.apply(hr.data.experimental.scan(np.int64(0), lambda s, x: (s + x, s))),
    "take_while": lambda d: d.apply(hr.data.experimental.take_while(lambda x: x < 10**6)),
    "unique": lambda d: d.apply(hr.data.experimental.unique()),
    "ignore_errors": lambda d: d.map(_odd_fails, num_parallel_calls=2).apply(
        hr.data.experimental.ignore_errors()
    ),
    "chosen": lambda d: hr.data.experimental.choose_from_datasets(
        [d, Dataset.range(4)], Dataset.range(30).map(lambda i: i % 2)
    ),
    "sampled": lambda d: hr.data.experimental.sample_from_datasets(
        [d, Dataset.range(4).map(_noise)], [0.4, 0.6], seed=2
    ),
    "reduced_groups": lambda d: d.apply(
        hr.data.experimental.group_by_reducer(
            lambda x: x % 5,
            hr.data.experimental.Reducer(
                lambda key: (np.int64(0), np.int64(1)), lambda s, x: (s[0] + x, s[1] * 2), _added
            ),
        )
    ),
    "group": lambda d: d.apply(
        hr.data.experimental.group_by_window(
            lambda x: x % 3, lambda key, group: group.shuffle(2), window_size=4
        )
    ),
}


def _added(total: Any, count: Any) -> Any:
    return total + count


def _odd_fails(x: Any) -> Any:
    with hr.control_dependencies([hr.assert_equal(x % 2, hr.constant(0, hr.int64))]):
        return hr.identity(x)


class Pipeline:
    """A pipeline with an iterator, its position, and what restores one."""

    def __init__(self, dataset: Any) -> None:
        self.iterator = dataset.make_initializable_iterator()
        self.element = self.iterator.get_next()
        self.saveable = hr.data.experimental.make_saveable_from_iterator(self.iterator)
        self.saved = hr.placeholder(hr.string, [])
        self.restore = self.saveable.restore(self.saved)

    def elements(self, session: Any, count: int = LIMIT) -> list[Any]:
        """Up to ``count`` elements, and "end"."""
        found: list[Any] = []
        for _ in range(count):
            try:
                found.append(session.run(self.element).item())
            except OutOfRangeError:
                return [*found, "end"]
        return found

    def recorded(self) -> tuple[list[bytes], list[Any]]:
        """The position before each element, and the elements."""
        states: list[bytes] = []
        found: list[Any] = []
        with hr.Session() as session:
            session.run(self.iterator.initializer)
            while len(found) < LIMIT and found[-1:] != ["end"]:
                states.append(session.run(self.saveable.snapshot))
                found += self.elements(session, 1)
        return states, found


def check_every_position(source: str, steps: list[str]) -> None:
    with hr.Graph().as_default():
        dataset = SOURCES[source]()
        for name in steps:
            dataset = STEPS[name](dataset)
        pipeline = Pipeline(dataset)
        states, whole = pipeline.recorded()
        with hr.Session() as session:
            session.run(pipeline.iterator.initializer)
            for i, state in enumerate(states):
                session.run(pipeline.restore, {pipeline.saved: state})
                assert pipeline.elements(session, len(whole) - i) == whole[i:], f"position {i}"


@pytest.mark.parametrize("name", STEPS)
def test_every_transformation_goes_on_from_every_position(name: str) -> None:
    check_every_position("range", [name])


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_goes_on_from_every_position(name: str) -> None:
    check_every_position(name, ["shuffle", "parallel_map", "batch", "prefetch"])


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    st.sampled_from(sorted(SOURCES)),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=4),
)
def test_random_pipelines_go_on_from_every_position(source: str, steps: list[str]) -> None:
    check_every_position(source, steps)


@pytest.mark.slow
@settings(
    max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(
    st.sampled_from(sorted(SOURCES)),
    st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
)
@pytest.mark.timeout(600)
def test_many_random_pipelines_go_on_from_every_position(source: str, steps: list[str]) -> None:
    check_every_position(source, steps)


def test_a_position_waits_for_an_iterator_that_is_not_initialized_yet() -> None:
    pipeline = Pipeline(Dataset.range(10).shuffle(4))
    states, whole = pipeline.recorded()
    with hr.Session() as session:
        session.run(pipeline.restore, {pipeline.saved: states[5]})
        session.run(pipeline.iterator.initializer)
        assert pipeline.elements(session) == whole[5:]
        session.run(pipeline.iterator.initializer)
        assert len(pipeline.elements(session)) == 11


def test_one_shot_iterators_go_on_without_being_started() -> None:
    iterator = Dataset.range(10).shuffle(4, seed=1).make_one_shot_iterator()
    element = iterator.get_next()
    saveable = hr.data.experimental.make_saveable_from_iterator(iterator)
    saved = hr.placeholder(hr.string, [])
    restore = saveable.restore(saved)
    with hr.Session() as session:
        for _ in range(4):
            session.run(element)
        state = session.run(saveable.snapshot)
        rest = [session.run(element) for _ in range(6)]
    with hr.Session() as session:
        session.run(restore, {saved: state})
        assert [session.run(element) for _ in range(6)] == rest


def test_a_cache_in_a_file_is_written_on_from_where_it_was(tmp_path: Any) -> None:
    name = str(tmp_path / "elements")
    pipeline = Pipeline(Dataset.range(6).map(_noise).cache(name).repeat(2))
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        first = [session.run(pipeline.element) for _ in range(3)]
        state = session.run(pipeline.saveable.snapshot)
        following = [session.run(pipeline.element) for _ in range(2)]
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        session.run(pipeline.restore, {pipeline.saved: state})
        rest = pipeline.elements(session)
    assert rest[:2] == following
    assert rest[3:] == [*first, *rest[:3], "end"]
    (tmp_path / "elements.cache").unlink()
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        with pytest.raises(DataLossError, match="is gone, or was never complete"):
            session.run(pipeline.restore, {pipeline.saved: state})


def test_a_position_of_another_pipeline_is_refused() -> None:
    one, other = Pipeline(Dataset.range(10).batch(2)), Pipeline(Dataset.range(10).repeat(2))
    with hr.Session() as session:
        session.run([one.iterator.initializer, other.iterator.initializer])
        state = session.run(one.saveable.snapshot)
        with pytest.raises(InvalidArgumentError, match=r"saved: range > batch\n.*range > repeat"):
            session.run(other.restore, {other.saved: state})
        assert session.run(other.element) == 0


def test_a_damaged_position_is_refused() -> None:
    pipeline = Pipeline(Dataset.range(10))
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        state = session.run(pipeline.saveable.snapshot)
        damaged = state[:20] + bytes([state[20] ^ 1]) + state[21:]
        for wrong, match in ((damaged, "checksum"), (b"", "0 bytes"), (state[:-3], "checksum")):
            with pytest.raises(DataLossError, match=match):
                session.run(pipeline.restore, {pipeline.saved: wrong})


def test_an_iterator_without_a_position_has_none_to_save() -> None:
    pipeline = Pipeline(Dataset.range(3))
    with hr.Session() as session:
        assert not session.run(pipeline.saveable.initialized)
        with pytest.raises(FailedPreconditionError, match="has not been initialized"):
            session.run(pipeline.saveable.snapshot)
        session.run(pipeline.iterator.initializer)
        assert session.run(pipeline.saveable.initialized)


def test_data_sets_of_functions_in_buffers_cannot_be_saved() -> None:
    nested = Dataset.range(5).map(Dataset.range).prefetch(2).flat_map(lambda d: d)
    pipeline = Pipeline(nested)
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        session.run(pipeline.element)
        with pytest.raises(FailedPreconditionError, match="flatten them"):
            session.run(pipeline.saveable.snapshot)
        assert session.run(pipeline.element) == 0


def test_a_generator_with_fewer_elements_than_before_is_refused() -> None:
    many = [6]

    def numbers() -> Any:
        yield from range(many[0])

    pipeline = Pipeline(Dataset.from_generator(numbers, hr.int64, []))
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        for _ in range(4):
            session.run(pipeline.element)
        state = session.run(pipeline.saveable.snapshot)
        many[0] = 2
        with pytest.raises(InvalidArgumentError, match="yielded 2 elements, and stood after 4"):
            session.run(pipeline.restore, {pipeline.saved: state})


@pytest.mark.parametrize(
    "tree",
    [
        None,
        [1, 2.5, "text", b"bytes", True, {"key": [None]}],
        [np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((0, 4), np.float32)],
        [np.array([b"a", b""], object), np.array(b"scalar", object)],
    ],
    ids=["nothing", "values", "arrays", "strings"],
)
def test_positions_are_bytes_and_back(tree: Any) -> None:
    found = decode(encode(tree))
    np.testing.assert_equal(found, tree)


def test_errors_that_were_fetched_ahead_are_saved() -> None:
    pipeline = Pipeline(Dataset.range(4).map(_odd_fails).prefetch(prefetching.AUTOMATIC))
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        assert session.run(pipeline.element) == 0
        state = session.run(pipeline.saveable.snapshot)
    with hr.Session() as session:
        session.run(pipeline.iterator.initializer)
        session.run(pipeline.restore, {pipeline.saved: state})
        with pytest.raises(InvalidArgumentError, match="assert"):
            session.run(pipeline.element)
        assert session.run(pipeline.element) == 2


@pytest.mark.parametrize("dtype", [hr.float16, hr.float32, hr.float64, hr.bool, hr.string])
@pytest.mark.parametrize(
    "make",
    [
        lambda d, f: d.map(f, 3),
        lambda d, f: d.map(f).shuffle(3, seed=1),
        lambda d, f: d.map(f).window(2, 1).flat_map(lambda w: w),
    ],
    ids=["parallel", "shuffle", "window"],
)
def test_positions_hold_scalars_of_every_dtype(dtype: Any, make: Any) -> None:
    def made(x: Any) -> Any:
        return hr.as_string(x) if dtype == hr.string else hr.cast(x * x, dtype)

    with hr.Graph().as_default():
        pipeline = Pipeline(make(Dataset.range(5), made))
        with hr.Session() as session:
            session.run(pipeline.iterator.initializer)
            session.run(pipeline.element)
            state = session.run(pipeline.saveable.snapshot)
            expected = [session.run(pipeline.element) for _ in range(4)]
            session.run(pipeline.restore, {pipeline.saved: state})
            assert [session.run(pipeline.element) for _ in range(4)] == expected
