"""The ``@op`` decorator: one Python function declares an op.

Its signature is the schema, its docstring the documentation, and its body the shape and dtype
rule. What the decorator returns is the function that users call to add a node.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import UnionType
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from headrace.dtypes import DType, as_dtype
from headrace.errors import AttributeValueError, HeadraceError, PluginError
from headrace.graph.builder import build_node
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS, REQUIRED, AttrParam, InputParam, Kind, OpSchema
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.signature import Parameters, evaluated
from headrace.shapes import Shape

P = ParamSpec("P")
R = TypeVar("R", covariant=True)

Spec = TensorSpec


class OpFunction(Protocol[P, R]):
    """What ``@op`` makes of a rule: called with tensors, adds a node."""

    schema: OpSchema
    __name__: str

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    @overload
    def __call__(self, *args: Any, name: str | None, **kwargs: Any) -> R: ...


class _Declare(Protocol):
    @overload
    def __call__(self, rule: Callable[P, TensorSpec]) -> OpFunction[P, Tensor]: ...
    @overload
    def __call__(
        self, rule: Callable[P, tuple[TensorSpec, TensorSpec]]
    ) -> OpFunction[P, tuple[Tensor, Tensor]]: ...
    @overload
    def __call__(
        self, rule: Callable[P, tuple[TensorSpec, ...]]
    ) -> OpFunction[P, tuple[Tensor, ...]]: ...
    @overload
    def __call__(self, rule: Callable[P, list[TensorSpec]]) -> OpFunction[P, list[Tensor]]: ...
    @overload
    def __call__(self, rule: Callable[P, None]) -> OpFunction[P, Operation]: ...


def op(
    type_name: str,
    *,
    stateful: bool = False,
    blocking: bool = False,
    elementwise: bool = False,
    reduction: bool = False,
    in_place: Sequence[tuple[int, int]] = (),
    builtin: bool = False,
    no_gradient: str = "",
    public: str | None = None,
) -> _Declare:
    """Declare an op by its shape and dtype rule.

    Parameters annotated with a kind of ``headrace.ops.kinds`` are tensors, ``Sequence[Kind]``
    takes any number of them, and ``Kind | None`` is optional. All others are attributes. The rule
    gets one ``TensorSpec`` per tensor and returns the spec of its output, a tuple or list of
    specs, or None for an op without outputs.

    Args:
        type_name: The op's name in graphs, CamelCase, unique.
        stateful: It reads or changes state, or differs from call to call.
        blocking: It may wait for something outside the step.
        elementwise: Output element i depends only on elements i of the inputs.
        reduction: It folds axes of its first input.
        in_place: Pairs (output, input) that may share memory.
        builtin: The runtime itself runs it, on every device, without a kernel.
        no_gradient: Why it has no gradient; empty where a rule should exist.
        public: Where users find it under ``headrace``; the function's own name if None, hidden
            if empty.

    Raises:
        PluginError: if the rule lacks a docstring or annotations, or the name is taken.
    """

    def declare(rule: Callable[..., Any]) -> Any:
        where = f"{rule.__module__}:{rule.__code__.co_firstlineno}"
        if not rule.__doc__:
            raise PluginError(f"op {type_name!r} at {where} has no docstring; users read it")
        parameters = Parameters(rule)
        inputs, attrs = _inputs_and_attrs(rule, parameters, type_name, where)
        order = [name for name in parameters.names if name != "name"]
        if parameters.flexible:
            raise PluginError(
                f"op {type_name!r}: a rule takes no *args or **kwargs; use Sequence[Kind]"
            )

        def add_node(*args: Any, **kwargs: Any) -> Any:
            values, name = parameters.bind(args, kwargs)
            return build_node(schema, values, name)

        schema = OpSchema(
            type=type_name,
            inputs=inputs,
            attrs=attrs,
            infer=_rule_by_kind(rule, order, inputs, attrs),
            function=add_node,
            stateful=stateful,
            blocking=blocking,
            elementwise=elementwise,
            reduction=reduction,
            in_place=tuple(in_place),
            builtin=builtin,
            no_gradient=no_gradient,
            public=rule.__name__ if public is None else public,
            where=where,
        )
        OPS.add(schema)
        for attribute in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(add_node, attribute, getattr(rule, attribute))
        add_node.__signature__ = parameters.signature  # type: ignore[attr-defined]
        add_node.schema = schema  # type: ignore[attr-defined]
        return add_node

    return typing.cast("_Declare", declare)


def _inputs_and_attrs(
    rule: Callable[..., Any], parameters: Parameters, type_name: str, where: str
) -> tuple[tuple[InputParam, ...], tuple[AttrParam, ...]]:
    inputs: list[InputParam] = []
    attrs: list[AttrParam] = []
    for name in parameters.names:
        if name == "name":
            continue
        if name not in parameters.annotations:
            raise PluginError(f"op {type_name!r} at {where}: parameter {name!r} is not annotated")
        hint = evaluated(parameters.annotations[name], rule)
        default = parameters.defaults.get(name, REQUIRED)
        found = _as_input(name, hint)
        if found is not None:
            empty = found.variadic and default == ()
            inputs.append(replace(found, least=0) if empty else found)
        else:
            attrs.append(AttrParam(name, default, _CONVERSIONS.get(hint), hint))
    return tuple(inputs), tuple(attrs)


# How arguments of attributes with these annotations are read.
_CONVERSIONS: dict[Any, Callable[[Any], Any]] = {DType: as_dtype, Shape: Shape}


def _as_input(name: str, hint: Any) -> InputParam | None:
    if type(hint) is type:  # a plain class, as most attributes have
        return None
    kind = _kind_of(hint)
    if kind is not None:
        return InputParam(name, kind)
    origin = typing.get_origin(hint)
    if origin is Sequence or origin is list:
        kind = _kind_of(typing.get_args(hint)[0])
        return None if kind is None else InputParam(name, kind, variadic=True)
    if origin in (typing.Union, UnionType):
        kinds = [k for k in map(_kind_of, typing.get_args(hint)) if k is not None]
        return InputParam(name, kinds[0], optional=True) if kinds else None
    return None


def _kind_of(hint: Any) -> Kind | None:
    for extra in getattr(hint, "__metadata__", ()):
        if isinstance(extra, Kind):
            return extra
    return None


def _rule_by_kind(
    rule: Callable[..., Any],
    order: list[str],
    inputs: tuple[InputParam, ...],
    attrs: tuple[AttrParam, ...],
) -> Callable[..., Any]:
    """Return the rule callable as ``infer(*specs, **attrs)``, whatever its parameter order."""
    names = [p.name for p in inputs]
    if order[: len(names)] == names:
        return rule

    def infer(*specs: Any, **attributes: Any) -> Any:
        return rule(**dict(zip(names, specs, strict=True)), **attributes)

    return infer


def require(
    condition: bool, message: str, error: type[HeadraceError] = AttributeValueError
) -> None:
    """Refuse what a rule cannot take: raise ``error(message)`` unless ``condition`` holds."""
    if not condition:
        raise error(message)
