"""T0: sessions that place, run and keep state on devices that pretend to be GPUs."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, NoDeviceError, NoKernelError, UninitializedError
from headrace.extend import Floating, Spec, TensorSpec, op
from headrace.runtime.engine import Engine
from headrace_cuda import driver
from headrace_cuda.testing import CALLS

GPU = "/device:cuda:0"


@pytest.fixture
def session(pretended_gpus):
    with hr.Graph().as_default(), hr.Session() as session:
        yield session


def places(session):
    """Return the kinds of devices of a session's only step, by the names of its operations."""
    (prepared,) = session._prepared.values()
    return {op.name: op.device_name.kind for op in prepared.step.plan.operations}


def test_numbers_go_to_the_gpu_where_nothing_else_is_asked(session):
    x = hr.placeholder(hr.float32, [2], name="x")
    total = hr.reduce_sum(x * 2.0, name="total")
    assert session.run(total, {x: [1, 2]}) == 6
    assert places(session)["total"] == "cuda"
    assert set(places(session).values()) == {"cuda"}


def test_strings_and_bfloat16_go_to_the_cpu(session):
    words = hr.identity(hr.constant([b"head", b"race"]), name="words")
    narrow = hr.cast(hr.constant([1.5, 2.5]), "bfloat16", name="narrow")
    zeros = hr.zeros([2], "bfloat16", name="none")
    chosen = hr.where(hr.constant([True, False]), narrow, zeros)
    with hr.Session(config=hr.Config(optimize=False)) as plain:
        got = plain.run([words, chosen])
        assert got[0].tolist() == [b"head", b"race"]
        assert got[1].dtype == ml_dtypes.bfloat16
        used = places(plain)
        assert {used[name] for name in ("words", "narrow", "none")} == {"cpu"}


@pytest.mark.parametrize(
    ("build", "dtype"),
    [
        (lambda: hr.identity(hr.constant([b"word"])), "string"),
        (lambda: hr.cast(hr.constant([1.0]), "bfloat16"), "bfloat16"),
        (lambda: hr.Variable(np.zeros(2, ml_dtypes.bfloat16)).initializer, "bfloat16"),
    ],
    ids=["string", "cast", "variable"],
)
def test_what_a_gpu_cannot_hold_is_refused_there(session, build, dtype):
    with hr.device(GPU):
        node = build()
    with pytest.raises(NoKernelError, match=f"cuda devices cannot hold {dtype}") as caught:
        session.run(node)
    assert len(str(caught.value).splitlines()) <= 12
    assert "test_cuda_session.py" in str(caught.value)


def test_a_gpu_that_is_not_there_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(driver, "LIBRARY", "libcuda_that_is_not_there.so")
    with hr.Graph().as_default(), hr.Session() as session:
        session._runtime.engine._names = None
        with hr.device(GPU):
            x = hr.constant(1.0) + 1.0
        with pytest.raises(NoDeviceError, match="asks for device '/device:cuda:0'") as caught:
            session.run(x)
    assert "no cuda device: " in str(caught.value)
    assert "there is no NVIDIA driver" in str(caught.value)


def test_variables_live_on_the_gpu(session):
    v = hr.Variable(np.arange(6.0).reshape(3, 2), name="v")
    with pytest.raises(UninitializedError, match="1 variable is not initialized: v"):
        session.run(v)
    session.run(v.initializer)
    session.run(hr.assign_add(v, np.ones((3, 2))))
    np.testing.assert_array_equal(session.run(v), np.arange(6.0).reshape(3, 2) + 1)
    assert all(str(name).endswith("cuda:0") for name in session._planner._pinned.values())


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "uint64", "float16", "complex64"])
def test_scattered_rows_add_up_in_every_dtype(session, dtype):
    v = hr.Variable(np.ones((3, 2), dtype))
    added = hr.scatter_add(v, [2, 0, 2], np.full((3, 2), 5, dtype))
    session.run(v.initializer)
    assert session.run(added)[:, 0].tolist() == [6, 1, 11]


@pytest.mark.parametrize(
    ("name", "expected"), [("mul", 12), ("div", 2), ("min", 2), ("max", 12), ("update", 2)]
)
def test_rows_scatter_in_other_ways(session, name, expected):
    v = hr.Variable(np.full((3, 2), 12 if name in ("div", "min") else 1, np.int64))
    updates = [[3, 3], [1, 1], [2, 2], [2, 2]]
    if name == "max":
        updates[0] = [12, 12]
    if name == "update":
        updates[0] = [2, 2]
    changed = getattr(hr, f"scatter_{name}")(v, [2, 0, 2, 2], np.array(updates, np.int64))
    session.run(v.initializer)
    found = session.run(changed)[2, 0]
    assert found == (1 if name == "div" else expected)


def test_slices_scatter(session):
    v = hr.Variable(np.zeros((3, 2), np.float32))
    added = hr.scatter_nd_add(v, [[0, 1], [2, 0], [0, 1]], np.ones(3, np.float32))
    session.run(v.initializer)
    assert session.run(added).tolist() == [[0, 2], [0, 0], [1, 0]]


def test_a_scattered_index_out_of_range_changes_nothing(session):
    v = hr.Variable(np.ones((3, 2), np.float32))
    session.run(v.initializer)
    with pytest.raises(ExecutionError, match=r"index 3 is out of range \[0, 3\)"):
        session.run(hr.scatter_add(v, [3], np.ones((1, 2), np.float32)))
    np.testing.assert_array_equal(session.run(v), np.ones((3, 2)))


def test_constant_shapes_make_the_host_wait_only_for_results(session):
    x = hr.placeholder(hr.float32, [None, 6])
    y = hr.reshape(x, [-1, 2, 3])[:, 1:, ::2] + hr.ones([1, 1])
    value = np.ones((4, 6), np.float32)
    session.run(y, {x: value})
    CALLS.clear()
    session.run(y, {x: value})
    assert CALLS["wait"] == 1, CALLS


def test_shapes_that_are_computed_are_read_back(session):
    x = hr.placeholder(hr.float32, None)
    y = hr.reshape(x, hr.shape(x)[::-1])
    assert session.run(y, {x: np.ones((2, 3))}).shape == (3, 2)


def test_values_cross_between_two_gpus_and_the_host(session):
    x = hr.placeholder(hr.float32, [2])
    with hr.device(GPU):
        a = x * 2.0
    with hr.device("/device:cuda:1"):
        b = a + 1.0
    with hr.device("/cpu:0"):
        c = b * 10.0
    assert session.run([a, b, c], {x: [1, 2]})[2].tolist() == [30, 50]


def test_the_branch_of_a_merge_is_on_the_device(session):
    p = hr.placeholder(hr.bool, [])
    off, on = hr.switch(hr.constant([1.0, 2.0]), p)
    merged, index = hr.merge([off * 10.0, on + 1.0])
    value, which = session.run([merged, index + 5], {p: True})
    assert (value.tolist(), which) == ([2, 3], 6)


def test_many_threads_add_up(session):
    v = hr.Variable(0.0)
    add = hr.assign_add(v, 1.0)
    session.run(v.initializer)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: session.run(add.op), range(400)))
    assert session.run(v) == 400


@pytest.mark.needs("autodiff", "train")
def test_training_runs_on_the_gpu(session):
    rng = np.random.default_rng(7)
    inputs = rng.normal(size=(40, 3)).astype(np.float32)
    classes = (inputs @ np.array([[1, -1], [0, 2], [1, 0]], np.float32)).argmax(1)
    x, t = hr.placeholder(hr.float32, [None, 3]), hr.placeholder(hr.int64, [None])
    w, b = hr.Variable(hr.zeros([3, 2])), hr.Variable(hr.zeros([2]))
    logits = hr.matmul(x, w) + b
    loss = hr.reduce_mean(hr.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits))
    step = hr.train.MomentumOptimizer(0.5, 0.9).minimize(loss)
    session.run(hr.global_variables_initializer())
    feeds = {x: inputs, t: classes}
    first = session.run(loss, feeds)
    for _ in range(30):
        session.run(step, feeds)
    assert session.run(loss, feeds) < first / 4
    assert {name.kind for name in session._planner._pinned.values()} == {"cuda"}


def test_each_gpu_is_active_for_its_own_nodes(pretended_gpus):
    engine = Engine(plugins=pretended_gpus)
    devices = [engine.device(name) for name in engine.device_names() if name.kind == "cuda"]
    seen: list[tuple[int, ...]] = []
    lock = threading.Lock()
    for device in devices:

        def from_host(array, device=device):
            with lock:
                seen.append(tuple(d.active for d in devices))
            return type(device).from_host(device, array)

        device.from_host = from_host
    graph = hr.Graph()
    with graph.as_default(), hr.Session() as session:
        session._runtime.engine = engine
        x = hr.placeholder(hr.float32, [])
        with hr.device(GPU):
            a = x + 1.0
        with hr.device("/device:cuda:1"):
            b = x + 2.0
        session.run([a, b], {x: 0})
        seen.clear()
        session.run([a, b], {x: 0})
    assert all(max(active) >= 1 for active in seen)
    assert [device.active for device in devices] == [0, 0]


@op(
    "TestCudaSharp",
    elementwise=True,
    expression=lambda s, x, y, *, beta: s.where(y > 0, s.log1p(s.exp(beta * x)) / beta, s.trunc(x)),
)
def sharp(x: Floating, y: Floating, *, beta: float = 2.0) -> Spec:
    """A softplus where ``y`` is positive."""
    return TensorSpec(x.dtype, y.shape)


def test_an_op_that_states_an_expression_runs_on_the_gpu_without_a_kernel(session):
    x = hr.placeholder(hr.float32, [3])
    y = hr.placeholder(hr.float32, [2, 3])
    node = sharp(x, y, name="sharp")
    row, grid = np.float32([-1.5, 0.5, 2]), np.float32([[1, -1, 1], [-1, 1, -1]])
    found = session.run(node, {x: row, y: grid})
    wanted = np.where(grid > 0, np.log1p(np.exp(2 * row)) / 2, np.trunc(row))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert places(session)["sharp"] == "cuda"


@pytest.mark.usefixtures("pretended_gpus")
def test_a_session_sees_as_many_gpus_as_it_asks_for():
    x = hr.placeholder_with_default([1.0, 2.0], [2])
    y = hr.exp(x, name="y")
    with hr.device("/gpu:1"):
        z = hr.exp(y, name="z")

    def seen(**counts):
        config = hr.ConfigProto(device_count=counts, allow_soft_placement=True)
        with hr.Session(config=config) as session:
            np.testing.assert_allclose(session.run(z), np.exp(np.exp([1, 2])), rtol=1e-5)
            placed = session.explain([y, z], {x: [1.0, 2.0]}).placement
            found = {name: p.device for p in placed for name in p.operations}
            kinds = [d.device_type for d in session.list_devices()]
        return [found["y"].rpartition("device:")[2], found["z"].rpartition("device:")[2], *kinds]

    assert seen() == ["cuda:0", "cuda:1", "GPU", "GPU", "CPU"]
    assert seen(GPU=1) == ["cuda:0", "cuda:0", "GPU", "CPU"]
    assert seen(GPU=0, CPU=2) == ["cpu:0", "cpu:0", "CPU", "CPU"]
    strict = hr.Session(config=hr.Config(device_count={"gpu": 1}))
    with strict, pytest.raises(NoDeviceError, match="of the session's Config leaves 1 cuda dev"):
        strict.run(z)
