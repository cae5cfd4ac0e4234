"""Cells say what they were made with, and are made again of that."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ArgumentTypeError, AttributeValueError

ONES = {"class_name": "Ones", "config": {"dtype": "float32"}}
CELLS: dict[str, Any] = {
    "basic": lambda: hr.nn.rnn_cell.BasicRNNCell(3),
    "gru": lambda: hr.nn.rnn_cell.GRUCell(3, kernel_initializer=hr.ones_initializer()),
    "lstm": lambda: hr.nn.rnn_cell.LSTMCell(
        3, activation=hr.nn.relu, initializer=hr.zeros_initializer(), name="mine"
    ),
    "basic lstm": lambda: hr.nn.rnn_cell.BasicLSTMCell(3),
    "several": lambda: hr.nn.rnn_cell.MultiRNNCell(
        [hr.nn.rnn_cell.BasicRNNCell(2), hr.nn.rnn_cell.GRUCell(3, activation=hr.sigmoid)]
    ),
    "residual": lambda: hr.nn.rnn_cell.ResidualWrapper(hr.nn.rnn_cell.BasicRNNCell(2)),
    "dropout": lambda: hr.nn.rnn_cell.DropoutWrapper(
        hr.nn.rnn_cell.BasicRNNCell(3), input_keep_prob=0.5, seed=3
    ),
}
# As TensorFlow 1.15 has them; it calls the first cell of a graph ``basic_rnn_cell`` + number, too.
CONFIGS: dict[str, dict[str, Any]] = {
    "basic": {"num_units": 3, "activation": "tanh", "reuse": None},
    "gru": {
        "num_units": 3,
        "kernel_initializer": ONES,
        "bias_initializer": None,
        "activation": "tanh",
        "reuse": None,
    },
    "lstm": {
        "num_units": 3,
        "use_peepholes": False,
        "cell_clip": None,
        "initializer": {"class_name": "Zeros", "config": {"dtype": "float32"}},
        "num_proj": None,
        "proj_clip": None,
        "num_unit_shards": None,
        "num_proj_shards": None,
        "forget_bias": 1.0,
        "state_is_tuple": True,
        "activation": "relu",
        "reuse": None,
    },
    "basic lstm": {
        "num_units": 3,
        "forget_bias": 1.0,
        "state_is_tuple": True,
        "activation": "tanh",
        "reuse": None,
    },
}


@pytest.mark.parametrize("kind", CONFIGS)
def test_configs_are_those_of_tensorflow(kind: str) -> None:
    with hr.Graph().as_default():
        cell = CELLS[kind]()
    own = {"name": cell.name, "trainable": True, "dtype": None}
    assert cell.get_config() == own | CONFIGS[kind]


def test_wrappers_hold_the_cell_inside() -> None:
    with hr.Graph().as_default():
        found = CELLS["dropout"]().get_config()
    assert found["cell"]["class_name"] == "BasicRNNCell"
    assert found["cell"]["config"]["num_units"] == 3
    assert (found["input_keep_prob"], found["output_keep_prob"], found["seed"]) == (0.5, 1.0, 3)


@pytest.mark.needs("backend-cpu")
@pytest.mark.parametrize("kind", [kind for kind in CELLS if kind != "dropout"])
def test_cells_are_made_again(kind: str) -> None:
    outputs = []
    with hr.Graph().as_default():
        first = CELLS[kind]()
    config = json.loads(json.dumps(first.get_config()))
    for make in (CELLS[kind], lambda: type(first).from_config(config)):
        with hr.Graph().as_default():
            hr.set_random_seed(4)
            cell = make()
            output, _ = cell(hr.ones([1, 2]), cell.zero_state(1, hr.float32))
            with hr.Session() as session:
                session.run(hr.global_variables_initializer())
                outputs.append((session.run(output), [v.shape for v in cell.variables]))
    assert outputs[0][1] == outputs[1][1]
    np.testing.assert_array_equal(outputs[0][0], outputs[1][0])


def test_cells_of_programs_are_found() -> None:
    class Doubled(hr.nn.rnn_cell.BasicRNNCell):
        pass

    with hr.Graph().as_default():
        wrapped = hr.nn.rnn_cell.ResidualWrapper(Doubled(2))
        made = type(wrapped).from_config(wrapped.get_config())
    assert type(made.wrapped_cell) is Doubled


def test_classes_may_be_given_by_another_name() -> None:
    with hr.Graph().as_default():
        wrapped = hr.nn.rnn_cell.ResidualWrapper(hr.nn.rnn_cell.GRUCell(2))
        config = wrapped.get_config()
        config["cell"]["class_name"] = "Gated"
        made = type(wrapped).from_config(config, {"Gated": hr.nn.rnn_cell.GRUCell})
        with pytest.raises(AttributeValueError, match="no class 'Gated' of cells"):
            type(wrapped).from_config(config)
        with pytest.raises(ArgumentTypeError, match="custom_objects must be a dict"):
            type(wrapped).from_config(config, 3)  # type: ignore[arg-type]
    assert type(made.wrapped_cell) is hr.nn.rnn_cell.GRUCell


@pytest.mark.parametrize(
    ("config", "error", "match"),
    [
        (3, ArgumentTypeError, "config must be a dict, got 3"),
        (
            {"num_units": 2, "initializer": {"class_name": "Nope", "config": {}}},
            AttributeValueError,
            "no class 'Nope' of cells or initializers; there are .*GlorotUniform",
        ),
    ],
)
def test_wrong_configs(config: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        hr.nn.rnn_cell.LSTMCell.from_config(config)
