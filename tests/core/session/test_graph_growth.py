"""A graph that grows inside a loop is warned about, once and with the line."""

from __future__ import annotations

import warnings

import pytest

import headrace as hr
from headrace.session.graph_growth import LIMIT

pytestmark = pytest.mark.usefixtures("mini")


def test_a_loop_that_builds_is_warned_about_once_with_its_line():
    x = hr.constant(1.0)
    with hr.Session() as session, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2 * LIMIT):
            session.run(hr.square(x))  # the line
    (warning,) = caught
    assert warning.category is RuntimeWarning
    assert "the graph grows in a loop" in str(warning.message)
    assert "session.run(hr.square(x))  # the line" in str(warning.message)
    assert "Square 'Square_" in str(warning.message)
    assert warning.filename == __file__


def test_new_steps_of_a_graph_that_does_not_grow_are_fine():
    steps = [hr.square(hr.constant(float(i))) for i in range(2 * LIMIT)]
    with warnings.catch_warnings(), hr.Session() as session:
        warnings.simplefilter("error")
        for step in steps:
            session.run(step)


def test_a_graph_built_by_different_lines_is_fine():
    x = hr.constant(1.0)
    with warnings.catch_warnings(), hr.Session() as session:
        warnings.simplefilter("error")
        for _ in range(LIMIT):
            session.run(hr.square(x))
            if _ % 2:
                session.run(hr.negative(x))


def test_a_step_that_is_run_again_counts_for_nothing():
    x = hr.constant(1.0)
    with warnings.catch_warnings(), hr.Session() as session:
        warnings.simplefilter("error")
        for _ in range(LIMIT - 1):
            step = hr.square(x)
            for _ in range(5):
                session.run(step)
