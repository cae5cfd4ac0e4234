"""Ragged tensors in programs: fed, fetched, in control flow, differentiated, and their errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import headrace as hr
from headrace.graph.dispatch import KINDS

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

ROWS = [[1.0, 2.0], [3.0], [], [4.0, 5.0, 6.0]]


@pytest.fixture
def session():
    with hr.Graph().as_default(), hr.Session() as made:
        yield made


def test_feeds_and_fetches_values(session) -> None:
    x = hr.ragged.placeholder(hr.float32, 1, [])
    value = hr.ragged.constant_value(ROWS, dtype=np.float32)
    found = session.run({"twice": x * 2, "rows": x.nrows()}, {x: value})
    assert found["twice"].to_list() == [[2.0, 4.0], [6.0], [], [8.0, 10.0, 12.0]]
    assert found["rows"] == 4
    assert x.eval({x: value}, session).to_list() == ROWS
    again = session.make_callable([x + 1], [x])(value)[0]
    assert again.to_list() == [[2.0, 3.0], [4.0], [], [5.0, 6.0, 7.0]]


def test_values_that_are_not_ragged_are_not_fed(session) -> None:
    x = hr.ragged.placeholder(hr.float32, 1, [])
    with pytest.raises(hr.errors.FeedError, match="feed a RaggedTensorValue"):
        session.run(x, {x: ROWS})
    deep = hr.ragged.constant_value([[[1.0]]], dtype=np.float32)
    with pytest.raises(hr.errors.FeedError, match="ragged_rank 2, expected 1"):
        session.run(x, {x: deep})


@pytest.mark.parametrize("compile_after", [0, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_broadcasting_agrees_with_each_row_alone(seed: int, compile_after: int) -> None:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 5, 6)
    rows = [rng.standard_normal(n).astype(np.float32).tolist() for n in lengths]
    column = rng.standard_normal((6, 1)).astype(np.float32)
    with (
        hr.Graph().as_default(),
        hr.Session(config=hr.Config(compile_after=compile_after)) as session,
    ):
        x = hr.ragged.constant(rows, dtype=hr.float32, ragged_rank=1)
        other = hr.ragged.placeholder(hr.float32, 1, [])
        fed = {other: hr.ragged.constant_value(rows, np.float32, ragged_rank=1)}
        for _ in range(3):
            got, both = session.run([hr.exp(x) * column, x - other * 2], fed)
    for i, row in enumerate(rows):
        np.testing.assert_allclose(
            got.to_list()[i], np.exp(np.array(row, np.float32)) * column[i], rtol=1e-5
        )
        np.testing.assert_allclose(both.to_list()[i], -np.array(row, np.float32), rtol=1e-5)


def test_rows_of_other_lengths_are_refused_in_the_step(session) -> None:
    x = hr.ragged.placeholder(hr.float32, 1, [])
    y = hr.ragged.constant(ROWS)
    short = hr.ragged.constant_value([[1.0], [3.0], [], [4.0]], dtype=np.float32)
    with pytest.raises(hr.errors.InvalidArgumentError, match="rows of ragged operands"):
        session.run(x + y, {x: short})


def test_fed_slices_of_rows_are_those_of_lists(session) -> None:
    rows = [[1, 2, 3, 4], [], [5], [6, 7]]
    start, stop, step = (hr.placeholder(hr.int32, []) for _ in range(3))
    cut = hr.ragged.constant(rows)[:, start:stop:step]
    for bounds in itertools.product((0, 1, -1, 5, -5), (0, 2, -1, 5, -5), (1, 2, -1, -3)):
        found = session.run(cut, dict(zip((start, stop, step), bounds, strict=True)))
        assert found.to_list() == [row[slice(*bounds)] for row in rows], bounds


def test_values_are_fed_to_what_has_a_narrower_dtype(session) -> None:
    x, i, s = (hr.ragged.placeholder(kind, 1, []) for kind in (hr.float32, hr.int32, hr.string))
    numbers = hr.ragged.constant_value([[1.5], [2.0]])
    counts = hr.ragged.constant_value([[1], [2]])
    words = hr.ragged.constant_value([["a", b"b\0"], []])
    assert (numbers.values.dtype, counts.values.dtype) == (np.float64, np.int64)
    found = session.run([x, i, s], {x: numbers, i: counts, s: words})
    assert [value.to_list() for value in found] == [[[1.5], [2]], [[1], [2]], [[b"a", b"b\0"], []]]


def test_gradients_flow_through_the_values(session) -> None:
    flat = hr.constant([1.0, 2.0, 3.0])
    x = hr.RaggedTensor.from_row_lengths(flat, [2, 0, 1])
    total = hr.reduce_sum(hr.reduce_sum(x * x, 1) * [1.0, 1.0, 2.0])
    np.testing.assert_allclose(
        session.run(hr.convert_to_tensor(hr.gradients(total, flat)[0])), [2.0, 4.0, 12.0]
    )


def test_branches_and_loops_hold_ragged_tensors(session) -> None:
    x = hr.ragged.constant(ROWS)
    chosen = hr.cond(hr.placeholder_with_default(True, []), lambda: x + 1.0, lambda: x)
    assert chosen.ragged_rank == 1
    grown = hr.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, hr.concat([v, v], 1)), [0, x])[1]
    found, twice = session.run([chosen, grown])
    assert found.to_list() == [[2.0, 3.0], [4.0], [], [5.0, 6.0, 7.0]]
    assert twice.to_list() == [row * 4 for row in ROWS]


def test_dispatch_is_open_to_other_kinds_of_values(session) -> None:
    class Doubled:
        def __init__(self, tensor) -> None:
            self.tensor = tensor

    def handler(callee, args, kwargs):
        if callee.name != "Exp":
            return NotImplemented
        return callee.function(args[0].tensor * 2.0, **kwargs)

    KINDS[Doubled] = handler
    try:
        np.testing.assert_allclose(session.run(hr.exp(Doubled(hr.constant(1.0)))), np.exp(2.0))
        with pytest.raises(hr.HeadraceError, match="converts to no tensor"):
            hr.log(Doubled(hr.constant(1.0)))
    finally:
        del KINDS[Doubled]


def test_a_second_ellipsis_is_an_index_too_many() -> None:
    with pytest.raises(IndexError, match=r"one \.\.\. at most"):
        hr.ragged.constant([[1, 2], [3]])[..., ..., 0]


@pytest.mark.parametrize(
    ("build", "match"),
    [
        (lambda x: hr.nn.conv2d(x, x, [1], "SAME"), "ragged where a tensor is expected"),
        (lambda x: hr.matmul(x, x), "ragged where a tensor is expected"),
        (lambda x: setattr(x, "values", 1), "immutable"),
        (lambda x: x[..., ..., 0], "one ... at most"),
        (lambda x: x[0, 0, 0], "index|indices"),
        (lambda x: x["a"], "integers and slices"),
        (lambda x: x[:, ::0], "must not be 0"),
        (lambda x: x.with_row_splits_dtype(hr.float32), "int32 or int64"),
        (lambda x: x.with_values(hr.zeros([5])), "incompatible"),
        (lambda x: x.row_lengths(-3), "axis -3 is out of range"),
        (lambda x: x + hr.placeholder(hr.float32), "a known rank"),
        (lambda x: hr.gather(x, [0], axis=1), "axis 0"),
        (lambda x: hr.gather(x, [0.5]), "integers"),
        (lambda x: hr.gather_nd(x, [[0]], batch_dims=1), "batch_dims"),
        (lambda x: hr.ragged.map_flat_values(3, x), "must be a function"),
        (lambda x: hr.ragged.constant([x, x]), "plain data"),
        (lambda x: hr.ragged.boolean_mask(x, [1.0]), "must be bool"),
        (lambda x: hr.RaggedTensor.from_nested_row_splits([1], 3), "must be a list"),
        (lambda x: hr.RaggedTensor.from_nested_value_rowids([1], [[0]], [1, 2]), "nested_nrows"),
        (lambda x: hr.RaggedTensor.from_value_rowids([1], [0], nrows=-1), "nrows must be >= 0"),
        (lambda x: hr.ragged.constant([1, 2], inner_shape=(3,)), "without ragged axes"),
        (lambda x: hr.ragged.constant([[[]]], ragged_rank=1, inner_shape=(4,)), "no values"),
        (lambda x: hr.ragged.constant_value([[1, 2], [3]], ragged_rank=0), "is ragged"),
        (lambda x: x[:, ::"a"], "the step of a slice"),
        (lambda x: x[:, 0.5:], "a bound of a slice"),
    ],
    ids=range(25),
)
def test_mistakes_are_told(session, build, match) -> None:
    x = hr.ragged.constant(ROWS)
    with pytest.raises((hr.HeadraceError, AttributeError), match=match):
        build(x)


def test_values_tell_what_they_hold() -> None:
    value = hr.ragged.constant_value([[[1, 2]], [], [[3], [4]]])
    assert value.shape == (3, None, None)
    assert value.ragged_rank == 2
    assert value.to_list() == [[[1, 2]], [], [[3], [4]]]
    assert str(value) == "<RaggedTensorValue [[[1, 2]], [], [[3], [4]]]>"
    with pytest.raises(hr.errors.ShapeError, match="vector of int32 or int64"):
        hr.ragged.RaggedTensorValue([1.0], [[0, 1]])
