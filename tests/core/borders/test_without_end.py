"""Lists, tuples and dicts whose classes iterate them for ever, lists of themselves, huge views."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import headrace as hr
from headrace.errors import (
    AttributeValueError,
    FeedError,
    HeadraceError,
    ResourceExhaustedError,
    ShapeError,
)

pytestmark = pytest.mark.needs("autodiff", "backend-cpu")


def _for_ever(self: Any) -> Iterator[Any]:
    del self
    while True:
        yield 1.0


class Pair(NamedTuple):
    a: Any
    b: Any


class EndlessList(list[Any]):
    __iter__ = _for_ever


class EndlessTuple(tuple[Any, ...]):
    __slots__ = ()
    __iter__ = _for_ever


class EndlessPair(Pair):
    __slots__ = ()
    __iter__ = _for_ever


class EndlessDict(dict[Any, Any]):
    __iter__ = _for_ever
    __hash__ = None  # type: ignore[assignment]


class EndlessOrdered(OrderedDict[Any, Any]):
    __iter__ = _for_ever


LISTS = [EndlessList([1.0, 2.0]), EndlessTuple((1.0, 2.0)), EndlessPair(1.0, 2.0)]
DICTS = [EndlessDict(a=1.0), EndlessOrdered(a=1.0)]
USES: dict[str, Callable[[Any], Any]] = {
    "constant": hr.constant,
    "typed": lambda v: hr.constant(v, hr.float32),
    "row": lambda v: hr.constant([[1.0, 2.0], v]),
    "operand": lambda v: hr.constant([1.0]) + v,
    "operand beside kinds": lambda v: (hr.ragged.constant([[1.0]]), hr.constant([1.0]) + v),
    "feed": lambda v: hr.Session().run("x:0", {hr.placeholder(hr.float32, None, "x"): v}),
}
OF_ANY: dict[str, Callable[[Any], Any]] = {
    "fetch": lambda v: hr.Session().run(v),
    "fetch within": lambda v: hr.Session().run([hr.constant(1.0), v]),
    "callable": lambda v: hr.Session().make_callable(v),
    "flatten": hr.nest.flatten,
    "flatten within": lambda v: hr.nest.flatten({"a": [v]}),
    "pack": lambda v: hr.nest.pack_sequence_as(v, [1, 2]),
    "function": lambda v: hr.function(lambda given: hr.constant(1.0))(v),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("use", list(USES))
@pytest.mark.parametrize("value", LISTS, ids=lambda v: type(v).__name__)
def test_lists_of_numbers_without_end_are_refused(value: Any, use: str) -> None:
    refused = pytest.raises(AttributeValueError, match="must hold at most 1048576 items")
    with hr.Graph().as_default(), refused:
        USES[use](value)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("use", list(OF_ANY))
@pytest.mark.parametrize("value", [*LISTS, *DICTS], ids=lambda v: type(v).__name__)
def test_structures_without_end_are_refused(value: Any, use: str) -> None:
    refused = pytest.raises(HeadraceError, match="must hold at most 1048576 items")
    with hr.Graph().as_default() as graph, refused:
        hr.constant(1.0)
        assert graph is hr.get_default_graph()
        OF_ANY[use](value)


class Counted(list[Any]):
    """A list with an iterator of its own that ends."""

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])


def test_lists_with_iterators_of_their_own_are_lists() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        one = hr.constant(Counted([1.0, 2.0]))
        assert one.dtype is hr.float32
        found = session.run(Counted([one, {"a": one}]))
        assert [list(found[0]), list(found[1]["a"])] == [[1.0, 2.0]] * 2
        assert hr.nest.flatten(Counted([1, Counted([2])])) == [1, 2]
        assert hr.constant([Counted([1, 2]), [3, 4]]).shape == (2, 2)


def _of_itself(*front: Any, times: int = 2, kind: Any = list) -> Any:
    held: list[Any] = [*front]
    held.extend([kind([held]) if kind is not list else held] * times)
    return held


@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    "value",
    [
        _of_itself(),
        _of_itself(times=3),
        _of_itself(times=1),
        _of_itself(kind=tuple),
        [[[_of_itself(), _of_itself()]]],
        _of_itself(times=100),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("use", ["constant", "typed", "operand", "feed"])
def test_lists_of_themselves_are_refused(value: Any, use: str) -> None:
    with hr.Graph().as_default(), pytest.raises(ShapeError, match="nested more than 64 deep"):
        USES[use](value)


@pytest.mark.parametrize(
    "value",
    [
        np.broadcast_to(np.float32(1), (10**8, 10**8)),
        np.broadcast_to(np.int32(1), (10**8, 10**8)),
        np.broadcast_to(np.float64(1), (10**5, 10**5, 10**6)),
        np.broadcast_to(np.bool_(True), (10**16,)),
        np.broadcast_to(np.complex64(1), (1, 10**16)),
        np.lib.stride_tricks.as_strided(np.zeros(1), (10**15,), (0,)),
    ],
    ids=range(6),
)
@pytest.mark.parametrize("use", ["constant", "typed", "operand"])
def test_views_of_more_than_there_is_memory_for_are_refused(value: Any, use: str) -> None:
    refused = pytest.raises(ResourceExhaustedError, match="more elements than there is memory for")
    with hr.Graph().as_default(), refused:
        USES[use](value)


@pytest.mark.parametrize(
    "key",
    [
        memoryview(bytearray(b"abc")),
        memoryview(np.zeros((2, 2))),
        ([1],),
        (memoryview(bytearray(1)), 1),
        frozenset,
        bytearray(b"x:0"),
        {1, 2},
    ],
    ids=range(7),
)
def test_keys_that_cannot_be_looked_up_are_no_feeds(key: Any) -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        one = hr.constant(1.0)
        with pytest.raises(FeedError, match="cannot feed"):
            session.make_callable(one, [key])
