"""Recurrent networks: cells against NumPy, loops against unrolled steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError, GraphError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

cells = hr.nn.rnn_cell
RNG = np.random.default_rng(0)
X = RNG.standard_normal((3, 5, 4))
LENGTHS = np.array([5, 2, 0])


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(x: Any, state: Any, kernel: Any, bias: Any) -> Any:
    c, h = state
    i, j, f, o = np.split(np.concatenate([x, h], 1) @ kernel + bias, 4, 1)
    c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
    h = sigmoid(o) * np.tanh(c)
    return h, (c, h)


def gru(x: Any, h: Any, *weights: Any) -> Any:
    gates, gates_bias, candidate, bias = weights
    r, u = np.split(sigmoid(np.concatenate([x, h], 1) @ gates + gates_bias), 2, 1)
    h = u * h + (1 - u) * np.tanh(np.concatenate([x, r * h], 1) @ candidate + bias)
    return h, h


def basic(x: Any, h: Any, kernel: Any, bias: Any) -> Any:
    h = np.tanh(np.concatenate([x, h], 1) @ kernel + bias)
    return h, h


def zeros() -> Any:
    return np.zeros((3, 2))


CELLS: dict[str, Any] = {
    "lstm": (lambda: cells.BasicLSTMCell(2), lstm, lambda: (zeros(), zeros())),
    "gru": (lambda: cells.GRUCell(2), gru, zeros),
    "basic": (lambda: cells.BasicRNNCell(2), basic, zeros),
}


def started(session: Any) -> list[Any]:
    """Give all variables random values, and return these in the order in which they were made."""
    values: list[Any] = []
    for variable in hr.global_variables():
        value = np.random.default_rng(len(values)).standard_normal(variable.shape.known)
        session.run(hr.assign(variable, value))
        values.append(value)
    return values


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("name", CELLS)
def test_sequences_against_numpy(name: str, lengths: Any) -> None:
    make, step, start = CELLS[name]
    outputs, state = hr.nn.dynamic_rnn(make(), hr.constant(X), lengths, dtype=hr.float64)
    with hr.Session() as session:
        weights = started(session)
        found, last = session.run([outputs, state])
    expected, now = [], start()
    for time in range(5):
        output, after = step(X[:, time], now, *weights)
        going = (time < (np.full(3, 5) if lengths is None else lengths))[:, None]
        expected.append(np.where(going, output, 0))
        if isinstance(now, tuple):
            now = tuple(np.where(going, a, b) for a, b in zip(after, now, strict=True))
        else:
            now = np.where(going, after, now)
    np.testing.assert_allclose(found, np.stack(expected, 1), rtol=1e-9)
    for mine, wanted in zip(np.atleast_3d(last), np.atleast_3d(now), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-9)


MORE: dict[str, Any] = {
    **{name: make for name, (make, *_) in CELLS.items()},
    "joined": lambda: cells.BasicLSTMCell(2, state_is_tuple=False),
    "full": lambda: cells.LSTMCell(3, True, 0.3, num_proj=2, proj_clip=0.25),
    "stacked": lambda: cells.MultiRNNCell([cells.GRUCell(3), cells.BasicLSTMCell(2)]),
}


@pytest.mark.parametrize("lengths", [None, LENGTHS])
@pytest.mark.parametrize("name", MORE)
def test_loops_equal_unrolled_steps_with_their_gradients(name: str, lengths: Any) -> None:
    cell, x = MORE[name](), hr.constant(X)
    outputs, state = hr.nn.dynamic_rnn(cell, x, lengths, dtype=hr.float64)
    steps = hr.unstack(x, axis=1)
    unrolled, last = hr.nn.static_rnn(cell, steps, dtype=hr.float64, sequence_length=lengths)
    targets = [x, *hr.trainable_variables()]
    assert len(targets) == 1 + len(cell.trainable_variables)
    one = hr.gradients(hr.reduce_sum(outputs * outputs), targets)
    two = hr.gradients(hr.reduce_sum(hr.stack(unrolled) ** 2), targets)
    with hr.Session() as session:
        started(session)
        looped = session.run([outputs, state, one])
        plain = session.run([hr.stack(unrolled, 1), last, two])
    for mine, theirs in zip(flat(looped), flat(plain), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def flat(values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return [leaf for value in values for leaf in flat(value)]
    return [values]


def test_both_directions() -> None:
    forwards, backwards = cells.GRUCell(2), cells.GRUCell(2)
    both, states = hr.nn.bidirectional_dynamic_rnn(
        forwards, backwards, hr.constant(X), LENGTHS, dtype=hr.float64
    )
    turned = X.copy()
    for row, length in enumerate(LENGTHS):
        turned[row, :length] = X[row, :length][::-1]
    alone, state = hr.nn.dynamic_rnn(backwards, hr.constant(turned), LENGTHS, dtype=hr.float64)
    with hr.Session() as session:
        started(session)
        (_, behind), (_, last), found, wanted = session.run([both, states, alone, state])
    for row, length in enumerate(LENGTHS):
        np.testing.assert_allclose(behind[row, :length], found[row, :length][::-1])
        assert not behind[row, length:].any()
    np.testing.assert_allclose(last, wanted)


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_both_directions_unrolled(lengths: Any) -> None:
    forwards, backwards, x = cells.GRUCell(2), cells.BasicLSTMCell(2), hr.constant(X)
    (ahead, behind), states = hr.nn.bidirectional_dynamic_rnn(
        forwards, backwards, x, lengths, dtype=hr.float64
    )
    joined, *last = hr.nn.static_bidirectional_rnn(
        forwards, backwards, hr.unstack(x, axis=1), dtype=hr.float64, sequence_length=lengths
    )
    with hr.Session() as session:
        started(session)
        one = session.run([hr.concat([ahead, behind], 2), *states])
        two = session.run([hr.stack(joined, 1), *last])
    for mine, theirs in zip(flat(one), flat(two), strict=True):
        np.testing.assert_allclose(mine, theirs)


def test_residual_cells_add_their_inputs() -> None:
    inner = cells.GRUCell(4)
    plain, _ = hr.nn.dynamic_rnn(inner, hr.constant(X), dtype=hr.float64)
    summed, _ = hr.nn.dynamic_rnn(cells.ResidualWrapper(inner), X, dtype=hr.float64)
    with hr.Session() as session:
        started(session)
        one, two = session.run([plain, summed])
    np.testing.assert_allclose(two, one + X)
    with pytest.raises(ShapeError, match="of the shape of inputs"):
        hr.nn.dynamic_rnn(
            cells.ResidualWrapper(cells.GRUCell(3, name="other")), X, dtype=hr.float64
        )


def test_dropout_of_outputs_and_states() -> None:
    inner = cells.BasicLSTMCell(50)
    cell = cells.DropoutWrapper(inner, 0.9, 0.5, 0.5, seed=3)
    outputs, state = hr.nn.dynamic_rnn(cell, hr.constant(X), dtype=hr.float64)
    with hr.Session() as session:
        session.run(hr.global_variables_initializer())
        found, last = session.run([outputs, state])
    dropped = (found == 0).mean(axis=(0, 2))
    assert np.all(np.abs(dropped - 0.5) < 0.2)
    # Other elements at every step.
    assert np.any((found[:, 0] == 0) != (found[:, 1] == 0))
    assert last.c.all()
    assert abs((last.h == 0).mean() - 0.5) < 0.2
    with pytest.raises(AttributeValueError, match=r"must be in \(0, 1\]"):
        cells.DropoutWrapper(inner, 0.0)
    with pytest.raises(AttributeValueError, match="variational_recurrent"):
        cells.DropoutWrapper(inner, variational_recurrent=True)


@pytest.mark.parametrize("shape", [[None, None, 4], [3, None, 4]])
def test_unknown_batch_and_time(shape: Any) -> None:
    cell = cells.BasicLSTMCell(2)
    x = hr.placeholder(hr.float64, shape)
    outputs, _ = hr.nn.dynamic_rnn(cell, x, dtype=hr.float64)
    major, _ = hr.nn.dynamic_rnn(
        cell, hr.transpose(x, [1, 0, 2]), dtype=hr.float64, time_major=True
    )
    with hr.Session() as session:
        started(session)
        for length in (5, 1) if shape[0] is None else (5, 1, 0):
            found, turned = session.run([outputs, major], {x: X[:, :length]})
            assert found.shape == (3, length, 2)
            np.testing.assert_allclose(turned, found.transpose(1, 0, 2))


def test_names_of_variables() -> None:
    hr.nn.dynamic_rnn(MORE["stacked"](), X, dtype=hr.float64)
    cells.BasicRNNCell(2, name="mine")(X[:, 0], np.zeros((3, 2)))
    assert [v.op_name for v in hr.global_variables()] == [
        "rnn/multi_rnn_cell/cell_0/gru_cell/gates/kernel",
        "rnn/multi_rnn_cell/cell_0/gru_cell/gates/bias",
        "rnn/multi_rnn_cell/cell_0/gru_cell/candidate/kernel",
        "rnn/multi_rnn_cell/cell_0/gru_cell/candidate/bias",
        "rnn/multi_rnn_cell/cell_1/basic_lstm_cell/kernel",
        "rnn/multi_rnn_cell/cell_1/basic_lstm_cell/bias",
        "mine/kernel",
        "mine/bias",
    ]


def test_variables_are_found_again() -> None:
    cells.BasicRNNCell(2, name="mine")(X[:, 0], np.zeros((3, 2)))
    cells.BasicRNNCell(2, name="mine", reuse=True)(X[:, 0], np.zeros((3, 2)))
    assert len(hr.global_variables()) == 2


def test_cells_of_ones_own() -> None:
    class Adding(cells.RNNCell):
        @property
        def state_size(self) -> int:
            return 4

        @property
        def output_size(self) -> int:
            return 4

        def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
            return state + inputs, state + inputs

    _, state = hr.nn.dynamic_rnn(Adding(), hr.constant(X), dtype=hr.float64)
    with hr.Session() as session:
        np.testing.assert_allclose(session.run(state), X.sum(1))


def test_what_is_refused() -> None:
    cell = cells.GRUCell(2)
    with pytest.raises(AttributeValueError, match="needs initial_state or dtype"):
        hr.nn.dynamic_rnn(cell, X)
    with pytest.raises(ShapeError, match="need 3 dimensions"):
        hr.nn.dynamic_rnn(cell, X[0], dtype=hr.float64)
    with pytest.raises(AttributeValueError, match="a list of inputs"):
        hr.nn.static_rnn(cell, [], dtype=hr.float64)
    with pytest.raises(AttributeValueError, match="integer >= 1"):
        cells.BasicLSTMCell(0)
    with pytest.raises(ShapeError, match="last dimension is known"):
        hr.nn.dynamic_rnn(cell, hr.placeholder(hr.float64, [2, 3, None]), dtype=hr.float64)


class _Alike:
    """What is asked of a cell, without being one."""

    state_size = 2
    output_size = 2

    def zero_state(self, batch_size, dtype):
        return hr.zeros([batch_size, 2], dtype)

    def __call__(self, x, state, scope=None):
        return (x, state), x + state


def test_a_cell_puts_out_what_it_says():
    with pytest.raises(GraphError, match=r"what its output_size says, 2; got \(<Tensor"):
        hr.nn.dynamic_rnn(_Alike(), hr.ones([2, 3, 2]), dtype=hr.float32)


def test_outputs_of_a_cell_have_a_dtype():
    class Counted(_Alike):
        def __call__(self, x, state, scope=None):
            return x, (state[0] + 1, state[1])

    start = (hr.zeros([2], hr.int32), hr.zeros([2, 2]))
    with pytest.raises(AttributeValueError, match="needs dtype, where states are of several"):
        hr.nn.dynamic_rnn(Counted(), hr.ones([2, 3, 2]), initial_state=start)


def test_what_is_no_cell_is_refused():
    class Sized:
        state_size = output_size = 2

        def __call__(self, x, state, scope=None):
            return x, state

    for given in (Sized(), 3, lambda x, state: (x, state)):
        with pytest.raises(ArgumentTypeError, match="state_size, output_size and zero_state; got"):
            hr.nn.dynamic_rnn(given, hr.ones([2, 3, 2]), dtype=hr.float32)
