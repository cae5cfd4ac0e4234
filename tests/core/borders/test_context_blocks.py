"""Blocks inside of which a generator is dropped: left later, and never where it is collected."""

from __future__ import annotations

import contextvars
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

import headrace as hr
from headrace.graph import context_blocks as blocks_dropped
from headrace.graph.creation_site import Site, pinned_site, user_site
from headrace.graph.external_arrays import Arrays, arrays_apart, put_external
from tests.children import run_program

BLOCKS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "name_scope": lambda: hr.name_scope("inside"),
    "variable_scope": lambda: hr.variable_scope("inside"),
    "device": lambda: hr.device("/cpu:0"),
    "control_dependencies": lambda: hr.control_dependencies([hr.no_op()]),
    "graph": lambda: hr.Graph().as_default(),
    "container": lambda: hr.get_default_graph().container("inside"),
    "variable_creator_scope": lambda: hr.variable_creator_scope(
        lambda make, **kwargs: make(**kwargs)
    ),
    "session": lambda: hr.Session().as_default(),
    "pinned_site": lambda: pinned_site(Site("elsewhere.py", 1)),
    "arrays_apart": lambda: arrays_apart(Arrays({})),
}


class Thing:
    """Something that holds a generator, and itself."""

    def __init__(self, held: Any) -> None:
        self.held = (held, self)


def suspended(*names: str) -> Iterator[None]:
    if not names:
        yield
    else:
        with BLOCKS[names[0]]():
            yield from suspended(*names[1:])


def state() -> tuple[Any, ...]:
    return (
        hr.get_default_graph(),
        hr.get_default_graph().get_name_scope(),
        hr.get_variable_scope().name,
        hr.get_default_session(),
        hr.no_op().device,
        hr.no_op().control_inputs,
        user_site().filename,
        put_external(bytes(10000)),
    )


@pytest.mark.needs("backend-cpu")
@pytest.mark.parametrize("in_a_cycle", [False, True])
@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_left_when_its_generator_is_dropped(name: str, in_a_cycle: bool) -> None:
    before = state()
    generator = suspended(name, name) if name != "session" else suspended(name)
    next(generator)
    thing = Thing(generator) if in_a_cycle else None
    del generator, thing
    gc.collect()
    assert state() == before


@pytest.mark.needs("backend-cpu")
def test_blocks_of_several_kinds_are_left_together() -> None:
    before = state()
    generator = suspended(*BLOCKS)
    next(generator)
    del generator
    assert state() == before


def test_a_block_that_is_no_longer_the_innermost_stays() -> None:
    generator = suspended("name_scope")
    next(generator)
    with hr.name_scope("more") as scope:
        del generator
        gc.collect()
        assert scope == "inside/more/"
        assert hr.no_op(name="x").name == "inside/more/x"


def test_a_block_around_may_be_left_after_one_was_dropped() -> None:
    with hr.name_scope("around"):
        generator = suspended("name_scope", "device")
        next(generator)
        del generator
    assert hr.get_default_graph().get_name_scope() == ""


def test_another_thread_is_not_concerned() -> None:
    generator = suspended("name_scope")
    next(generator)
    inside = hr.get_default_graph().get_name_scope()
    held = [generator]
    del generator
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    # Where it was closed, something else was in force.
    assert hr.get_default_graph().get_name_scope() == inside


def test_notes_that_nobody_reads_are_few() -> None:
    variable: contextvars.ContextVar[Any] = contextvars.ContextVar("number", default=None)

    def once() -> None:
        value = object()
        variable.set(value)
        blocks_dropped.drop(variable, value, None)

    for _ in range(300):
        thread = threading.Thread(target=once)
        thread.start()
        thread.join()
    assert len(blocks_dropped._NOTES) <= 64
    blocks_dropped._NOTES.clear()


# Collects what was dropped inside of ContextVar.set, after it has begun to copy.
_PROGRAM = """
import contextvars, gc
import headrace as hr
from headrace.extend.documents import arrays_apart
from headrace.extend.graphs import pinned_site

others = [contextvars.ContextVar(f"v{i}") for i in range(300)]
for variable in others:
    variable.set(object())

class Thing:
    pass

def suspended():
    with BLOCK:
        yield

gc.disable()
with hr.Graph().as_default():
    hr.constant(1.0)
    # What is there is looked at no more.
    gc.collect()
    gc.freeze()
    for i in range(2400):
        gc.collect()
        thing = Thing()
        thing.held = (suspended(), thing)
        next(thing.held[0])
        del thing
        variable, value = others[i % 300], object()
        gc.set_threshold(gc.get_count()[0] + 1 + i // 300 % 8)
        gc.enable()
        variable.set(value)
        gc.disable()
print("ended")
"""


@pytest.mark.parametrize(
    "block",
    [
        "hr.name_scope('a')",
        "hr.variable_scope('a')",
        "hr.device('/cpu:0')",
        "hr.variable_creator_scope(print)",
        "pinned_site('a')",
        "arrays_apart('a')",
    ],
)
def test_no_variable_is_set_where_a_block_is_collected(block: str) -> None:
    """Up to Python 3.11 that ended the process with a segmentation fault."""
    program = _PROGRAM.replace("BLOCK", block)
    done = run_program(program, check=False)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "ended", "")
