"""Records: dataclasses with slots, made in a fraction of the time.

``dataclasses`` compiles six functions for each class, which took a fifth of the time of importing
the package. Here ``__init__`` alone is compiled, and the others are closures. They do the same, and
what reads dataclasses, from ``replace`` to ``pickle`` and type checkers, sees one. Those that are
not frozen are quick to make where they are compared by identity. Fields annotated ``InitVar`` are
not supported.
"""

from __future__ import annotations

import dataclasses
import operator
import reprlib
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

_MISSING = dataclasses.MISSING


class _Factory:
    """The default, in signatures, of a field whose default is made for each record."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _record(
    cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **options: Any
) -> Any:
    """Make a class a dataclass, as ``dataclasses.dataclass`` does with the same options."""

    def make(cls: type) -> type:
        rare = options.keys() & {"init", "order", "unsafe_hash"}
        if rare or not slots or not (frozen or options.get("eq", True) is False):
            return dataclasses.dataclass(frozen=frozen, slots=slots, **options)(cls)
        return _with_slots(cls, frozen=frozen, **options)

    return make if cls is None else make(cls)


def _with_slots(
    cls: type, *, frozen: bool, eq: bool = True, repr: bool = True, **options: Any
) -> type:
    wanted = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, **options)
    made: Any = wanted(cls)
    fields = dataclasses.fields(made)
    parameters = made.__dataclass_params__
    parameters.init, parameters.frozen = True, frozen
    parameters.eq, parameters.repr = eq, repr
    methods = {"__init__": _init(made, fields)}
    methods |= _compared(fields) if eq else {}
    methods |= _repr(fields) if repr else {}
    methods |= {**_frozen(made, fields), **_state(fields)} if frozen else {}
    for name, method in methods.items():
        # What the class defines itself stays; a class that defines ``__eq__`` has None for a hash.
        if vars(made).get(name) is None:
            method.__name__, method.__qualname__ = name, f"{cls.__qualname__}.{name}"
            method.__module__ = cls.__module__
            setattr(made, name, method)
    return made  # type: ignore[no-any-return]


Fields = tuple[dataclasses.Field[Any], ...]
Methods = dict[str, Callable[..., Any]]


def _init(cls: type, fields: Fields) -> Callable[..., None]:
    """Return ``__init__``, which is compiled, as it must be quick."""
    # The descriptors of slots set what ``__setattr__`` refuses to.
    space: dict[str, Any] = {f"_set_{f.name}": getattr(cls, f.name).__set__ for f in fields}
    space["_FACTORY"] = _FACTORY
    given = [f for f in fields if f.init]
    positional = [f for f in given if not f.kw_only]
    keyword_only = [f for f in given if f.kw_only]
    names = ["self", *(f.name for f in positional)]
    names += ["*", *(f.name for f in keyword_only)] if keyword_only else []
    lines = [f" def __init__({', '.join(names)}):"]
    for f in fields:
        value = f.name if f.init else f"_default_{f.name}"
        if f.default_factory is not _MISSING:
            space[f"_make_{f.name}"] = f.default_factory
            new = f"_make_{f.name}()"
            value = f"{new} if {f.name} is _FACTORY else {f.name}" if f.init else new
        elif not f.init:
            if f.default is _MISSING:
                continue
            space[value] = f.default
        lines.append(f"  _set_{f.name}(self, {value})")
    lines.append("  self.__post_init__()" if hasattr(cls, "__post_init__") else "  pass")
    source = "\n".join([f"def outer({', '.join(space)}):", *lines, " return __init__"])
    # Their globals are those of the class's module: there the names in annotations are looked up.
    local: dict[str, Any] = {}
    exec(source, vars(sys.modules[cls.__module__]), local)
    init: Any = local["outer"](**space)
    init.__annotations__ = {**{f.name: f.type for f in given}, "return": None}
    init.__defaults__ = tuple(_default(f) for f in positional if _has_default(f)) or None
    init.__kwdefaults__ = {f.name: _default(f) for f in keyword_only if _has_default(f)} or None
    return init  # type: ignore[no-any-return]


def _compared(fields: Fields) -> Methods:
    """Return ``__eq__`` and ``__hash__``, of the values of fields as tuples."""
    compared = _values([f.name for f in fields if f.compare])
    hashed = _values([f.name for f in fields if (f.compare if f.hash is None else f.hash)])

    def equal(self: Any, other: Any) -> Any:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return compared(self) == compared(other)

    return {"__eq__": equal, "__hash__": lambda self: hash(hashed(self))}


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what makes a tuple of the values of fields of a record."""
    if not names:
        return lambda record: ()
    get = operator.attrgetter(*names)
    return get if len(names) > 1 else lambda record: (get(record),)


def _has_default(f: dataclasses.Field[Any]) -> bool:
    return f.default is not _MISSING or f.default_factory is not _MISSING


def _default(f: dataclasses.Field[Any]) -> Any:
    return _FACTORY if f.default is _MISSING else f.default


def _repr(fields: Fields) -> Methods:
    names = [f.name for f in fields if f.repr]

    @reprlib.recursive_repr()
    def shown(self: Any) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__qualname__}({inside})"

    return {"__repr__": shown}


def _frozen(cls: Any, fields: Fields) -> Methods:
    names = {f.name for f in fields}

    # A subclass may add attributes of its own.
    def refuse_set(self: Any, name: str, value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def refuse_delete(self: Any, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return {"__setattr__": refuse_set, "__delattr__": refuse_delete}


def _state(fields: Fields) -> Methods:
    names = [f.name for f in fields]

    # How pickle gets past ``__setattr__``.
    def state(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": state, "__setstate__": set_state}


# To type checkers it is the standard library's, of which they know what it makes.
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    dataclass = _record
