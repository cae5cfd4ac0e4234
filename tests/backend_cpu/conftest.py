"""A fresh graph for every test, and a way to run one kernel on arrays."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.kernels import CPU_KERNELS


@pytest.fixture(autouse=True)
def _own_graph(graph: hr.Graph) -> None:
    """Give every test a graph of its own."""


@pytest.fixture(scope="session")
def kernel():
    """Return the function that runs the plain kernel of an op on arrays that it must not change."""
    functions = {k.op: k.function for k in CPU_KERNELS if k.style == "plain"}

    def frozen(value):
        if isinstance(value, list):
            return [frozen(v) for v in value]
        array = np.array(value)
        array.flags.writeable = False
        return array

    def run(op, *values, **attrs):
        with np.errstate(all="ignore"):
            return functions[op](np, *map(frozen, values), **attrs)

    return run


@pytest.fixture
def run_fed():
    """Return the function that builds an op on placeholders of unknown shapes and runs it."""

    def run(build, *values, config=None):
        arrays = [np.asarray(v) for v in values]
        holders = [hr.placeholder(a.dtype) for a in arrays]
        with hr.Session(config=config) as session:
            return session.run(build(*holders), dict(zip(holders, arrays, strict=True)))

    return run
