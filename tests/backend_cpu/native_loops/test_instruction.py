"""Native loops of known shapes as instructions: the same bits and errors, variables in place."""

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


def sparse_product(x, pairs, **turned):
    values = hr.cast(pairs[:, 0] * 3 - pairs[:, 1], hr.float32)
    matrix = hr.SparseTensor(hr.cast(pairs, hr.int64), values, [11, 11] if not turned else [9, 13])
    return hr.sparse_tensor_dense_matmul(matrix, x, **turned)


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
    "unique_places": (lambda x, i: hr.gather(x, hr.unique(i)[1]), rows(300, 3), ids(50, 300)),
    "unique_far": (
        lambda x, i: hr.gather(x, hr.unique(i * 20_000_000)[1]), rows(300, 3), ids(90, 300)),
    "part_column": (lambda x, i: hr.gather(x, i[:, 2]), rows(9, 3), ids(9, 40, 5)),
    "part_box": (lambda x, i: hr.gather(x[1:9, ::2, 1:4], i), rows(10, 6, 5), ids(8, 30)),
    "part_turned": (lambda x, i: hr.gather(hr.reverse(x, [0, 2]), i[::-3]), rows(7, 2, 3),
                    ids(7, 31)),
    "part_axes": (lambda x, i: hr.gather(x[:, 1:, ::2, :2, 1::2], i[:, 0]), rows(3, 4, 5, 3, 4),
                  ids(3, 8, 2)),
    "part_bytes": (lambda x, i: hr.gather(hr.cast(x * 9.0, hr.int8)[:, ::3], i), rows(7, 8),
                   ids(7, 8)),
    "arg_max": (lambda x, i: hr.argmax(x, 1), rows(9, 30, 5), ids(3, 1)),
    "arg_max_many": (lambda x, i: hr.argmax(x, 0, output_type=hr.int32), rows(40, 700), ids(3, 1)),
    "arg_min": (lambda x, i: hr.argmin(i, -1), rows(1), ids(9, 60, 7)),
    "arg_min_long": (lambda x, i: hr.argmin(x, -1), rows(3, 5000), ids(3, 1)),
    "cumsum": (lambda x, i: hr.cumsum(x, 1, exclusive=True), rows(7, 20, 3), ids(3, 1)),
    "cumsum_many": (lambda x, i: hr.cumsum(x, 0, reverse=True), rows(33, 90), ids(3, 1)),
    "cumprod": (lambda x, i: hr.math.cumprod(i, 0, exclusive=True, reverse=True), rows(1),
                ids(3, 50)),
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


def test_what_nothing_reads_may_be_of_unknown_shape():
    with hr.Graph().as_default():
        ids = hr.placeholder(hr.int32, [6, 4])
        table = hr.Variable(hr.ones([50, 2]))
        places = hr.unique(ids[:, 1])[1]
        sums = hr.unsorted_segment_sum(hr.gather(table, ids[:, 1]), places, 6)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            explained = session.explain(sums, {ids: np.zeros((6, 4), np.int32)})
    computed = " ".join(str(kernel) for part in explained.walk() for kernel in part.kernels)
    assert "StridedSlice" in computed
    assert "Unique" in computed
    assert "cut where" not in str(explained)


def test_elements_that_are_read_are_found_by_themselves():
    with hr.Graph().as_default():
        ids = hr.placeholder(hr.int32, [5])
        elements, places = hr.unique(ids)
        with hr.Session(config=hr.Config(**COMPILED)) as session:
            for _ in range(2):
                found, at = session.run([elements * 2, places], {ids: [7, 7, 3, 7, 1]})
                np.testing.assert_array_equal(found, [14, 6, 2])
                np.testing.assert_array_equal(at, [0, 0, 1, 0, 2])


def test_a_native_loop_that_never_refuses_is_called_as_it_is():
    with hr.Graph().as_default():
        ids = hr.placeholder(hr.int32, [40])
        x = hr.placeholder(hr.float32, [40, 3])
        y = hr.gather(x, hr.unique(ids)[1])
        with hr.Session(config=hr.Config(**COMPILED)) as session:
            for high in (3, 40, 1):
                given = np.arange(40, dtype=np.int32) % high
                table = np.ones((40, 3), np.float32).cumsum(0)
                value = session.run(y, {ids: given, x: table})
                np.testing.assert_array_equal(value, table[given])


@pytest.mark.parametrize("turned", [False, True])
def test_sparse_products_are_those_of_plain_kernels(turned):
    pairs = ids(9, 60, 2)
    x = hr.placeholder(hr.float32, [9 if turned else 11, 20])
    y = sparse_product(x, hr.constant(pairs), **({"adjoint_a": True} if turned else {}))
    given = {x: rows(*x.shape.as_list())}
    with hr.Session(config=hr.Config(executor="plain")) as session:
        want = session.run(y, given)
    for threads in (1, 3):
        with hr.Session(config=hr.Config(threads=threads, **COMPILED)) as session:
            for _ in range(2):
                found = session.run(y, given)
        # Rows are added up in another order.
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-4)


def test_rounds_with_such_native_loops_run_at_one_go():
    pairs = hr.constant(np.stack([ids(6, 20), ids(6, 20)], 1).astype(np.int64))
    matrix = hr.SparseTensor(pairs, hr.constant(rows(20)), [6, 6])
    x = hr.placeholder(hr.float32, [6, 8])

    def round_(n, x, best):
        y = hr.cumsum(hr.sparse_tensor_dense_matmul(matrix, x), 1) * 0.1
        return n + 1, hr.tanh(y), best + hr.cast(hr.argmax(y, 0), hr.int32)

    start = hr.constant(0), x, hr.zeros([8], hr.int32)
    made = hr.while_loop(lambda n, *_: n < 12, round_, start)[1:]
    given = {x: rows(6, 8)}
    with hr.Session(config=hr.Config(executor="plain")) as session:
        want = session.run(made, given)
    with hr.Session(config=hr.Config(**COMPILED)) as session:
        for _ in range(3):
            found = session.run(made, given)
        assert "runs many rounds at one go" in str(session.explain(made, given))
    np.testing.assert_allclose(found[0], want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(found[1], want[1])


@pytest.mark.needs("autodiff")
@pytest.mark.parametrize("combiner", ["sum", "mean", "sqrtn"])
def test_sparse_lookups_are_those_of_plain_kernels(combiner):
    """The distinct rows are not picked first where the looked up ones are all that is read."""
    pairs = np.stack([np.repeat(np.arange(8), 5), np.tile(np.arange(5), 8)], 1).astype(np.int64)
    table, given = rows(30, 6), ids(30, 40).astype(np.int64)
    found = []
    for config in ({"executor": "plain"}, COMPILED):
        with hr.Graph().as_default():
            named = hr.placeholder(hr.int64, [40])
            held = hr.Variable(table)
            sparse = hr.SparseTensor(hr.constant(pairs), named, [8, 5])
            made = hr.nn.embedding_lookup_sparse(held, sparse, None, combiner=combiner)
            (grad,) = hr.gradients(hr.reduce_sum(made * made), [held])
            with hr.Session(config=hr.Config(**config)) as session:
                session.run(hr.global_variables_initializer())
                for _ in range(2):
                    value = session.run([made, grad.values, grad.indices], {named: given})
                with pytest.raises(hr.errors.InvalidArgumentError, match="range"):
                    session.run(made, {named: np.full(40, 30)})
        found.append(value)
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
