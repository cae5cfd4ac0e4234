"""Values that no argument expects, each made anew for its case.

What a program's own objects raise while they are compared, counted, iterated or converted is the
program's, and comes through: it is an ``OwnError`` here. What they raise while they are shown is
not: messages are made of whatever there is.
"""

from __future__ import annotations

import decimal
import itertools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

import headrace as hr


class OwnError(Exception):
    """An exception of the program's own object."""


class _ReprRaises:
    def __repr__(self) -> str:
        raise ValueError("hostile repr")


class _ReprRecurses:
    def __repr__(self) -> str:
        return repr(self)


class _ReprIsNoText:
    def __repr__(self) -> str:
        return 5  # type: ignore[return-value]


class _Number(int):
    def __repr__(self) -> str:
        raise ValueError("hostile repr of a number")


class _List(list[Any]):
    def __repr__(self) -> str:
        raise ValueError("hostile repr of a list")


class _Unhashable:
    __hash__ = None  # type: ignore[assignment]


class _HashRaises:
    def __hash__(self) -> int:
        raise TypeError("hostile hash")


class _EqRaises:
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise OwnError("eq")


class _TruthRaises:
    def __bool__(self) -> bool:
        raise OwnError("bool")


class _LenRaises:
    def __len__(self) -> int:
        raise OwnError("len")

    def __getitem__(self, index: Any) -> Any:
        raise OwnError("item")


class _LenIsHuge:
    def __len__(self) -> int:
        return 2**63 - 1

    def __getitem__(self, index: Any) -> Any:
        raise IndexError(index)


class _IterRaises:
    def __iter__(self) -> Iterator[Any]:
        raise OwnError("iter")


class _ArrayRaises:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise OwnError("array")


class _ArrayIsNone:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return "no array"


class _IndexRaises:
    def __index__(self) -> int:
        raise OwnError("index")

    def __float__(self) -> float:
        raise OwnError("float")


class _AttributesRaise:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise OwnError("attribute")


class _HasAll:
    """An object that has every attribute, and none that is right."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _HasAll()


class _Changing(dict[Any, Any]):
    def items(self) -> Any:
        for item in list(super().items()):
            self[len(self)] = 1
            yield item

    def __iter__(self) -> Iterator[Any]:
        for key in super().__iter__():
            self[len(self)] = 1
            yield key


class EndlessByNumber:
    """A list by number, which has an item for every number."""

    def __getitem__(self, index: int) -> Any:
        return 1


class EndlessDict(Mapping[Any, Any]):
    """A mapping of two keys that hands out keys for ever."""

    def __getitem__(self, key: Any) -> Any:
        return 1

    def __iter__(self) -> Iterator[Any]:
        return itertools.count()

    def __len__(self) -> int:
        return 2


def _raising() -> Iterator[Any]:
    yield 1
    raise OwnError("generator")


def nested(depth: int, wrap: Callable[[Any], Any], leaf: Any = 1) -> Any:
    """Return a value wrapped so many times."""
    for _ in range(depth):
        leaf = wrap(leaf)
    return leaf


def _endless() -> list[Any]:
    own: list[Any] = []
    own.append(own)
    return own


def _of_another_graph() -> Any:
    with hr.Graph().as_default():
        return hr.constant(1.0, name="foreign")


def _closed() -> Any:
    session = hr.Session(graph=hr.Graph())
    session.close()
    return session


def _objects() -> Any:
    made = np.empty(2, object)
    made[:] = [_ReprRaises(), None]
    return made


VALUES: dict[str, Callable[[], Any]] = {
    "repr raises": _ReprRaises,
    "repr recurses": _ReprRecurses,
    "repr is no text": _ReprIsNoText,
    "list of repr raises": lambda: [_ReprRaises(), _ReprRaises()],
    "dict of repr raises": lambda: {"a": _ReprRaises()},
    "key whose repr raises": lambda: {_ReprRaises(): 1.0},
    "number whose repr raises": lambda: _Number(7),
    "list whose repr raises": lambda: _List([1, 2]),
    "array of objects": _objects,
    "unhashable": _Unhashable,
    "hash raises": _HashRaises,
    "list of unhashable": lambda: [_Unhashable()],
    "eq raises": _EqRaises,
    "truth raises": _TruthRaises,
    "len raises": _LenRaises,
    "len is huge": _LenIsHuge,
    "iter raises": _IterRaises,
    "array raises": _ArrayRaises,
    "array is none": _ArrayIsNone,
    "index raises": _IndexRaises,
    "attributes raise": _AttributesRaise,
    "has all attributes": _HasAll,
    "changing dict": lambda: _Changing({"a": 1, "b": 2}),
    "generator that raises": _raising,
    "deep list": lambda: nested(10_000, lambda v: [v]),
    "deep tuple": lambda: nested(10_000, lambda v: (v,)),
    "deep dict": lambda: nested(10_000, lambda v: {"a": v}),
    "deep list of texts": lambda: nested(200, lambda v: [v], "a"),
    "list in itself": _endless,
    "10^400": lambda: 10**400,
    "-10^400": lambda: -(10**400),
    "10^5000": lambda: 10**5000,
    "-10^5000": lambda: -(10**5000),
    "list with 10^5000": lambda: [10**5000, 1],
    "2^63": lambda: 2**63,
    "-2^63": lambda: -(2**63),
    "minus one": lambda: -1,
    "zero": lambda: 0,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: -float("inf"),
    "half": lambda: 0.5,
    "nan in a list": lambda: [float("nan"), float("inf")],
    "complex nan": lambda: complex("nan+infj"),
    "True": lambda: True,
    "None": lambda: None,
    "Ellipsis": lambda: ...,
    "empty text": lambda: "",
    "surrogate": lambda: "\ud800",
    "surrogates in a list": lambda: ["a", "\udfff"],
    "NUL": lambda: "a\0b",
    "long text": lambda: "x" * 100_000,
    "many lines": lambda: "x\n" * 50,
    "braces": lambda: "{0.__class__} %s {",
    "bytes": lambda: b"\xff\0\xfe",
    "bytearray": lambda: bytearray(b"ab"),
    "empty list": list,
    "empty dict": dict,
    "list of None": lambda: [None],
    "list of lists": lambda: [[1, 2], [3]],
    "list of kinds": lambda: [1, "a", None, 2.5],
    "set": lambda: {1, 2},
    "slice": lambda: slice(None, "a", 0.5),
    "object": object,
    "a type": lambda: int,
    "a module": lambda: types,
    "a function": lambda: lambda *a, **k: None,
    "a function that raises": lambda: _call_raises,
    "a function of none": lambda: lambda: 1,
    "range": lambda: range(10**18),
    "decimal": lambda: decimal.Decimal("sNaN"),
    "datetime64": lambda: np.datetime64("NaT"),
    "array": lambda: np.ones(2),
    "empty array": lambda: np.zeros((0, 3), np.float32),
    "structured array": lambda: np.zeros(2, [("a", "i4"), ("b", "f8")]),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "array of texts": lambda: np.array(["a\0b", "é"]),
    "array of rank 40": lambda: np.ones([1] * 40, np.float32),
    "numpy scalar": lambda: np.float32(np.nan),
    "tensor": lambda: hr.constant([[1.0, 2.0], [3.0, 4.0]]),
    "text tensor": lambda: hr.constant(["a", "b"]),
    "bool tensor": lambda: hr.constant([True]),
    "unknown tensor": lambda: hr.placeholder(hr.float32),
    "unknown int": lambda: hr.placeholder(hr.int32),
    "tensor of another graph": _of_another_graph,
    "variable": lambda: hr.Variable([1.0, 2.0]),
    "operation": hr.no_op,
    "sparse": lambda: hr.SparseTensor([[0, 0]], [1.0], [2, 2]),
    "closed session": _closed,
    "graph": hr.Graph,
    "dtype": lambda: hr.float16,
    "list of dtypes": lambda: [hr.float32, hr.string],
    "shape": lambda: hr.TensorShape([None, 3]),
    "count": lambda: itertools.repeat(1, 3),
    "endless": itertools.count,
    "endless texts": lambda: itertools.repeat("a"),
    "endless by number": EndlessByNumber,
    "endless dict": EndlessDict,
    "list of endless": lambda: [itertools.count()],
    "list of ranges": lambda: [range(10**18), 1],
}


def _call_raises(*args: Any, **kwargs: Any) -> Any:
    raise OwnError("call")
