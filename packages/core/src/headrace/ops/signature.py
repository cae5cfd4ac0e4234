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


@final
class Parameters:
    """The parameters of the function that ``@op`` makes of a rule, in order.

    Attributes:
        signature: The function's signature.
        names: Their names, with ``name``.
        positional: The names of those that may be given by position.
        positional_only: How many of them, from the first, may be given by position only.
        flexible: Whether the rule takes ``*args`` or ``**kwargs``, which are not among the names.
        defaults: The defaults of those that have one.
        annotations: The annotations of those of the rule that have one.
    """

    __slots__ = (
        "annotations",
        "defaults",
        "flexible",
        "names",
        "positional",
        "positional_only",
        "signature",
    )

    def __init__(self, rule: Callable[..., Any]) -> None:
        self.signature = Signature.of_rule(rule)
        self.names: tuple[str, ...]
        self.positional: tuple[str, ...]
        self.defaults: dict[str, Any]
        self.annotations: Mapping[str, Any]
        if hasattr(rule, "__wrapped__") or hasattr(rule, "__signature__"):
            # What a decorator made of a rule: its code is the decorator's.
            self._read_signature(inspect.signature(rule))
        else:
            self._read_code(rule)
        if "name" not in self.names:
            if len(self.positional) == len(self.names):
                self.positional = (*self.positional, "name")
            self.names = (*self.names, "name")
            self.defaults["name"] = None

    def _read_code(self, rule: Callable[..., Any]) -> None:
        code = rule.__code__
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.positional = self.names[: code.co_argcount]
        self.positional_only = code.co_posonlyargcount
        self.flexible = bool(code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
        self.annotations = rule.__annotations__
        values = rule.__defaults__ or ()
        last = self.positional[len(self.positional) - len(values) :]
        self.defaults = {**dict(zip(last, values, strict=True)), **(rule.__kwdefaults__ or {})}

    def _read_signature(self, signature: inspect.Signature) -> None:
        found = list(signature.parameters.values())
        named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
        self.names = tuple(p.name for p in named)
        self.positional = tuple(p.name for p in named if p.kind is not p.KEYWORD_ONLY)
        self.positional_only = sum(p.kind is p.POSITIONAL_ONLY for p in named)
        self.flexible = len(named) < len(found)
        self.defaults = {p.name: p.default for p in named if p.default is not p.empty}
        self.annotations = {p.name: p.annotation for p in named if p.annotation is not p.empty}

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[dict[str, Any], str | None]:
        """Return the value of every parameter of a call, and the node's name.

        Raises:
            TypeError: if the function does not take these arguments.
        """
        values = {**self.defaults, **dict(zip(self.positional, args, strict=False)), **kwargs}
        if (
            self.positional_only
            or len(args) > len(self.positional)
            or not kwargs.keys().isdisjoint(self.positional[: len(args)])
            or values.keys() != {*self.names}
        ):
            # Says what is wrong with them, as Python does.
            values = {**self.defaults, **self.signature.bind(*args, **kwargs).arguments}
        return values, values.pop("name")


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
