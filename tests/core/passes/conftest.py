"""Running and printing step graphs, for tests of rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from headrace.passes.step_graph import StepGraph
from headrace.plugins.host import host
from headrace.runtime.nested import evaluate


class StepError(Exception):
    """A kernel failed."""


class Steps:
    """Step graphs as text, and their results."""

    Error = StepError

    @staticmethod
    def run(step: StepGraph, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run every node with its plain kernel, in order, and return what is fetched."""
        kernels = host().kernels
        values: dict[Any, np.ndarray] = dict(zip(step.feeds, feeds, strict=True))
        for op in step.graph.operations:
            if op.type == "Feed":
                continue
            if op.type == "Const":
                values[op.outputs[0]] = op.attrs["value"]
                continue
            found = evaluate(op, [values[t] for t in op.inputs], kernels)
            if found is None:
                raise StepError(f"{op!r} failed")
            values.update(zip(op.outputs, map(np.asarray, found), strict=True))
        return [values[t] for t in step.fetches]

    @staticmethod
    def text(step: StepGraph) -> list[str]:
        """Return each fetch as an expression: feeds by name, constants by value, attributes."""
        texts: dict[Any, str] = {}
        for op in step.graph.operations:
            inputs = [texts[t] for t in op.inputs]
            body = _text(op, inputs)
            for t in op.outputs:
                texts[t] = body if len(op.outputs) == 1 else f"{body}[{t.index}]"
        return [texts[t] for t in step.fetches]


def _text(op: Any, inputs: list[str]) -> str:
    if op.type == "Feed":
        return str(op.name.split("/")[1])
    if op.type == "Const":
        return str(op.attrs["value"].tolist())
    defaults = {a.name: a.default for a in op.schema.attrs}
    attrs = [f"{k}={v}" for k, v in op.attrs.items() if v is not defaults[k]]
    return f"{op.type}({', '.join([*inputs, *attrs])})"


@pytest.fixture
def steps() -> type[Steps]:
    """Return the functions that run and print step graphs."""
    return Steps
