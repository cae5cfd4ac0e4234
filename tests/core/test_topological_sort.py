"""Sorting by what comes before what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.topological_sort import CycleError, in_order


@pytest.mark.parametrize("key", [None, lambda item: item])
@given(edges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))), turn=st.integers(0, 9))
def test_every_item_follows_what_it_needs(key, edges, turn) -> None:
    # Edges from smaller to larger numbers, so that there is an order, and items in another one.
    needs = {item: {a for a, b in edges if a < b == item} for item in range(10)}
    items = [(item * 7 + turn) % 10 for item in range(10)]
    order = in_order(items, needs.__getitem__, key)
    assert sorted(order) == list(range(10))
    place = {item: i for i, item in enumerate(order)}
    assert all(place[a] < place[item] for item in items for a in needs[item])


def test_the_least_key_comes_first_among_those_that_could() -> None:
    needs = {3: [], 1: [3], 2: [], 0: [2]}
    assert in_order([0, 1, 2, 3], needs.__getitem__, key=lambda item: item) == [2, 0, 3, 1]


def test_without_a_key_what_became_possible_follows_at_once() -> None:
    needs = {"a": [], "b": [], "of a": ["a"], "of b": ["b"]}
    items = ["a", "b", "of a", "of b"]
    assert in_order(items, needs.__getitem__) == ["a", "of a", "b", "of b"]


def test_what_is_needed_besides_the_items_does_not_count() -> None:
    assert in_order(["a"], lambda item: ["elsewhere"]) == ["a"]


@pytest.mark.parametrize("key", [None, lambda item: item])
def test_items_that_wait_for_each_other_are_refused(key) -> None:
    needs = {"a": ["b"], "b": ["a"], "c": []}
    with pytest.raises(CycleError, match="'a' waits for itself") as caught:
        in_order(["c", "a", "b"], needs.__getitem__, key)
    assert caught.value.item == "a"
