"""Blocks that are left in another order than ``with`` leaves them."""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from typing import Any

import pytest

import headrace as hr
from headrace.errors import GraphError, NestingError


def _graphs() -> list[Any]:
    return [hr.Graph().as_default(), hr.Graph().as_default()]


def _devices() -> list[Any]:
    return [hr.device("/cpu:0"), hr.device("/job:a")]


def _controls() -> list[Any]:
    return [hr.control_dependencies([hr.no_op()]), hr.control_dependencies(None)]


@pytest.mark.needs("backend-cpu")
@pytest.mark.parametrize("blocks", [_graphs, _devices, _controls, "sessions"])
def test_blocks_of_one_kind_are_left_in_order(blocks: Callable[[], list[Any]] | str) -> None:
    def crosswise() -> None:
        with hr.Graph().as_default():
            if isinstance(blocks, str):
                outer, inner = hr.Session().as_default(), hr.Session().as_default()
            else:
                outer, inner = blocks()
            outer.__enter__()
            inner.__enter__()
            with pytest.raises(NestingError, match="opposite order") as caught:
                outer.__exit__(None, None, None)
            assert isinstance(caught.value, GraphError)
            assert isinstance(caught.value, AssertionError)
            raise _LeftError

    # What is still entered goes with the context.
    with pytest.raises((_LeftError, NestingError)):
        contextvars.copy_context().run(crosswise)


class _LeftError(Exception):
    """The test is over."""


def test_blocks_of_two_kinds_take_back_their_own_alone() -> None:
    with hr.Graph().as_default():
        names, place = hr.name_scope("a"), hr.device("/cpu:0")
        waits = hr.control_dependencies([hr.no_op("q")])
        for block in (place, names, waits):
            block.__enter__()
        place.__exit__(None, None, None)
        names.__exit__(None, None, None)
        op = hr.no_op("r")
        waits.__exit__(None, None, None)
        assert (op.name, op.device) == ("r", "")
        assert [o.name for o in op.control_inputs] == ["q"]
        assert not hr.no_op().control_inputs


def test_a_block_that_nobody_leaves_is_dropped_silently() -> None:
    with hr.Graph().as_default() as graph:
        block = hr.device("/cpu:0")
        block.__enter__()
        del block
        assert hr.no_op().device == ""
        assert hr.get_default_graph() is graph
