"""Throws are fair, repeat with their seeds, and differ from step to step."""

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError


def thrown(seed, graph_seed=None, steps=2):
    with hr.Graph():
        hr.set_random_seed(graph_seed)
        throws = hr.throw_dice([50], seed=seed)
        with hr.Session() as session:
            return [session.run(throws).tolist() for _ in range(steps)]


def test_throws_are_fair():
    with hr.Session() as session:
        throws = session.run(hr.throw_dice([60_000], seed=1))
    counts = np.bincount(throws, minlength=7)[1:]
    assert counts.sum() == 60_000
    # A throw in 10000 may be further off than four standard deviations of 91.
    assert np.abs(counts - 10_000).max() < 4 * 91


def test_seeds_repeat_and_steps_differ():
    first, second = thrown(seed=5)
    assert first != second
    assert thrown(seed=5) == [first, second]
    assert thrown(seed=6) != [first, second]
    assert thrown(None, graph_seed=3) == thrown(None, graph_seed=3)
    assert thrown(None) != thrown(None)


def test_two_throws_are_two():
    same = [hr.throw_dice([50], seed=None) for _ in range(2)]
    with hr.Session() as session:
        left, right = session.run(same)
    assert left.tolist() != right.tolist()


def test_a_coin_is_the_smallest_die():
    with pytest.raises(AttributeValueError, match=r"a die has 2 to .* sides, got 1"):
        hr.throw_dice([2], sides=1)
