"""Every optimizer's steps agree with the same equations in NumPy, and with PyTorch's optimizers."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph")]

STEPS = 12
SHAPES = {"W": (5, 3), "b": (3,), "s": ()}
TOLERANCE = {"float64": 1e-12, "float32": 2e-5, "float16": 2e-2}
Array = Any


class Descent:
    """variable -= rate * gradient."""

    def __init__(self, rate: float) -> None:
        self.rate = rate

    def dense(self, value: Array, gradient: Array, state: dict[str, Array]) -> Array:
        return value - self.rate * gradient

    def sparse(self, value: Array, rows: Array, part: Array, state: dict[str, Array]) -> Array:
        new = value.copy()
        np.subtract.at(new, rows, self.rate * part)
        return new


class Momentum:
    """TensorFlow's ApplyMomentum and SparseApplyMomentum."""

    def __init__(self, rate: float, momentum: float, nesterov: bool = False) -> None:
        self.rate, self.momentum, self.nesterov = rate, momentum, nesterov

    def dense(self, value: Array, gradient: Array, state: dict[str, Array]) -> Array:
        state["momentum"] = state.get("momentum", 0.0) * self.momentum + gradient
        if self.nesterov:
            ahead = gradient * self.rate + state["momentum"] * self.momentum * self.rate
            return value - ahead
        return value - self.rate * state["momentum"]

    def sparse(self, value: Array, rows: Array, part: Array, state: dict[str, Array]) -> Array:
        new = value.copy()
        slot = state.setdefault("momentum", np.zeros_like(value))
        for row in np.unique(rows):
            own: dict[str, Array] = {"momentum": slot[row]}
            new[row] = self.dense(value[row], part[rows == row].sum(axis=0), own)
            slot[row] = own["momentum"]
        return new


class Adam:
    """TensorFlow's ApplyAdam, and the dense computation of its sparse Adam."""

    def __init__(
        self, rate: float = 0.001, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8
    ) -> None:
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon

    def dense(self, value: Array, gradient: Array, state: dict[str, Array]) -> Array:
        state["t"] = t = state.get("t", 0) + 1
        state["m"] = self.beta1 * state.get("m", 0.0) + (1 - self.beta1) * gradient
        state["v"] = self.beta2 * state.get("v", 0.0) + (1 - self.beta2) * gradient**2
        rate = self.rate * np.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)
        return value - rate * state["m"] / (np.sqrt(state["v"]) + self.epsilon)

    def sparse(self, value: Array, rows: Array, part: Array, state: dict[str, Array]) -> Array:
        whole = np.zeros_like(value)
        np.add.at(whole, rows, part)
        return self.dense(value, whole, state)


Case = tuple[Callable[[], Any], Any]
CASES: dict[str, Case] = {
    "descent": (lambda: hr.train.GradientDescentOptimizer(0.3), Descent(0.3)),
    "descent, a tensor": (
        lambda: hr.train.GradientDescentOptimizer(hr.constant(0.25)),
        Descent(0.25),
    ),
    "descent, a function": (
        lambda: hr.train.GradientDescentOptimizer(lambda: 0.3),
        Descent(0.3),
    ),
    "descent, a NumPy scalar": (
        lambda: hr.train.GradientDescentOptimizer(np.float64(0.3)),
        Descent(0.3),
    ),
    "momentum": (lambda: hr.train.MomentumOptimizer(0.1, 0.9), Momentum(0.1, 0.9)),
    "momentum, tensors": (
        lambda: hr.train.MomentumOptimizer(hr.constant(0.125), lambda: hr.constant(0.5)),
        Momentum(0.125, 0.5),
    ),
    "nesterov": (
        lambda: hr.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        Momentum(0.1, 0.9, nesterov=True),
    ),
    "adam": (lambda: hr.train.AdamOptimizer(), Adam()),
    "adam, all set": (
        lambda: hr.train.AdamOptimizer(0.1, 0.8, 0.95, 1e-3),
        Adam(0.1, 0.8, 0.95, 1e-3),
    ),
    "adam, no epsilon": (lambda: hr.train.AdamOptimizer(epsilon=1e-30), Adam(epsilon=1e-30)),
    "adam, tensors": (
        lambda: hr.train.AdamOptimizer(
            hr.constant(0.125), hr.constant(0.75), lambda: 0.95, hr.constant(2.0**-10)
        ),
        Adam(0.125, 0.75, 0.95, 2.0**-10),
    ),
}


def variables(dtype: str) -> dict[str, hr.Variable]:
    random = np.random.default_rng(1)
    return {
        name: hr.Variable(random.normal(size=shape).astype(dtype), name=name)
        for name, shape in SHAPES.items()
    }


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_dense(case: str, dtype: str) -> None:
    make, reference = CASES[case]
    vs = variables(dtype)
    feeds = {name: hr.placeholder(v.dtype, v.shape) for name, v in vs.items()}
    counter = hr.train.get_or_create_global_step()
    step = make().apply_gradients([(feeds[n], vs[n]) for n in vs], global_step=counter)
    random = np.random.default_rng(2)
    states: dict[str, dict[str, Array]] = {name: {} for name in vs}
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        values = {n: v.astype(np.float64) for n, v in session.run(vs).items()}
        for _ in range(STEPS):
            gradients = {n: random.normal(size=s).astype(dtype) for n, s in SHAPES.items()}
            session.run(step, {feeds[n]: g for n, g in gradients.items()})
            for n, g in gradients.items():
                values[n] = reference.dense(values[n], np.asarray(g, np.float64), states[n])
            found = session.run(vs)
            for n in vs:
                assert found[n].dtype == dtype
                np.testing.assert_allclose(found[n], values[n], rtol=0, atol=TOLERANCE[dtype])
        assert session.run(counter) == STEPS


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_sparse(case: str, dtype: str) -> None:
    make, reference = CASES[case]
    table = hr.Variable(np.random.default_rng(3).normal(size=(6, 2)).astype(dtype), name="table")
    part, rows = hr.placeholder(table.dtype, [None, 2]), hr.placeholder(hr.int32, [None])
    slices = hr.IndexedSlices(part, rows, hr.constant([6, 2]))
    optimizer = make()
    step = optimizer.apply_gradients([(slices, table)])
    random = np.random.default_rng(4)
    state: dict[str, Array] = {}
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        value = session.run(table).astype(np.float64)
        for count in [4, 1, 7, 0, 3, 9, 2]:
            # Row 5 never comes, others come several times in one step.
            indices = random.integers(0, 5, count).astype(np.int32)
            gradient = random.normal(size=(count, 2)).astype(dtype)
            session.run(step, {part: gradient, rows: indices})
            value = reference.sparse(value, indices, gradient.astype(np.float64), state)
            np.testing.assert_allclose(session.run(table), value, rtol=0, atol=TOLERANCE[dtype])
        for name in optimizer.get_slot_names():
            slot = session.run(optimizer.get_slot(table, name))
            np.testing.assert_allclose(slot, state[name], rtol=0, atol=TOLERANCE[dtype])


def test_rows_that_a_sparse_gradient_does_not_name_stay_with_momentum() -> None:
    table = hr.Variable(np.ones((3, 1)), name="table")
    loss = hr.reduce_sum(hr.square(hr.gather(table, [0, 0, 2])))
    step = hr.train.MomentumOptimizer(0.125, 0.5).minimize(loss)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        session.run(step)
        # Row 0 counts twice: 1 - 4 / 8 = 0.5, then 0.5 - (0.5 * 4 + 2) / 8 = 0.
        np.testing.assert_array_equal(session.run(table), [[0.0], [1.0], [0.4375]])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("case", ["descent", "momentum", "adam, all set"])
def test_short_floats(case: str, dtype: str) -> None:
    make, reference = CASES[case]
    kind = hr.as_dtype(dtype)
    variable = hr.Variable(np.array([1.0, -2.0]).astype(kind.numpy), name="x")
    gradient = np.array([0.5, -0.25])
    step = make().apply_gradients([(hr.constant(gradient, kind), variable)])
    state: dict[str, Array] = {}
    value = np.array([1.0, -2.0])
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        for _ in range(5):
            session.run(step)
            value = reference.dense(value, gradient, state)
        np.testing.assert_allclose(session.run(variable).astype(np.float64), value, atol=0.05)


def test_a_rate_that_is_a_variable_is_read_in_each_step() -> None:
    rate = hr.Variable(0.5, trainable=False, name="rate")
    x = hr.Variable(0.0, name="x")
    step = hr.train.GradientDescentOptimizer(rate).minimize(2.0 * x)
    slower = rate.assign(0.25)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        session.run(slower)
        session.run(step)
        assert session.run(x) == -1.5


def test_a_rate_that_decays_with_the_global_step() -> None:
    counter = hr.train.create_global_step()
    x = hr.Variable(0.0, name="x")
    smooth = hr.train.exponential_decay(1.0, counter, 2, 0.25)
    stairs = hr.train.exponential_decay(1.0, counter, 2, 0.25, staircase=True)
    step = hr.train.GradientDescentOptimizer(smooth).minimize(-x, global_step=counter)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        seen = []
        for _ in range(4):
            seen.append(session.run([smooth, stairs]))
            session.run(step)
        np.testing.assert_allclose(seen, [[1, 1], [0.5, 1], [0.25, 0.25], [0.125, 0.25]])
        np.testing.assert_allclose(session.run(x), 1.875)


def test_weights_of_the_losses_elements() -> None:
    x = hr.Variable(np.zeros(3), name="x")
    weights = np.array([1.0, 0.0, -2.0])
    step = hr.train.GradientDescentOptimizer(1.0).minimize(3.0 * x, grad_loss=weights)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        np.testing.assert_array_equal(session.run(x), -3 * weights)


def test_two_calls_share_the_state_of_one_optimizer() -> None:
    x = hr.Variable(0.0, name="x")
    optimizer = hr.train.MomentumOptimizer(1.0, 0.5)
    up, down = optimizer.minimize(-x), optimizer.minimize(x)
    assert [v.op_name for v in optimizer.variables()] == ["x/Momentum"]
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(up)
        session.run(down)
        assert session.run([x, optimizer.get_slot(x, "momentum")]) == [0.5, 0.5]


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_concurrent_steps_of_one_write_each_lose_nothing(sparse: bool) -> None:
    x = hr.Variable(np.zeros((2, 3)), name="x")
    loss = -hr.reduce_sum(hr.gather(x, [0, 1]) if sparse else x)
    step = hr.train.GradientDescentOptimizer(1.0, use_locking=True).minimize(loss)
    with hr.Session() as session, ThreadPoolExecutor(8) as pool:
        session.run(hr.global_variables_initializer())
        work = [pool.submit(lambda: [session.run(step) for _ in range(100)]) for _ in range(8)]
        for future in work:
            future.result(30)
        assert (session.run(x) == 800).all()


class TestTorch:
    """Dense steps equal those of torch.optim, where PyTorch is installed."""

    @pytest.mark.parametrize(
        ("case", "name", "options"),
        [
            ("descent", "SGD", {"lr": 0.3}),
            ("momentum", "SGD", {"lr": 0.1, "momentum": 0.9}),
            ("nesterov", "SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
            # PyTorch's epsilon is scaled by the bias correction, so it must not count.
            ("adam, no epsilon", "Adam", {"eps": 1e-30}),
        ],
    )
    def test_equal(self, case: str, name: str, options: dict[str, Any]) -> None:
        torch = pytest.importorskip("torch")
        data = np.random.default_rng(5).normal(size=(20, 4))
        start = np.random.default_rng(6).normal(size=(4, 3))

        w = hr.Variable(start, name="w")
        step = CASES[case][0]().minimize(hr.reduce_mean(hr.square(hr.tanh(hr.matmul(data, w)))))
        theirs = torch.tensor(start, requires_grad=True)
        optimizer = getattr(torch.optim, name)([theirs], **options)
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            for _ in range(30):
                session.run(step)
                optimizer.zero_grad()
                (torch.tanh(torch.tensor(data) @ theirs) ** 2).mean().backward()
                optimizer.step()
            np.testing.assert_allclose(session.run(w), theirs.detach().numpy(), rtol=1e-9)
