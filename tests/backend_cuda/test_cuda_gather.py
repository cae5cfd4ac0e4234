"""T1: picks of slices as kernels of compiled steps."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cuda.testing.host_compiler import host_compiler
from headrace_cuda.testing.platform import FakePlatform

pytestmark = [
    pytest.mark.needs("autodiff", "train"),
    pytest.mark.skipif(host_compiler() is None, reason="there is no C++ compiler"),
]

COMPILED = hr.Config(compile_after=0, verify=True)


@pytest.fixture(autouse=True)
def graph(compiling_gpus):
    with hr.Graph().as_default() as graph, hr.device("/device:cuda:0"):
        yield graph


def drawn(rng, shape, dtype):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    return rng.integers(-100, 100, shape).astype(dtype)


CASES = {
    "rows": ((7, 3), (5,), 0, 0),
    "one row": ((7, 3), (), 0, 0),
    "columns": ((4, 6), (2, 3), 1, 0),
    "the last axis": ((2, 3, 5), (4,), -1, 0),
    "within batches": ((3, 4, 2), (3, 5), 1, 1),
    "behind batches": ((2, 3, 4, 2), (2, 2), 2, 1),
    "within two batches": ((2, 3, 4), (2, 3, 2), 2, 2),
    "many": ((50, 9), (70, 3), 0, 0),
}


KINDS = [("float32", "int32"), ("bool", "int64")]


@pytest.mark.parametrize(("dtype", "index"), KINDS)
@pytest.mark.parametrize("case", CASES)
def test_picks_are_those_of_numpy(case, index, dtype):
    shape, indices_shape, axis, batch_dims = CASES[case]
    rng = np.random.default_rng(3)
    params = drawn(rng, shape, dtype)
    indices = rng.integers(0, shape[axis], indices_shape).astype(index)
    x, at = hr.placeholder(dtype, shape), hr.placeholder(index, indices_shape)
    picked = hr.gather(x, at, axis=axis, batch_dims=batch_dims)
    with hr.Session(config=hr.Config(executor="plain")) as session:
        expected = session.run(picked, {x: params, at: indices})
    with hr.Session(config=COMPILED) as session:
        np.testing.assert_array_equal(session.run(picked, {x: params, at: indices}), expected)
        (part,) = session.explain(picked, {x: params, at: indices}).parts
    assert [work.name for work in part.report.works] == ["gather"]


@pytest.mark.parametrize("wrong", [-1, 7, 2**31 - 1])
def test_an_index_out_of_range_is_told_and_nothing_is_changed(wrong):
    table = hr.Variable(np.arange(21, dtype=np.float32).reshape(7, 3))
    at = hr.placeholder(hr.int32, [4])
    count = hr.Variable(0.0)
    total = hr.reduce_sum(hr.gather(table, at))
    with hr.control_dependencies([total]):
        step = hr.assign_add(count, total)
    with hr.Session(config=COMPILED) as session:
        session.run(hr.global_variables_initializer())
        for turn in range(3):
            session.run(step, {at: [0, 1, 2, 6]})
            with pytest.raises(
                hr.errors.InvalidInputError,
                match=rf"Gather.*index {wrong} is out of range \[0, 7\) of axis 0 of shape",
            ):
                session.run(step, {at: [0, wrong, 2, 6]})
            assert session.run(count) == sum([*range(9), 18, 19, 20]) * (turn + 1)


def test_an_index_that_the_step_computes_is_refused_too():
    table = hr.Variable(np.zeros((7, 3), np.float32))
    at = hr.placeholder(hr.int32, [4])
    picked = hr.gather(table, at * 2 + 1)
    with hr.Session(config=COMPILED) as session:
        session.run(table.initializer)
        assert session.run(picked, {at: [0, 1, 2, 2]}).shape == (4, 3)
        with pytest.raises(
            hr.errors.InvalidInputError, match=r"index is out of range \[0, 7\) of axis 0"
        ):
            session.run(picked, {at: [0, 1, 2, 3]})


def test_embeddings_train_in_place(monkeypatch):
    table = hr.Variable(np.ones((30, 4), np.float32))
    at = hr.placeholder(hr.int64, [6])
    loss = hr.reduce_sum(hr.square(hr.nn.embedding_lookup(table, at)))
    step = hr.train.GradientDescentOptimizer(0.1).minimize(loss)
    found = []
    for config in (COMPILED, hr.Config(executor="plain")):
        with hr.Session(config=config) as session:
            session.run(table.initializer)
            losses = [session.run([loss, step], {at: [1, 5, 1, 9, 29, 0]})[0] for _ in range(5)]
            found.append((losses, session.run(table)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6)


def test_what_no_group_takes_gets_a_kernel_by_itself(monkeypatch):
    opened = []
    begin = FakePlatform.__init__
    monkeypatch.setattr(
        FakePlatform, "__init__", lambda self, *a: begin(self, *a) or opened.append(self)
    )
    x = hr.placeholder(hr.float32, [4, 6])
    y = hr.matmul(hr.reshape(hr.transpose(x), [4, 6]), hr.ones([6, 2]))
    given = np.arange(24, dtype=np.float32).reshape(4, 6)
    with hr.Session(config=COMPILED) as session:
        for _ in range(4):
            np.testing.assert_array_equal(
                session.run(y, {x: given}), given.T.reshape(4, 6) @ np.ones((6, 2))
            )
        (part,) = session.explain(y, {x: given}).parts
    assert [work.fused for work in part.report.works] == [True, True]
    assert opened[0].replayed == 2


def test_functions_that_cuda_has_not_stay_with_plain_kernels():
    x = hr.placeholder(hr.float32, [5])
    y = hr.math.digamma(x * 2.0) + hr.math.zeta(x + 2.0, 3.0)
    given = np.array([0.5, 1.0, 2.0, 3.5, 7.0], np.float32)
    found = []
    for config in (COMPILED, hr.Config(executor="plain")):
        with hr.Session(config=config) as session:
            found.append(session.run(y, {x: given}))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)
