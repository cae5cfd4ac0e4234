"""Which group collectives run in, where a block that chose one is dropped."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from headrace_mpi.collectives import groups
from headrace_mpi.collectives.groups import alone, current_group, is_alone, use_group

pytestmark = pytest.mark.needs("mpi")


def suspended(count: int) -> Iterator[None]:
    if not count:
        yield
    else:
        with use_group(alone()):
            yield from suspended(count - 1)


def test_collectives_run_in_the_innermost_group() -> None:
    before = current_group()
    outer, inner = alone(), alone()
    with use_group(outer):
        with use_group(inner):
            assert current_group() is inner
        assert current_group() is outer
    assert current_group() is before


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("in_a_cycle", [False, True])
def test_a_group_is_left_when_its_generator_is_dropped(count: int, in_a_cycle: bool) -> None:
    before = current_group()
    generator = suspended(count)
    next(generator)
    assert current_group() is not before
    held: list[object] = [generator]
    if in_a_cycle:
        held.append(held)
    del generator, held
    gc.collect()
    # Where it was collected no variable was set: up to Python 3.11 that ends the process.
    assert groups._chosen.get() is not None
    assert current_group() is before
    assert is_alone()
    assert groups._chosen.get() is None


def test_an_error_leaves_a_group() -> None:
    before = current_group()
    with pytest.raises(KeyError, match="x"), use_group(alone()):
        raise KeyError("x")
    assert current_group() is before
