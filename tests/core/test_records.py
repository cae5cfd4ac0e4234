"""Records: in all that programs see they are the dataclasses of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
import sys
import typing
from dataclasses import field

import pytest

from headrace import records


class Body:
    """What both classes are made of."""

    a: int
    b: tuple[int, ...] = ()
    c: list[int] = field(default_factory=list, hash=False)
    d: str = field(default="d", repr=False, compare=False)
    e: int = field(default=7, init=False)
    f: list[int] = field(default_factory=list, init=False, compare=False)
    g: int = field(default=1, kw_only=True)


def make(decorator, **options):
    body = {"__annotations__": dict(Body.__annotations__), "__module__": __name__, "__doc__": "."}
    values = {name: copy.copy(value) for name, value in vars(Body).items() if name in "abcdefg"}
    return decorator(frozen=True, slots=True, **options)(type("Body", (), body | values))


class Point:
    """A point, which checks what it is given."""

    x: float
    y: float = 0.0

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("left of the origin")

    def __repr__(self) -> str:
        return f"<{self.x}, {self.y}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Point) and self.x == other.x


Point = records.dataclass(frozen=True, slots=True)(Point)  # type: ignore[misc]
CLASSES = [make(dataclasses.dataclass), make(records.dataclass)]


@pytest.fixture(params=CLASSES, ids=["dataclasses", "records"])
def made(request):
    return request.param


def test_signature_hints_and_fields_are_the_same():
    first, second = CLASSES
    assert str(inspect.signature(first)) == str(inspect.signature(second))
    assert first.__init__.__qualname__ == second.__init__.__qualname__
    hints = typing.get_type_hints(first.__init__)
    assert hints == typing.get_type_hints(second.__init__)
    assert hints["b"] == tuple[int, ...]
    assert list(map(repr, dataclasses.fields(first))) == list(map(repr, dataclasses.fields(second)))
    assert repr(first.__dataclass_params__) == repr(second.__dataclass_params__)
    assert first.__match_args__ == second.__match_args__
    assert first.__slots__ == second.__slots__
    assert {*vars(first)} == {*vars(second)}


def test_values_and_defaults(made):
    one = made(1, c=[2])
    assert (one.a, one.b, one.c, one.d, one.e, one.f, one.g) == (1, (), [2], "d", 7, [], 1)
    assert repr(one) == "Body(a=1, b=(), c=[2], e=7, f=[], g=1)"
    assert made(1).c is not made(1).c
    assert dataclasses.replace(one, a=3, g=4) == made(3, c=[2], g=4)
    assert dataclasses.asdict(one)["c"] == [2]


def test_equality_and_hash(made):
    assert made(1) == made(1, d="other")
    assert made(1) != made(2)
    assert made(1) != (1,)
    assert hash(made(1)) == hash(made(1, c=[5]))


def test_what_is_frozen(made):
    one = made(1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'a'"):
        one.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'a'"):
        del one.a
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        made()


def test_other_names_are_frozen_but_for_those_of_subclasses():
    # The standard library of Python 3.11 fails here with another error.
    made = CLASSES[1]
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'new'"):
        made(1).new = 2
    more = type("More", (made,), {})(1)
    more.new = 2
    del more.new
    with pytest.raises(dataclasses.FrozenInstanceError):
        more.a = 2


def test_what_a_class_defines_itself_stays():
    assert repr(Point(1.0)) == "<1.0, 0.0>"
    assert Point(1.0, 2.0) == Point(1.0, 3.0)
    assert hash(Point(1.0, 2.0)) != hash(Point(1.0, 3.0))
    with pytest.raises(ValueError, match="left of the origin"):
        Point(-1.0)


def test_copies_and_pickles():
    point = Point(1.0, 2.0)
    for other in (pickle.loads(pickle.dumps(point)), copy.copy(point), copy.deepcopy(point)):
        assert (type(other), other.x, other.y) == (Point, 1.0, 2.0)


def test_a_record_that_holds_itself_can_be_printed(made):
    one = made(1)
    one.c.append(one)
    assert repr(one) == "Body(a=1, b=(), c=[...], e=7, f=[], g=1)"


@pytest.mark.parametrize("options", [{"order": True}, {"eq": False}, {"repr": False}])
def test_other_options(options):
    first, second = make(dataclasses.dataclass, **options), make(records.dataclass, **options)
    assert {*vars(first)} == {*vars(second)}
    assert (first(1) == first(1)) == (second(1) == second(1))


class Few:
    """One field, or none."""


@pytest.mark.parametrize("names", [(), ("a",), ("a", "b")])
def test_records_of_few_fields_are_compared_field_by_field(names):
    class Unequal:
        def __eq__(self, other):
            return False

        __hash__ = None

    made = []
    for decorator in (dataclasses.dataclass, records.dataclass):
        body = {"__annotations__": dict.fromkeys(names, "object"), "__module__": __name__}
        made.append(decorator(frozen=True, slots=True)(type("Few", (Few,), body)))
    same, values = Unequal(), range(len(names))
    for cls in made:
        assert cls(*values) == cls(*values)
        assert hash(cls(*values)) == hash(tuple(values))
        assert (cls(*[v + 1 for v in values]) == cls(*values)) == (not names)
        # As in tuples, what is the same is equal; from Python 3.13 on not in its own.
        if cls is made[1] or sys.version_info < (3, 13):
            assert cls(*[same for _ in names]) == cls(*[same for _ in names])
        assert cls(*values).__eq__(1) is NotImplemented


@pytest.mark.parametrize("options", [{"eq": False}, {"eq": False, "repr": False}])
def test_records_that_are_not_frozen(options):
    made = []
    for decorator in (dataclasses.dataclass, records.dataclass):
        body = {"__annotations__": dict(Body.__annotations__), "__module__": __name__}
        body |= {name: copy.copy(vars(Body)[name]) for name in "bcdefg"} | {"__doc__": "."}
        made.append(decorator(slots=True, **options)(type("Body", (), body)))
    first, second = made
    assert {*vars(first)} == {*vars(second)}
    assert repr(first.__dataclass_params__) == repr(second.__dataclass_params__)
    assert str(inspect.signature(first)) == str(inspect.signature(second))
    for cls in made:
        one = cls(1, c=[2], g=4)
        one.a = 5
        assert (one.a, one.b, one.c, one.d, one.e, one.f, one.g) == (5, (), [2], "d", 7, [], 4)
        assert one != cls(5, c=[2], g=4)
        assert {one: 1}[one] == 1
        with pytest.raises(AttributeError):
            one.other = 1
        del one.a
        assert not hasattr(one, "a")
