"""What optimizers take besides a loss, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    InvalidArgumentError,
    UnimplementedError,
)

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph", "no_races")]


def descent() -> hr.train.Optimizer:
    return hr.train.GradientDescentOptimizer(0.5)


def after(step: hr.Operation, *variables: hr.Variable) -> list[Any]:
    """Return variables after one step."""
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        return session.run(list(variables))


class TestGates:
    @pytest.mark.parametrize("gate", [0, 1, 2])
    def test_give_the_same_results(self, gate: int) -> None:
        a, b = hr.Variable(2.0), hr.Variable([3.0, 4.0])
        c = hr.Variable(1.0)
        loss = hr.reduce_sum(a * b)
        step = descent().minimize(loss, None, [a, b, c], gate)
        found = after(step, a, b, c)
        np.testing.assert_array_equal(found[0], -1.5)
        np.testing.assert_array_equal(found[1], [2.0, 3.0])
        assert found[2] == 1.0

    def test_of_the_graph_lets_no_gradient_be_used_before_all_are_there(self) -> None:
        a, b = hr.Variable([1.0, 2.0]), hr.Variable([3.0, 4.0])
        loss = hr.reduce_sum(hr.gather(a, [1]) * b)
        pairs = descent().compute_gradients(loss, gate_gradients=hr.train.Optimizer.GATE_GRAPH)
        assert isinstance(pairs[0][0], hr.IndexedSlices)
        tensors = [pairs[0][0].values, pairs[1][0]]
        gates = [set(tensor.op.control_inputs) for tensor in tensors if tensor is not None]
        assert gates[0] == gates[1] != set()

    def test_of_another_value(self) -> None:
        with pytest.raises(AttributeValueError, match=r"GATE_NONE, GATE_OP or GATE_GRAPH, got 7"):
            descent().minimize(hr.square(hr.Variable(1.0)), gate_gradients=7)


class TestLosses:
    def test_may_be_functions(self) -> None:
        x = hr.Variable(1.0)
        assert after(descent().minimize(lambda: x * 3.0), x) == [-0.5]

    def test_may_be_colocated_and_aggregated(self) -> None:
        x = hr.Variable(1.0)
        step = descent().minimize(
            hr.square(x) + x, None, None, 1, None, colocate_gradients_with_ops=True
        )
        assert after(step, x) == [-0.5]

    @pytest.mark.parametrize("name", ["ADD_N", "DEFAULT", "EXPERIMENTAL_TREE"])
    def test_may_be_aggregated(self, name: str) -> None:
        x = hr.Variable(1.0)
        method = getattr(hr.AggregationMethod, name)
        step = descent().minimize(hr.square(x) + x, aggregation_method=method)
        assert after(step, x) == [-0.5]

    def test_are_not_aggregated_otherwise(self) -> None:
        x = hr.Variable(1.0)
        with pytest.raises(AttributeValueError, match=r"one of hr\.AggregationMethod, got 9"):
            descent().minimize(hr.square(x) + x, aggregation_method=9)

    def test_may_be_weighted(self) -> None:
        x = hr.Variable([1.0, 1.0])
        step = descent().minimize(x * 2.0, None, None, 1, None, False, "learn", [1.0, 3.0])
        assert step.name == "learn"
        np.testing.assert_array_equal(after(step, x), [[0.0, -2.0]])


class TestVariables:
    def test_may_be_nested(self) -> None:
        a, b, c = (hr.Variable(1.0, name=name) for name in "abc")
        pairs = descent().compute_gradients(a * b * c, [[c], (a, {"b": b})])
        assert [v for _, v in pairs] == [c, a, b]
        assert [v for _, v in descent().compute_gradients(a * b, b)] == [b]

    def test_may_be_tensors_for_their_gradients(self) -> None:
        x = hr.Variable(3.0)
        y = hr.square(x)
        ((gradient, source),) = descent().compute_gradients(y * 2.0, [y])
        assert source is y
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            assert session.run(gradient) == 2.0

    def test_of_a_scope_have_slots_in_it(self) -> None:
        x = hr.Variable(1.0, name="x")
        first, second = hr.train.AdamOptimizer(), hr.train.AdamOptimizer()
        with hr.variable_scope("outer"):
            first.minimize(hr.square(x))
        with hr.name_scope("inner"):
            second.minimize(hr.square(x))
        names = [[v.op_name for v in optimizer.variables()] for optimizer in (first, second)]
        assert names == [
            ["outer/beta1_power", "outer/beta2_power", "outer/x/Adam", "outer/x/Adam_1"],
            ["inner/beta1_power", "inner/beta2_power", "x/Adam", "x/Adam_1"],
        ]

    def test_are_constrained_after_row_sparse_updates_too(self) -> None:
        x = hr.Variable([[3.0], [5.0]], constraint=lambda value: hr.minimum(value, 2.0))
        step = descent().minimize(hr.reduce_sum(hr.gather(x, [0])))
        np.testing.assert_array_equal(after(step, x), [[[2.0], [2.0]]])


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "adagrad": (lambda: hr.train.AdagradOptimizer(0.1, 0.0), "initial_accumulator_value .* above"),
    "adagrad da": (
        lambda: hr.train.AdagradDAOptimizer(0.1, hr.Variable(0), -1.0),
        "initial_gradient_squared_accumulator_value must be above 0, got -1.0",
    ),
    "proximal adagrad": (
        lambda: hr.train.ProximalAdagradOptimizer(0.1, 0.0),
        "initial_accumulator_value must be above 0, got 0.0",
    ),
    "ftrl, accumulator": (
        lambda: hr.train.FtrlOptimizer(0.1, initial_accumulator_value=-0.1),
        "initial_accumulator_value must be at least 0, got -0.1",
    ),
    "ftrl, power": (
        lambda: hr.train.FtrlOptimizer(0.1, 0.5),
        "learning_rate_power must be at most 0, got 0.5",
    ),
    "ftrl, l1": (
        lambda: hr.train.FtrlOptimizer(0.1, l1_regularization_strength=-1.0),
        "l1_regularization_strength must be at least 0",
    ),
    "ftrl, l2": (
        lambda: hr.train.FtrlOptimizer(0.1, l2_regularization_strength=-1.0),
        "l2_regularization_strength must be at least 0",
    ),
    "ftrl, shrinkage": (
        lambda: hr.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=-1.0),
        "l2_shrinkage_regularization_strength must be at least 0",
    ),
    "lars, momentum": (
        lambda: hr.train.LARSOptimizer(0.1, momentum=-0.9),
        "momentum must be at least 0, got -0.9",
    ),
    "lars, decay": (
        lambda: hr.train.LARSOptimizer(0.1, weight_decay=-0.9),
        "weight_decay must be at least 0, got -0.9",
    ),
    "lion": (lambda: hr.train.LionOptimizer("fast"), "Lion: learning_rate must be a number"),
    "rmsprop": (lambda: hr.train.RMSPropOptimizer(0.1, [0.9]), "RMSProp: decay must be a number"),
    "adamw": (lambda: hr.train.AdamWOptimizer(None), "AdamW: weight_decay must be a number"),
    "weight decay of a class": (
        lambda: hr.train.extend_with_decoupled_weight_decay(hr.train.Optimizer),
        r"weight decay is for subclasses of hr\.train\.ElementwiseOptimizer, got",
    ),
    "average": (lambda: hr.train.MovingAverageOptimizer(0.9), "opt must be an optimizer, got 0.9"),
    "arguments of the base class": (
        lambda: hr.train.Optimizer("Mine", False),
        "the arguments of Optimizer are use_locking and name, in this order",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    make, message = REFUSED[case]
    with pytest.raises(AttributeValueError, match=message) as caught:
        make()
    assert isinstance(caught.value, InvalidArgumentError)


@pytest.mark.parametrize("step", [3, None, np.zeros(2)])
def test_a_counter_that_is_none(step: Any) -> None:
    with pytest.raises(DTypeError, match="global_step must be an integer scalar variable or"):
        hr.train.AdagradDAOptimizer(0.1, step)
    with pytest.raises(DTypeError, match="global_step must be an integer scalar variable or"):
        hr.train.AdagradDAOptimizer(0.1, hr.Variable(1.0))


def test_rows_that_are_none() -> None:
    x = hr.Variable(np.zeros((3, 2)))
    rows = hr.placeholder(hr.int32, [None])
    for make in (descent, lambda: hr.train.AdagradOptimizer(0.1), hr.train.AdamOptimizer):
        slices = hr.IndexedSlices(hr.ones([1, 2], hr.float64), rows, hr.constant([3, 2]))
        step = make().apply_gradients([(slices, x)])
        with hr.Session() as session:
            session.run(hr.global_variables_initializer())
            with pytest.raises(hr.errors.InvalidArgumentError, match=r"3|out of range|rows"):
                session.run(step, {rows: [3]})
            # Nothing is half done.
            np.testing.assert_array_equal(session.run(x), np.zeros((3, 2)))


class TestWeightDecay:
    def test_is_of_the_listed_variables(self) -> None:
        a, b = hr.Variable(1.0), hr.Variable(1.0)
        optimizer = hr.train.MomentumWOptimizer(0.25, 0.5, 0.9)
        step = optimizer.minimize(a * 0.0 + b * 0.0, decay_var_list=[a])
        assert after(step, a, b) == [0.75, 1.0]

    def test_may_be_a_function(self) -> None:
        x = hr.Variable(1.0)
        optimizer = hr.train.AdamWOptimizer(lambda: hr.constant(0.5), learning_rate=0.0)
        assert after(optimizer.minimize(x * 1.0), x) == [0.5]

    def test_of_row_sparse_gradients_is_of_the_named_rows(self) -> None:
        kind = hr.train.extend_with_decoupled_weight_decay(hr.train.GradientDescentOptimizer)
        x = hr.Variable([[1.0], [1.0]])
        loss = hr.reduce_sum(hr.gather(x, [0, 0]))
        step = kind(weight_decay=0.5, learning_rate=0.25).minimize(loss)
        np.testing.assert_array_equal(after(step, x), [[[0.0], [1.0]]])

    def test_comes_before_an_update_that_depends_on_the_value(self) -> None:
        kind = hr.train.extend_with_decoupled_weight_decay(
            hr.train.ProximalGradientDescentOptimizer
        )
        x = hr.Variable(1.0)
        step = kind(0.5, learning_rate=0.25, l1_regularization_strength=1.0).minimize(x * 0.0)
        # Half of it, less a quarter.
        assert after(step, x) == [0.25]


def lion(value: Any, gradients: Any, rate: float, beta1: float, beta2: float, decay: float) -> Any:
    """Algorithm 2 of the paper, in float64."""
    m = np.zeros_like(value)
    for gradient in gradients:
        direction = np.sign(beta1 * m + (1 - beta1) * gradient)
        value = value - rate * (direction + decay * value)
        m = beta2 * m + (1 - beta2) * gradient
    return value, m


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("given", [(0.1, 0.9, 0.99, 0.0), (0.05, 0.8, 0.9, 0.3)])
def test_lion(given: tuple[float, ...], sparse: bool, executor: str) -> None:
    random = np.random.default_rng(1)
    start, gradients = random.normal(size=(4, 3)), random.normal(size=(10, 4, 3))
    rows = [3, 1, 3]
    x = hr.Variable(start)
    gradient = hr.placeholder(hr.float64, [3, 3] if sparse else [4, 3])
    slices = hr.IndexedSlices(gradient, hr.constant(rows), hr.constant([4, 3]))
    optimizer = hr.train.LionOptimizer(*given)
    step = optimizer.apply_gradients([(slices if sparse else gradient, x)])
    if sparse:
        parts, gradients = gradients[:, :3], np.zeros((10, 4, 3))
        for part, whole in zip(parts, gradients, strict=True):
            np.add.at(whole, rows, part)
    else:
        parts = gradients
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(hr.global_variables_initializer())
        for part in parts:
            session.run(step, {gradient: part})
        found = session.run([x, optimizer.get_slot(x, "m")])
    for got, expected in zip(found, lion(start, gradients, *given), strict=True):
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_a_gradient_of_tensors_cannot_be_applied() -> None:
    x = hr.Variable(1.0)
    read = x.value()
    pairs = descent().compute_gradients(hr.square(read), [read])
    with pytest.raises(UnimplementedError, match="changes variables, got <Tensor"):
        descent().apply_gradients(pairs)


# Arguments that are numbers, of optimizers that take tensors and functions for them, too.
GIVEN: dict[str, tuple[str, dict[str, float]]] = {
    "adagrad": ("AdagradOptimizer", {"learning_rate": 0.5}),
    "adadelta": ("AdadeltaOptimizer", {"learning_rate": 0.5, "rho": 0.75, "epsilon": 0.25}),
    "rmsprop": (
        "RMSPropOptimizer",
        {"learning_rate": 0.5, "decay": 0.75, "momentum": 0.5, "epsilon": 0.25},
    ),
    "ftrl": (
        "FtrlOptimizer",
        {
            "learning_rate": 0.5,
            "learning_rate_power": -0.5,
            "l1_regularization_strength": 0.25,
            "l2_regularization_strength": 0.5,
            "l2_shrinkage_regularization_strength": 0.25,
        },
    ),
    "proximal descent": (
        "ProximalGradientDescentOptimizer",
        {
            "learning_rate": 0.5,
            "l1_regularization_strength": 0.25,
            "l2_regularization_strength": 0.5,
        },
    ),
    "adamw": ("AdamWOptimizer", {"weight_decay": 0.5, "learning_rate": 0.5, "beta1": 0.75}),
    "lars": (
        "LARSOptimizer",
        {"learning_rate": 0.5, "momentum": 0.5, "weight_decay": 0.25, "eeta": 0.25},
    ),
    "lion": ("LionOptimizer", {"learning_rate": 0.5, "beta1": 0.75, "weight_decay": 0.25}),
}


@pytest.mark.parametrize("dtype", ["float16", "float64"])
@pytest.mark.parametrize("case", GIVEN)
def test_hyperparameters_may_be_tensors_or_functions(case: str, dtype: str) -> None:
    name, numbers = GIVEN[case]
    forms: list[Callable[[float], Any]] = [
        lambda value: value,
        hr.constant,
        lambda value: lambda: value,
        lambda value: hr.Variable(value, trainable=False),
    ]
    found = []
    for form in forms:
        with hr.Graph().as_default():
            start = hr.placeholder(dtype, [None])
            x = hr.Variable(start, name="x", validate_shape=False)
            optimizer = getattr(hr.train, name)(**{k: form(v) for k, v in numbers.items()})
            step = optimizer.apply_gradients([(hr.constant([0.5, -1.0], dtype), x)])
            with hr.Session() as session:
                session.run(hr.global_variables_initializer(), {start: [1.0, 0.125]})
                for _ in range(3):
                    session.run(step)
                found.append(session.run(x).astype(np.float64))
    assert np.isfinite(found).all()
    assert (found[0] != [1.0, 0.125]).all()
    tolerance = 5e-3 if dtype == "float16" else 1e-9
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=tolerance, atol=tolerance)
