"""Numbers of places that leave by chance: the loop and NumPy choose what one by one would."""

import numpy as np
import pytest

import headrace as hr
from headrace_cpu.queues import RandomShuffleQueue, random_slots
from headrace_cpu.queues.random_slots import Places


def one_by_one(numbers, drawn):
    """Return what leaves, and what is left, where each that leaves is drawn by itself."""
    numbers, chosen = list(numbers), []
    for number in drawn.tolist():
        place = int(number * len(numbers))
        chosen.append(numbers[place])
        numbers[place] = numbers[-1]
        del numbers[-1]
    return chosen, numbers


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_what_leaves_is_what_would_one_by_one(monkeypatch, seed, native):
    if native:
        random_slots._LOOP.make()
        assert random_slots._LOOP.address() is not None
    else:
        monkeypatch.setattr(random_slots._LOOP, "_address", None)
        monkeypatch.setattr(random_slots._LOOP, "_wanted", 1000)
    rng, held, expected = np.random.default_rng(seed), Places(), []
    for _ in range(200):
        more = rng.integers(0, 1000, rng.integers(0, 200)).tolist()
        held.add(more)
        expected += more
        drawn = rng.random(rng.integers(0, len(expected) + 1))
        chosen, expected = one_by_one(expected, drawn)
        assert held.choose(drawn).tolist() == chosen
        assert held.listed().tolist() == expected
        assert len(held) == len(expected)
    held.clear()
    assert held.listed().tolist() == []


def test_places_and_tuples_leave_in_the_same_order():
    def order(shapes):
        queue = RandomShuffleQueue("q", 2000, [hr.int64], shapes, 0, (1, 2))
        queue.put(queue.held(np, [np.arange(2000)], many=True), lambda _: None)
        found = []
        for count in (1, 3, 100, 500, 7, 1000):
            queue.take(count, found.extend)
        return [int(element[0]) for element in found]

    by_places, by_tuples = order([hr.Shape([])]), order([hr.Shape(None)])
    assert len(set(by_places)) == 1611
    assert by_places == by_tuples
