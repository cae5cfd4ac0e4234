"""The optimizer does what its formula says, with dense and with row-sparse gradients."""

import numpy as np
import pytest

import headrace as hr

START = np.float32([[1.0, -2.0], [0.5, 0.0], [3.0, -0.1]])


def expected(gradients, rate, beta):
    value, average = START.astype(np.float64), np.zeros_like(START, np.float64)
    for gradient in gradients:
        average = beta * average + (1 - beta) * gradient
        value = value - rate * np.sign(average)
    return value


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("rate", [0.1, lambda: hr.constant(0.1)], ids=["number", "function"])
def test_steps_are_those_of_the_formula(rate, executor):
    gradients = np.float32([[[1, -1], [0, 2], [3, 0]], [[-9, 1], [0, -1], [1, 0]]])
    w = hr.Variable(START)
    g = hr.placeholder(hr.float32, [3, 2])
    step = hr.SignumOptimizer(rate, beta=0.8).apply_gradients([(g, w)])
    with hr.Session(config=hr.Config(executor=executor)) as session:
        session.run(hr.global_variables_initializer())
        for gradient in gradients:
            session.run(step, {g: gradient})
        np.testing.assert_allclose(session.run(w), expected(gradients, 0.1, 0.8), rtol=1e-6)


def test_row_sparse_gradients_count_as_dense_ones():
    w = hr.Variable(START)
    loss = hr.reduce_sum(hr.gather(w, [2, 0, 2]) * [[1.0, -1.0]])
    step = hr.SignumOptimizer(0.1).minimize(loss)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        session.run(step)
        dense = np.float32([[1, -1], [0, 0], [2, -2]])
        np.testing.assert_allclose(
            session.run(w), expected([dense], 0.1, 0.9), rtol=1e-6, atol=1e-7
        )


def test_a_loss_falls():
    w = hr.Variable(START)
    loss = hr.reduce_sum(hr.square(w))
    step = hr.SignumOptimizer(0.01).minimize(loss)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        before = session.run(loss)
        for _ in range(100):
            session.run(step)
        assert session.run(loss) < 0.5 * before
