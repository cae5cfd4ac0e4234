"""A case as a graph, for Headrace and for TensorFlow through its first API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.suite.case import ADAGRAD_START, MOMENTUM, Array, Case


@dataclass(frozen=True)
class Graph:
    """A case as a graph.

    Attributes:
        state: variables by name.
        inputs: placeholders by name.
        result: what the program returned.
        step: what one step fetches.
        start: what initializes variables and tables.
    """

    state: dict[str, Any]
    inputs: dict[str, Any]
    result: Any
    step: Any
    start: Any

    def load(self, session: Any, values: Mapping[str, Array]) -> None:
        """Initialize, and give the variables their first values."""
        session.run(self.start)
        for name, variable in self.state.items():
            variable.load(values[name], session)

    def feeds(self, batch: Mapping[str, Array]) -> tuple[Array, ...]:
        """Return the inputs in the order of the placeholders."""
        return tuple(batch[name] for name in self.inputs)


def build(api: Any, case: Case, state: Mapping[str, Array]) -> Graph:
    """Build the graph of a case with a library: ``headrace`` or ``tensorflow.compat.v1``.

    Variables begin with zeros and are loaded later, so that the graph holds no copy of them.

    Args:
        api: the library.
        case: the program.
        state: the first values, for their shapes and types.
    """
    variables = {
        name: api.Variable(
            api.zeros(list(value.shape), value.dtype.name), trainable=bool(case.optimizer)
        )
        for name, value in state.items()
    }
    first = case.feeds()[0]
    inputs = {name: placeholder(api, value) for name, value in first.items()}
    result = case.dataflow(api, variables, inputs)
    step = optimizer(api, case).minimize(result) if case.optimizer else result
    start = api.group(api.global_variables_initializer(), api.tables_initializer())
    return Graph(variables, inputs, result, step, start)


def placeholder(api: Any, value: Array) -> Any:
    """Return a placeholder of a value's type and shape; strings are objects in NumPy."""
    dtype = api.string if value.dtype.kind in "OSU" else value.dtype.name
    return api.placeholder(dtype, value.shape)


def optimizer(api: Any, case: Case) -> Any:
    """Return the optimizer of a case."""
    train, rate = api.train, case.rate
    match case.optimizer:
        case "sgd":
            return train.GradientDescentOptimizer(rate)
        case "momentum":
            return train.MomentumOptimizer(rate, MOMENTUM)
        case "adagrad":
            return train.AdagradOptimizer(rate, ADAGRAD_START)
        case "adam":
            return train.AdamOptimizer(rate)
        case other:
            raise ValueError(f"case {case.name!r}: expected an optimizer, got {other!r}")
