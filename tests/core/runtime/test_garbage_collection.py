"""Planning pauses the garbage collector, and leaves what a process starts with among the old."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

import headrace.runtime.garbage_collection as module
from headrace.runtime.garbage_collection import unhindered
from tests.children import run_program


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    """Let go what the tests have frozen together: programs have frozen nothing."""
    gc.unfreeze()
    yield
    gc.freeze()


# Prints whether a full collection ran, how many more old objects there are, and what is frozen.
_PROGRAM = """
import gc
from headrace.runtime.garbage_collection import unhindered

collected = []
gc.callbacks.append(lambda phase, info: collected.append(info["generation"]))
{before}
def old():
    return len(gc.get_objects(generation=2)), gc.get_freeze_count()

counts = []
for _ in range(2):
    made = old()
    with unhindered():
        kept = [[] for _ in range(5000)]
    counts += [old()[0] - made[0] >= 5000]
    gc.collect(0)
print(2 in collected, *counts, gc.get_freeze_count() > 1000)
"""


def _run(before: str = "") -> list[str]:
    return run_program(_PROGRAM.format(before=before)).stdout.split()


def test_it_goes_on_only_where_it_was_on() -> None:
    with unhindered():
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.disable()
    try:
        with unhindered():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_cycles_made_meanwhile_are_collected_afterwards() -> None:
    class Node:
        pass

    with unhindered():
        node = Node()
        node.itself = node  # type: ignore[attr-defined]
        alive = weakref.ref(node)
        del node
    gc.collect()
    assert alive() is None


def test_the_first_plan_alone_makes_all_objects_old_without_visiting_them() -> None:
    assert _run() == ["False", "True", "False", "False"]


def test_what_a_program_froze_stays_frozen() -> None:
    assert _run("gc.freeze()") == ["False", "False", "False", "True"]


def test_what_a_large_plan_makes_is_not_visited_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MANY", 1000)
    monkeypatch.setattr(module, "_settled", True)
    old = len(gc.get_objects(generation=2))
    with unhindered(settle=False):
        kept = [[] for _ in range(5000)]
    assert len(gc.get_objects(generation=2)) - old >= len(kept)


@pytest.mark.slow
def test_cycles_of_many_large_plans_are_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    class Node:
        pass

    monkeypatch.setattr(module, "_MANY", 1000)
    monkeypatch.setattr(module, "_MOST_UNVISITED", 20_000)
    monkeypatch.setattr(module, "_unvisited", 0)
    alive = []
    for _ in range(10):
        with unhindered():
            nodes = [Node() for _ in range(5000)]
            for node in nodes:
                node.itself = node  # type: ignore[attr-defined]
            alive.append(weakref.ref(nodes[0]))
            del nodes, node
    assert sum(ref() is not None for ref in alive) < 6
