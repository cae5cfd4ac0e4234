"""Optimizers, schedules and averages compute and name what TensorFlow 1.15's do."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace as hr

pytestmark = [pytest.mark.needs("backend-cpu"), pytest.mark.usefixtures("no_races")]

HERE = Path(__file__).parent
TABLES = json.loads((HERE / "results.json").read_text(encoding="utf-8"))
TOLERANCE = {"rtol": 1e-6, "atol": 1e-6}


def _load() -> Any:
    spec = importlib.util.spec_from_file_location("optimizer_cases", HERE / "cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = _load()


def test_every_case_has_results() -> None:
    assert set(cases.OPTIMIZERS) == set(TABLES["optimizers"])
    assert len(cases.SCHEDULES) == len(TABLES["schedules"])
    assert set(cases.AVERAGES) == set(TABLES["averages"])


def compare(case: str, kind: str, dtype: str, executor: str) -> None:
    """Take the steps of a case, and compare values and slots with TensorFlow's."""
    table = TABLES["optimizers"][case][f"{kind} {dtype}"]
    name, arguments = cases.OPTIMIZERS[case]
    sparse = kind == "sparse"
    shape = cases.ROWS if sparse else cases.DENSE_SHAPE
    with hr.Graph().as_default(), hr.Session(config=hr.Config(executor=executor)) as session:
        x = hr.get_variable("x", initializer=cases.starts(shape).astype(dtype))
        step = hr.train.create_global_step()
        given = {k: step if v == cases.STEP else v for k, v in arguments.items()}
        optimizer = getattr(hr.train, name)(**given)
        dense = hr.placeholder(dtype, shape)
        rows, values = hr.placeholder(hr.int32, [None]), hr.placeholder(dtype, [None, shape[1]])
        gradient = hr.IndexedSlices(values, rows, hr.constant(shape)) if sparse else dense
        update = optimizer.apply_gradients([(gradient, x)], global_step=step)
        session.run(hr.global_variables_initializer())
        found = []
        for count in range(cases.STEPS):
            if sparse:
                part = cases.slices(shape[1])[count]
                session.run(update, {values: part, rows: cases.INDICES[count]})
            else:
                session.run(update, {dense: cases.gradients(shape)[count]})
            if count + 1 in cases.KEPT:
                found.append(session.run(x).reshape(-1))
        np.testing.assert_allclose(found, table["values"], **TOLERANCE)
        assert set(optimizer.get_slot_names()) == set(table["slots"])
        for slot, (slot_name, expected) in table["slots"].items():
            variable = optimizer.get_slot(x, slot)
            assert variable is not None
            assert variable.op_name == slot_name
            np.testing.assert_allclose(session.run(variable).reshape(-1), expected, **TOLERANCE)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", cases.OPTIMIZERS)
def test_steps(case: str, dtype: str) -> None:
    for kind in ("dense", "sparse"):
        compare(case, kind, dtype, "plain")


@pytest.mark.parametrize("case", cases.OPTIMIZERS)
def test_compiled_steps(case: str) -> None:
    # Kernels of float64 are made of the same words, and compiling them takes its time.
    for kind in ("dense", "sparse"):
        compare(case, kind, "float32", "plan")


def rates(make: Any, dtype: str, executor: str) -> list[float]:
    """Return a schedule at the steps of the table."""
    with hr.Graph().as_default(), hr.Session(config=hr.Config(executor=executor)) as session:
        step = hr.placeholder(hr.int64, [])
        rate = make(hr.constant(cases.RATE, dtype), step)
        assert rate.dtype == dtype
        return [session.run(rate, {step: s}) for s in cases.SCHEDULE_STEPS]


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("index", range(len(cases.SCHEDULES)))
def test_schedules(index: int, executor: str) -> None:
    name, arguments = cases.SCHEDULES[index]
    for dtype, expected in TABLES["schedules"][index].items():
        found = rates(
            lambda rate, step: getattr(hr.train, name)(rate, step, **arguments), dtype, executor
        )
        # TensorFlow has no cosine of float64, for pi is float32 there.
        expected = expected or TABLES["schedules"][index]["float32"]
        np.testing.assert_allclose(found, expected, **TOLERANCE)


@pytest.mark.parametrize("name", ["piecewise_constant", "piecewise_constant_decay"])
@pytest.mark.parametrize("index", range(len(cases.PIECES)))
def test_pieces(index: int, name: str) -> None:
    schedule = getattr(hr.train, name)
    found = rates(lambda rate, step: schedule(step, *cases.PIECES[index]), "float32", "plan")
    np.testing.assert_array_equal(found, np.float32(TABLES["pieces"][index]))


@pytest.mark.parametrize("executor", ["plan", "plain"])
@pytest.mark.parametrize("case", cases.AVERAGES)
def test_averages(case: str, executor: str) -> None:
    given = dict(cases.AVERAGES[case])
    table = TABLES["averages"][case]
    with hr.Graph().as_default(), hr.Session(config=hr.Config(executor=executor)) as session:
        x = hr.get_variable("x", initializer=cases.starts([2]))
        step = hr.train.create_global_step()
        square = hr.square(x, name="square")
        if given.pop("steps", False):
            given["num_updates"] = step
        average = hr.train.ExponentialMovingAverage(**given)
        update = average.apply([x, square])
        assert update.name == "ExponentialMovingAverage"
        kept = [average.average(x), average.average(square)]
        assert [v.op_name for v in kept if v is not None] == table["names"]
        assert sorted(v.op_name for v in hr.global_variables()) == table["variables"]
        session.run(hr.global_variables_initializer())
        for gradient, expected in zip(cases.gradients([2]), table["values"], strict=True):
            session.run([x.assign_add(gradient).op, step.assign_add(1).op])
            session.run(update)
            np.testing.assert_allclose(session.run(kept), expected, **TOLERANCE)
