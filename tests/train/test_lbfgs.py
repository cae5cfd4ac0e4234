"""L-BFGS: SciPy's minima in about SciPy's evaluations, and what happens off the beaten track."""

from __future__ import annotations

import json
import pathlib

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    DTypeError,
    GraphError,
    ShapeError,
    UnimplementedError,
)
from tests.children import run_python
from tests.train.lbfgs_problems import PROBLEMS, Built

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("graph", "no_races")]

# Made by generate_lbfgs_table.py with SciPy.
TABLE = json.loads(pathlib.Path(__file__).with_name("lbfgs_table.json").read_text())["problems"]
OVER = hr.train.LBFGSStatus


def descend(loss, most=400, feeds=None, executor="plain", **options):
    """Return the optimizer, and what its state and the variables are when it is done."""
    optimizer = hr.train.LBFGSOptimizer(**options)
    step = optimizer.minimize(loss)
    trained = [v for v in hr.get_default_graph().variables if v.trainable]
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(hr.global_variables_initializer())
        count = 0
        while count < most and not session.run(optimizer.status):
            session.run(step, feeds)
            count += 1
        kept = [optimizer.loss, optimizer.evaluations, optimizer.status]
        found, evaluations, status = session.run(kept)
        return found, evaluations, OVER(status), session.run(trained), count


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_it_finds_the_minimum_of_scipy_in_as_many_evaluations(problem):
    b = hr.Variable(hr.constant(problem.start))
    found, evaluations, status, *_ = descend(problem.loss(b.value(), Built), executor="plan")
    expected = TABLE[problem.name]
    assert status is not OVER.RUNNING
    assert evaluations <= 1.5 * expected["evaluations"]
    assert found <= expected["loss"] * (1 + 1e-5) + 1e-9
    if problem.certified is not None:
        np.testing.assert_allclose(found, problem.certified, rtol=1e-6, atol=1e-9)


def test_node_by_node_it_takes_the_same_steps():
    found = []
    for executor in ("plan", "plain"):
        with hr.Graph().as_default():
            b = hr.Variable(hr.constant(PROBLEMS[0].start))
            found.append(descend(PROBLEMS[0].loss(b.value(), Built), executor=executor))
    assert found[0][1:3] == found[1][1:3]
    np.testing.assert_allclose(found[0][3], found[1][3], rtol=1e-9)


def quadratic(*variables):
    return sum(hr.reduce_sum(hr.square(v - 3.0) * (i + 1.0)) for i, v in enumerate(variables))


def test_several_variables_of_float32():
    a, b = hr.Variable(hr.zeros([2, 3])), hr.Variable(hr.ones([]))
    _, _, status, (first, second), _ = descend(quadratic(a, b), gradient_tolerance=1e-3)
    assert status is not OVER.RUNNING
    np.testing.assert_allclose(first, np.full([2, 3], 3), rtol=1e-4)
    np.testing.assert_allclose(second, 3, rtol=1e-4)


def test_at_the_end_nothing_happens_until_a_variable_changes():
    v = hr.Variable(hr.zeros([4], hr.float64))
    optimizer = hr.train.LBFGSOptimizer()
    count = hr.train.create_global_step()
    step = optimizer.minimize(quadratic(v), count)
    with hr.Session(config=hr.Config(executor="plain")) as session:
        session.run(hr.global_variables_initializer())
        while not session.run(optimizer.status):
            session.run(step)
        before = session.run([v, optimizer.evaluations, *optimizer.variables()])
        session.run(step)
        after = session.run([v, optimizer.evaluations, *optimizer.variables()])
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
        steps = session.run(count)
        v.load(np.full(4, 9.0), session)
        session.run(step)
        assert session.run(optimizer.evaluations) > after[1]
        assert session.run(count) == steps + 1
        while not session.run(optimizer.status):
            session.run(step)
        np.testing.assert_allclose(session.run(v), np.full(4, 3.0), rtol=1e-5)


@pytest.mark.parametrize(("reuse", "again"), [(None, True), (True, False)])
def test_a_loss_of_fed_data_is_evaluated_anew_unless_told_otherwise(reuse, again):
    x = hr.placeholder(hr.float64, [None, 2])
    v = hr.Variable(hr.constant([5.0, 5.0], hr.float64))
    loss = hr.reduce_sum(hr.square(x * v - 1) + hr.exp(-v))
    feeds = {x: np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 2.0]])}
    fed = descend(loss, feeds=feeds, reuse_evaluation=reuse, most=50)
    with hr.Graph().as_default():
        v = hr.Variable(hr.constant([5.0, 5.0], hr.float64))
        data = hr.constant(feeds[x])
        known = descend(hr.reduce_sum(hr.square(data * v - 1) + hr.exp(-v)))
    np.testing.assert_allclose(fed[3], known[3], rtol=1e-6)
    assert (fed[1] > known[1]) == again


def test_points_where_the_loss_is_no_number_are_too_far():
    v = hr.Variable(hr.constant([4.0, 0.1, 30.0], hr.float64))
    found, _, status, (values,), _ = descend(hr.reduce_sum(v * v * 9 - hr.log(v)))
    assert status is not OVER.RUNNING
    np.testing.assert_allclose(values, np.full(3, 18**-0.5), rtol=1e-4)
    assert np.isfinite(found)


def test_a_loss_that_is_no_number_at_the_start_changes_nothing():
    v = hr.Variable(hr.constant([-1.0], hr.float64))
    _, evaluations, status, (values,), count = descend(hr.reduce_sum(hr.log(v)))
    assert (evaluations, status, count) == (1, OVER.NO_LOWER_POINT, 1)
    np.testing.assert_array_equal(values, [-1.0])


def test_a_loss_without_a_lower_point_ends():
    v = hr.Variable(hr.constant([1.0], hr.float64))
    # Its gradient says that it falls, and it does not.
    loss = hr.reduce_sum(hr.stop_gradient(hr.abs(v - 1)) - 1e-3 * v + hr.stop_gradient(1e-3 * v))
    _, evaluations, status, (values,), _ = descend(loss, max_evaluations=7)
    assert status is OVER.NO_LOWER_POINT
    assert evaluations <= 1 + 7
    np.testing.assert_array_equal(values, [1.0])


def test_a_loss_without_a_minimum_falls_on():
    v = hr.Variable(hr.constant([0.0], hr.float64))
    found, _, status, _, count = descend(hr.reduce_sum(-v), most=5)
    assert (status, count) == (OVER.RUNNING, 5)
    assert found < -1e3


def test_noise_is_the_same_at_all_points_of_a_step():
    hr.set_random_seed(1)
    v = hr.Variable(hr.ones([50], hr.float64))
    dropped = hr.nn.dropout(v * 2, rate=0.3, seed=5)
    found, *_ = descend(hr.reduce_sum(hr.square(dropped - 1)) + hr.reduce_sum(v * v), most=20)
    assert np.isfinite(found)


def test_loops_and_branches_between_variables_and_loss():
    w = hr.Variable(hr.constant([[0.3, -0.2], [0.1, 0.4]], hr.float64))
    h = hr.constant([[1.0, 2.0]], hr.float64)
    _, h = hr.while_loop(lambda k, h: k < 3, lambda k, h: (k + 1, hr.tanh(hr.matmul(h, w))), [0, h])
    z = hr.reduce_sum(h)
    loss = hr.cond(z > 0, lambda: hr.square(z - 0.5), lambda: hr.square(z - 0.25)) + 1e-3 * (
        hr.reduce_sum(w * w)
    )
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        start = session.run(loss)
    found, *_ = descend(loss)
    assert found < 0.2 * start


def test_rows_of_a_table():
    table = hr.Variable(hr.zeros([5, 2], hr.float64))
    found = hr.nn.embedding_lookup(table, hr.constant([1, 3, 3]))
    _, _, _, (values,), _ = descend(hr.reduce_sum(hr.square(found - 2)))
    np.testing.assert_allclose(values[[1, 3]], np.full([2, 2], 2), rtol=1e-5)
    np.testing.assert_array_equal(values[[0, 2, 4]], np.zeros([3, 2]))


def test_a_function_may_build_the_loss():
    v = hr.Variable(hr.zeros([2], hr.float64))
    _, _, _, (values,), _ = descend(lambda: quadratic(v))
    np.testing.assert_allclose(values, [3, 3], rtol=1e-5)


# -- what is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"history_size": 0}, "history_size must be >= 1, got 0"),
        ({"gradient_tolerance": -1.0}, "gradient_tolerance must be >= 0"),
        ({"loss_tolerance": -1.0}, "loss_tolerance must be >= 0"),
        ({"max_evaluations": 0}, "max_evaluations must be >= 1"),
        ({"sufficient_decrease": 1.0}, r"sufficient_decrease must be in \(0, 1\)"),
        ({"curvature": 1e-5}, r"curvature must be in \(0.0001, 1\)"),
        ({"name": ""}, "needs a name"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(AttributeValueError, match=message):
        hr.train.LBFGSOptimizer(**options)


def test_state_is_there_when_the_step_is():
    with pytest.raises(GraphError, match="made by minimize"):
        _ = hr.train.LBFGSOptimizer().status


def test_one_optimizer_minimizes_one_loss():
    v = hr.Variable(hr.zeros([2]))
    optimizer = hr.train.LBFGSOptimizer()
    optimizer.minimize(quadratic(v))
    with pytest.raises(GraphError, match="minimizes a loss already"):
        optimizer.minimize(quadratic(v))


def counted(v):
    count = hr.Variable(0.0, trainable=False)
    return quadratic(v) + hr.reduce_sum(count.assign_add(hr.reduce_sum(v)))


def own_gradient(v):
    return hr.custom_gradient(lambda x: (hr.reduce_sum(x * x), lambda g: g * 2 * x))(v)


def branching(v):
    return hr.cond(hr.constant(1.0) > 0.5, lambda: quadratic(v), lambda: hr.constant(0.0))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (counted, "AssignAddVariable .* has an effect or holds state"),
        (own_gradient, "IdentityN .* has a gradient of its own"),
        (branching, "If .* uses a variable itself, not only its value; read it before"),
        (lambda v: hr.constant(1.0), "depends on none of the variables"),
    ],
)
def test_losses_that_cannot_be_computed_at_several_points(build, message):
    v = hr.Variable(hr.zeros([2]))
    with pytest.raises(GraphError, match=message):
        hr.train.LBFGSOptimizer().minimize(build(v))


def test_variables_of_several_dtypes():
    a, b = hr.Variable(hr.zeros([2])), hr.Variable(hr.zeros([2], hr.float64))
    with pytest.raises(DTypeError, match="all float32, or all float64"):
        hr.train.LBFGSOptimizer().minimize(quadratic(a) + hr.cast(quadratic(b), hr.float32))


def test_a_loss_of_integers():
    with pytest.raises(DTypeError, match="a loss must be floating"):
        hr.train.LBFGSOptimizer().minimize(hr.constant(1))


def test_a_graph_without_variables():
    with pytest.raises(GraphError, match="no trainable variables"):
        hr.train.LBFGSOptimizer().minimize(hr.constant(1.0))


def test_what_is_no_variable():
    with pytest.raises(UnimplementedError, match="changes variables, got"):
        hr.train.LBFGSOptimizer().minimize(hr.constant(1.0), var_list=[hr.constant(1.0)])


def test_a_variable_with_a_constraint():
    v = hr.Variable(hr.ones([2]), constraint=hr.abs)
    with pytest.raises(GraphError, match="no regard for constraints, and Variable has one"):
        hr.train.LBFGSOptimizer().minimize(quadratic(v))


def test_a_variable_that_is_listed_twice():
    v = hr.Variable(hr.ones([2]))
    with pytest.raises(GraphError, match="listed twice"):
        hr.train.LBFGSOptimizer().minimize(quadratic(v), var_list=[v, [v]])


def test_a_step_counter_that_is_none():
    v = hr.Variable(hr.ones([2]))
    with pytest.raises(DTypeError, match="global_step must be an integer variable"):
        hr.train.LBFGSOptimizer().minimize(quadratic(v), v)


def test_a_variable_of_unknown_shape():
    v = hr.Variable(hr.placeholder(hr.float32, [None]), validate_shape=False)
    with pytest.raises(ShapeError, match="needs the shapes of all variables"):
        hr.train.LBFGSOptimizer().minimize(hr.reduce_sum(v * v))


@pytest.mark.slow
def test_the_example_reaches_the_minimum_of_digits():
    example = pathlib.Path(__file__).parents[2] / "examples" / "lbfgs_digits.py"
    done = run_python("-W", "error", example)
    first, last = done.stdout.splitlines()
    assert "evaluations: gradient is small" in first or "evaluations: loss falls" in first
    assert float(last.split()[-1]) > 0.95
