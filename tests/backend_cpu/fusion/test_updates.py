"""Updates of variables in kernels: with rates that are computed, and beside other writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace as hr

SIZE = 4096


def run(fetch: hr.Operation, variable: hr.Variable, executor: str) -> tuple[list[float], Any]:
    """Return what large kernels read and write, in sizes of the variable, and its value."""
    config = hr.Config(executor=executor, compile_after=0 if executor == "plan" else None)
    with hr.Session(config=config) as session:
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run(fetch)
        passes = []
        if executor == "plan":
            works = session.explain(fetch).kernels
            passes = [work.bytes / (4 * SIZE) for work in works if work.bytes > SIZE]
        return passes, session.run(variable)


def test_a_rate_computed_late_is_no_reason_for_another_kernel() -> None:
    slot, x = hr.Variable(hr.ones([SIZE])), hr.Variable(hr.ones([SIZE]))
    count = hr.Variable(1.0)
    new = slot.value() * 0.5
    kept = slot.assign(new)
    # The product needs a scalar that comes after what it multiplies.
    rate = hr.sqrt(count.value() + 1.0) / 2.0
    step = hr.group(kept, hr.assign_sub(x, new * rate))
    passes, value = run(step, x, "plan")
    assert passes == [pytest.approx(4, abs=0.1)]
    np.testing.assert_allclose(value, run(step, x, "plain")[1], rtol=1e-6)


def test_a_variable_that_is_written_again_later_is_read_where_it_is_updated() -> None:
    x = hr.Variable(hr.ones([SIZE]))
    halved = x.assign(x.value() * 0.5)
    with hr.control_dependencies([halved]):
        step = hr.scatter_update(x, [3, 4], [7.0, 8.0]).op
    passes, value = run(step, x, "plan")
    assert passes == [pytest.approx(2, abs=0.1)]
    np.testing.assert_array_equal(value, run(step, x, "plain")[1])
    np.testing.assert_array_equal(value[:6], [0.125, 0.125, 0.125, 7.0, 8.0, 0.125])


def test_a_value_from_before_another_write_is_kept() -> None:
    x = hr.Variable(hr.ones([SIZE]))
    old = x.value()
    with hr.control_dependencies([old]):
        written = hr.scatter_update(x, [3], [7.0])
    with hr.control_dependencies([written]):
        step = x.assign(old * 0.5).op
    for executor in ("plan", "plain"):
        np.testing.assert_array_equal(run(step, x, executor)[1], np.full(SIZE, 0.125))


@pytest.mark.parametrize("first", [0, 1])
def test_of_two_variables_both_are_taken_or_none(first: int) -> None:
    variables = [hr.Variable(hr.ones([SIZE]), name=name) for name in ("one", "other")]
    change = hr.random_uniform([SIZE])
    step = hr.group(*(hr.assign_add(v, change) for v in variables))
    with hr.Session(config=hr.Config(compile_after=0, compile_wait=True)) as session:
        for _ in range(2):
            session.run(variables[first].initializer)
            missing = variables[1 - first].op.name
            with pytest.raises(hr.errors.UninitializedError, match=f"not initialized: {missing}"):
                session.run(step)
            # Nobody keeps what was taken.
            np.testing.assert_array_equal(session.run(variables[first]), np.ones(SIZE))
        session.run(hr.global_variables_initializer())
        for _ in range(3):
            session.run(step)
        values = session.run(variables)
    np.testing.assert_array_equal(values[0], values[1])
