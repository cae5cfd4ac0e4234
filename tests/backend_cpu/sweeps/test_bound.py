"""Sweeps of known shapes run as instructions: the same bits and errors, variables in place."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr

pytestmark = pytest.mark.needs("backend-cpu")

COMPILED = {"compile_after": 0, "compile_wait": True}
RNG = np.random.default_rng(0)


def ids(high, *shape):
    return RNG.integers(0, high, shape).astype(np.int32)


def rows(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


# The program, and what it is fed.
PROGRAMS = {
    "gather": (hr.gather, rows(50, 7), ids(50, 4, 9)),
    "gather_axis": (lambda x, i: hr.gather(x, i, axis=1), rows(3, 20, 5), ids(20, 8)),
    "gather_one": (lambda x, i: hr.gather(x, i, axis=0), rows(20), ids(20, 1)),
    "gather_nd": (hr.gather_nd, rows(9, 9, 4), ids(9, 30, 2)),
    "gather_nd_single": (hr.gather_nd, rows(9, 4), ids(9, 30, 1)),
    "gather_complex": (
        lambda x, i: hr.abs(hr.gather(hr.complex(x, x), i)), rows(30, 3), ids(30, 12)),
    "segment_sum": (lambda x, i: hr.unsorted_segment_sum(x, i - 1, 12), rows(90, 5), ids(13, 90)),
    "segment_max": (lambda x, i: hr.unsorted_segment_max(x, i, 15), rows(4, 9, 3), ids(12, 4, 9)),
    "segment_prod": (lambda x, i: hr.unsorted_segment_prod(x, i, 40), rows(90), ids(40, 90)),
    "scatter_nd": (lambda x, i: hr.scatter_nd(i, x, [40, 3]), rows(60, 3), ids(40, 60, 1)),
    "scatter_nd_pairs": (lambda x, i: hr.scatter_nd(i, x, [9, 11, 3]), rows(60, 3), ids(9, 60, 2)),
    "large": (lambda x, i: hr.unsorted_segment_sum(hr.gather(x, i) * 2.0, i, 500),
              rows(500, 33), ids(500, 2000)),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_known_and_unknown_shapes_have_the_bits_of_plain_kernels(name):
    build, x, i = PROGRAMS[name]
    found = []
    for known, config in (
        (True, {"executor": "plain"}),
        (True, {"threads": 1, **COMPILED}),
        (True, {"threads": 3, **COMPILED}),
        (True, {"compile_after": None}),
        (False, {"threads": 1, **COMPILED}),
    ):
        with hr.Graph().as_default():
            x_, i_ = (
                hr.placeholder(a.dtype, a.shape if known else [None] * a.ndim) for a in (x, i)
            )
            y = build(x_, i_)
            with hr.Session(config=hr.Config(**config)) as session:
                for _ in range(2):
                    value = session.run(y, {x_: x, i_: i})
        found.append(value)
    for other in found[1:]:
        assert other.shape == found[0].shape
        assert other.tobytes() == found[0].tobytes()


# The operation that changes a variable, and what NumPy does.
UPDATES = {
    "add": (hr.scatter_add, np.add.at),
    "sub": (hr.scatter_sub, np.subtract.at),
    "min": (hr.scatter_min, np.minimum.at),
    "max": (hr.scatter_max, np.maximum.at),
    "update": (hr.scatter_update, lambda table, i, v: table.__setitem__(i, v)),
}


@pytest.mark.parametrize("config", [COMPILED, {"compile_after": None}], ids=["swept", "not_yet"])
@pytest.mark.parametrize("name", UPDATES)
def test_variables_are_changed_in_place(name, config):
    change, oracle = UPDATES[name]
    first, given, at = rows(30, 6), rows(8, 6), RNG.permutation(30)[:8].astype(np.int32)
    variable = hr.Variable(first)
    held = hr.placeholder("float32", [8, 6])
    places = hr.placeholder("int32", [8])
    step = change(variable, places, held).op
    expected = first.copy()
    with hr.Session(config=hr.Config(**config)) as session:
        session.run(variable.initializer)
        for _ in range(3):
            # A value that somebody holds stays as it was.
            before = session.run(variable)
            copy = before.copy()
            session.run(step, {held: given, places: at})
            assert before.tobytes() == copy.tobytes()
            oracle(expected, at, given)
        np.testing.assert_array_equal(session.run(variable), expected)


@pytest.mark.parametrize("config", [COMPILED, {"compile_after": None}], ids=["swept", "not_yet"])
@pytest.mark.parametrize("wrong", [-1, 30])
def test_an_index_out_of_range_changes_nothing_and_is_told_as_ever(wrong, config):
    first = rows(30, 6)
    variable = hr.Variable(first, name="table")
    places = hr.placeholder("int32", [2])
    step = hr.scatter_sub(variable, places, np.ones((2, 6), np.float32)).op
    told = []
    for each in ({"executor": "plain"}, config):
        with hr.Session(config=hr.Config(**each)) as session:
            session.run(variable.initializer)
            session.run(step, {places: [0, 1]})
            before = session.run(variable)
            with pytest.raises(hr.errors.HeadraceError, match=f"index {wrong} is out of") as info:
                session.run(step, {places: [3, wrong]})
            told.append(str(info.value))
            np.testing.assert_array_equal(session.run(variable), before)
            session.run(step, {places: [0, 1]})
    assert told[0] == told[1]
    assert "variable 'table'" in told[0]


WRONG = {
    "gather": lambda x, i: hr.gather(x, i),
    "gather_nd": lambda x, i: hr.gather_nd(x, i[:, None]),
    "pairs": lambda x, i: hr.gather_nd(x, hr.stack([i, i], 1)),
    "segment": lambda x, i: hr.unsorted_segment_sum(x, i, 4),
    "scatter": lambda x, i: hr.scatter_nd(i[:, None], x, [4, 4]),
    "scatter_pairs": lambda x, i: hr.scatter_nd(hr.stack([i, i], 1), x[:, 0], [4, 4]),
}


@pytest.mark.parametrize("name", WRONG)
def test_indices_out_of_range_are_told_as_by_plain_kernels(name):
    x, i = hr.placeholder("float32", [4, 4]), hr.placeholder("int32", [4])
    y = WRONG[name](x, i)
    told = []
    for config in ({"executor": "plain"}, COMPILED):
        with hr.Session(config=hr.Config(**config)) as session:
            right = session.run(y, {x: np.ones((4, 4)), i: [0, 1, 2, 3]})
            with pytest.raises(hr.errors.HeadraceError, match="out of range") as info:
                session.run(y, {x: np.ones((4, 4)), i: [0, 1, 4, 3]})
            told.append(str(info.value))
            again = session.run(y, {x: np.ones((4, 4)), i: [0, 1, 2, 3]})
            np.testing.assert_array_equal(again, right)
    assert told[0] == told[1]


def test_loops_run_them_at_one_go():
    table, start = hr.placeholder("float32", [20, 4]), hr.placeholder("int32", [6])

    def body(n, places, total):
        picked = hr.gather(table, places)
        return n + 1, hr.floormod(places * 3 + 1, 20), total + hr.reduce_sum(picked)

    _, _, total = hr.while_loop(lambda n, *_: n < 30, body, [0, start, 0.0])
    feed = {table: rows(20, 4), start: ids(20, 6)}
    values = []
    for config in ({"executor": "plain"}, COMPILED):
        with hr.Session(config=hr.Config(**config)) as session:
            for _ in range(3):
                value = session.run(total, feed)
            values.append(value)
    np.testing.assert_allclose(*values, rtol=1e-5)


def test_an_index_out_of_range_in_a_loop_is_told():
    table, start = hr.placeholder("float32", [20]), hr.placeholder("int32", [1])

    def body(n, places, total):
        return n + 1, places + 1, total + hr.reduce_sum(hr.gather(table, places))

    _, _, total = hr.while_loop(lambda n, *_: n < 10, body, [0, start, 0.0])
    with hr.Session(config=hr.Config(**COMPILED)) as session:
        for _ in range(3):
            assert session.run(total, {table: np.ones(20), start: [0]}) == 10
        with pytest.raises(hr.errors.HeadraceError, match="index 20 is out of range"):
            session.run(total, {table: np.ones(20), start: [15]})
        assert session.run(total, {table: np.ones(20), start: [0]}) == 10
