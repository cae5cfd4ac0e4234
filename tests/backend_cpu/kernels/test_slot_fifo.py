"""Numbers of places that leave in order: what leaves is what a list would give."""

import numpy as np
import pytest

from headrace_cpu.queues.slot_fifo import Line


@pytest.mark.parametrize("seed", range(5))
def test_what_came_first_leaves_first_and_may_come_back(seed):
    rng, line, expected = np.random.default_rng(seed), Line(), []
    for _ in range(400):
        many = int(rng.integers(0, 300 if rng.random() < 0.2 else 20))
        numbers = rng.integers(0, 1000, many)
        match rng.integers(3):
            case 0:
                line.add(numbers)
                expected += numbers.tolist()
            case 1:
                line.give_back(numbers)
                expected[:0] = numbers.tolist()
            case 2:
                count = min(many, len(expected))
                assert line.choose(count).tolist() == expected[:count]
                del expected[:count]
        assert line.listed().tolist() == expected
        assert len(line) == len(expected)
    line.clear()
    assert line.listed().tolist() == []


def test_what_left_is_its_takers():
    line = Line()
    line.add([1, 2, 3])
    first = line.choose(2)
    line.give_back([7, 8])
    assert first.tolist() == [1, 2]
    assert line.choose(3).tolist() == [7, 8, 3]
