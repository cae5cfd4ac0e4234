"""What the function of an op takes: the parameters of its rule, and ``name``.

Importing the package declares hundreds of ops, and few of their signatures are ever looked at. All
that declaring and calling an op need stands in the rule's code object; ``inspect.Signature``, which
takes many times as long to make, is made for whoever asks.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping
from types import CodeType, SimpleNamespace
from typing import Any, final

Arguments = tuple[dict[str, Any], str | None]


@final
class Parameters:
    """The parameters of a rule, in order.

    Attributes:
        names: Their names.
        positional: How many of them, from the first, may be given by position.
        positional_only: How many of them, from the first, may be given by position only.
        flexible: Whether the rule takes ``*args`` or ``**kwargs``, which are not among the names.
        defaults: The defaults of those that have one.
        annotations: The annotations of those that have one.
    """

    __slots__ = ("annotations", "defaults", "flexible", "names", "positional", "positional_only")

    def __init__(self, rule: Callable[..., Any]) -> None:
        if hasattr(rule, "__wrapped__") or hasattr(rule, "__signature__"):
            # What a decorator made of a rule: its code is the decorator's.
            self._read_signature(inspect.signature(rule))
            return
        code = rule.__code__
        self.positional = code.co_argcount
        self.positional_only = code.co_posonlyargcount
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.flexible = bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
        self.annotations: Mapping[str, Any] = rule.__annotations__
        values = rule.__defaults__ or ()
        last = self.names[self.positional - len(values) : self.positional]
        keyword_only = rule.__kwdefaults__ or {}
        self.defaults: dict[str, Any] = {**dict(zip(last, values, strict=True)), **keyword_only}

    def _read_signature(self, signature: inspect.Signature) -> None:
        found = list(signature.parameters.values())
        named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.names = tuple(p.name for p in named)
        self.positional = sum(p.kind is not p.KEYWORD_ONLY for p in named)
        self.positional_only = sum(p.kind is p.POSITIONAL_ONLY for p in named)
        self.flexible = len(named) < len(found)
        self.defaults = {p.name: p.default for p in named if p.default is not p.empty}
        self.annotations = {p.name: p.annotation for p in named if p.annotation is not p.empty}


@final
class Signature(inspect.Signature):
    """The signature of an op's function, read from its rule when somebody looks at it."""

    __slots__ = ("rule",)
    rule: Callable[..., Any]

    @classmethod
    def of_rule(cls, rule: Callable[..., Any]) -> Signature:
        """Return the signature of the function that ``@op`` makes of ``rule``."""
        unread = cls.__new__(cls)
        unread.rule = rule
        return unread

    def __getattr__(self, name: str) -> Any:
        # Reached where a slot is empty, as those of the base class are until then.
        if name not in inspect.Signature.__slots__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        signature = _with_name(inspect.signature(self.rule))
        parameters = list(signature.parameters.values())
        super().__init__(parameters, return_annotation=signature.return_annotation)
        return getattr(self, name)


def _with_name(signature: inspect.Signature) -> inspect.Signature:
    """Return the signature with the ``name`` that every op takes."""
    if "name" in signature.parameters:
        return signature
    parameters = list(signature.parameters.values())
    keyword_only = any(p.kind is p.KEYWORD_ONLY for p in parameters)
    kind = (
        inspect.Parameter.KEYWORD_ONLY if keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    name = inspect.Parameter("name", kind, default=None, annotation="str | None")
    return signature.replace(parameters=[*parameters, name])


def binder(
    parameters: Parameters, signature: inspect.Signature
) -> Callable[[tuple[Any, ...], dict[str, Any]], Arguments]:
    """Return what finds the value of every parameter, and the node's name, in a call's arguments.

    Args:
        parameters: The rule's.
        signature: That of the op's function.
    """
    names, defaults = parameters.names, parameters.defaults
    positional = names[: parameters.positional]
    if "name" not in names:
        if len(positional) == len(names):
            positional = (*positional, "name")
        names, defaults = (*names, "name"), {**defaults, "name": None}
    known = set(names)
    by_position_only = parameters.positional_only > 0

    def bind(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        values = {**defaults, **dict(zip(positional, args, strict=False)), **kwargs}
        twice = kwargs and not kwargs.keys().isdisjoint(positional[: len(args)])
        if len(args) > len(positional) or twice or values.keys() != known or by_position_only:
            # Says what is wrong with them, as Python does.
            values = {**defaults, **signature.bind(*args, **kwargs).arguments}
        return values, values.pop("name")

    return bind


def evaluated(annotation: Any, rule: Callable[..., Any]) -> Any:
    """Return what an annotation means where the rule stands.

    Most are one name, and few differ: ``typing.get_type_hints`` for each would take as long as all
    else that declaring an op takes.
    """
    if not isinstance(annotation, str):
        return annotation
    found = rule.__globals__.get(annotation)
    if found is not None and not isinstance(found, str):
        return found
    if "'" not in annotation and '"' not in annotation and annotation != "None":
        return eval(_compiled(annotation), rule.__globals__)
    # Names inside of strings, and None, which stands for its type.
    names = SimpleNamespace(__annotations__={"": annotation})
    return typing.get_type_hints(names, rule.__globals__, include_extras=True)[""]


@functools.cache
def _compiled(annotation: str) -> CodeType:
    return compile(annotation, "<annotation>", "eval")
