"""Constants wait for nothing where their readers wait for the same."""

from __future__ import annotations

import numpy as np
import pytest

import headrace as hr
from headrace.passes.constant_folding import fold
from headrace.passes.evaluate import evaluate
from headrace.passes.free_constants import free_constants
from headrace.passes.prune import extract
from headrace.passes.step_graph import StepGraph, verify
from headrace.plugins.host import host

pytestmark = pytest.mark.needs("backend-cpu")


def freed(*fetches, folds: bool = False) -> StepGraph:
    step = extract([], list(fetches), [])
    if folds:
        step = fold(step, lambda op, inputs: evaluate(op, inputs, host().kernels))
    step = free_constants(step)
    verify(step)
    return step


def waiting(step: StepGraph) -> set[str]:
    return {op.name for op in step.graph.operations if op.type == "Const" and op.control_inputs}


@pytest.fixture
def read():
    return hr.Variable([1.0, 2.0]).read_value()


def test_a_constant_is_free_where_its_readers_wait_for_the_same(read):
    with hr.control_dependencies([read]):
        rate = hr.constant(0.5, name="rate")
        both = read * rate, hr.exp(read) * rate
    assert waiting(extract([], list(both), [])) == {"rate"}
    assert waiting(freed(*both)) == set()


def test_reading_what_a_constant_waits_for_is_waiting(read):
    with hr.control_dependencies([read]):
        rate = hr.constant(0.5, name="rate")
    assert waiting(freed(read + rate)) == set()


def test_a_constant_waits_where_one_of_its_readers_does_not(read):
    with hr.control_dependencies([read]):
        rate = hr.constant(0.5, name="rate")
        patient = read * rate
    hasty = hr.sqrt(rate)
    assert waiting(freed(patient, hasty)) == {"rate"}
    with hr.control_dependencies([rate]):
        behind = hr.no_op()
    assert waiting(freed(patient)) == set()
    step = free_constants(extract([], [patient], [behind]))
    assert waiting(step) == {"rate"}


def test_a_fetched_constant_waits(read):
    with hr.control_dependencies([read]):
        rate = hr.constant(0.5, name="rate")
    assert waiting(freed(rate)) == {"rate"}
    assert waiting(freed(rate, read * rate)) == {"rate"}


def test_what_follows_from_constants_under_one_control_is_folded(read):
    with hr.control_dependencies([read]):
        found = read * (1.0 - hr.constant(0.9))
    step = freed(found, folds=True)
    assert [op.type for op in step.graph.operations].count("Sub") == 0
    assert waiting(step) == set()


def test_an_assignment_under_the_control_comes_first(steps):
    v = hr.Variable(1.0)
    with hr.control_dependencies([v.assign(5.0)]):
        found = v.read_value() * hr.constant(2.0) + (1.0 - hr.constant(0.5))
    with hr.Session() as session:
        session.run(v.initializer)
        np.testing.assert_equal(session.run(found), 10.5)
