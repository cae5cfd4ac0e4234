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
from headrace.errors import AttributeValueError, HeadraceError, PluginError, shown
from headrace.graph.builder import build_node
from headrace.graph.dispatch import KINDS, Callee, handled
from headrace.graph.facts import (
    Effect,
    Reach,
    check_commutative,
    check_names,
    check_total,
    checked_reach,
    effects_of,
    with_host_inputs,
)
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS, REQUIRED, AttrParam, InputParam, Kind, OpSchema
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.signature import Parameters, evaluated
from headrace.scalars.expression import check_expression
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
    effects: Effect | Sequence[Effect] = (),
    blocking: bool = False,
    calls_out: bool = False,
    elementwise: bool = False,
    elements_of: str = "",
    expression: Callable[..., Any] | None = None,
    reduction: bool = False,
    early: Callable[..., Any] | None = None,
    flops: Callable[..., float] | None = None,
    commutative: bool = False,
    exact: bool = False,
    view: bool = False,
    accumulates: bool = False,
    repeats: bool = False,
    nonnegative: bool = False,
    total: bool = False,
    concurrent: bool = False,
    concerted: bool = False,
    host_inputs: Sequence[str] = (),
    aliases: Sequence[str] | None = None,
    keeps_inputs: bool | None = None,
    may_be_dead: bool = False,
    builtin: bool = False,
    reaches: Reach = "",
    no_gradient: str = "",
    public: str | None = None,
    node_name: str = "",
) -> _Declare:
    """Declare an op by its shape and dtype rule.

    Parameters annotated with a kind of ``headrace.ops.kinds`` are tensors, ``Sequence[Kind]``
    takes any number of them, and ``Kind | None`` is optional. All others are attributes. The rule
    gets one ``TensorSpec`` per tensor and returns the spec of its output, a tuple or list of
    specs, or None for an op without outputs.

    Args:
        type_name: The op's name in graphs, CamelCase, unique.
        stateful: Short for ``effects="changes"``, the effect that allows least: such an op runs
            once for each time that the program asks for it.
        effects: What a run does beside computing outputs from inputs, one word or several of
            ``"reads"`` (state, which equal reads between two changes see alike), ``"draws"``
            (random numbers; seeds are in an attribute ``seeds``), ``"observes"`` (what lies
            outside the program, such as a clock) and ``"changes"`` (state, or what lies outside).
            Only what changes something runs although nobody needs its outputs.
        blocking: It may wait for something outside the step.
        calls_out: Its kernels, plain or stateful ones, call the program's own code and return when
            that does. They are called in a thread of their own where other operations of the step
            could run.
        elementwise: Output element i depends only on elements i of the inputs.
        elements_of: Of an op that is not elementwise, the input of which each element alone makes
            an element of the output, while other inputs say how; ragged tensors may stand there.
        expression: What element i of the output is: ``f(s, *inputs, **attrs)`` computes it from
            the inputs' elements with Python's operators and the functions of ``s``, such as
            ``s.exp``. Compilers fuse the op then, and it needs no kernel. For dtypes that the
            functions do not take, kernels are used.
        reduction: It folds axes of its first input.
        early: Computes it from small arrays of integers while the graph is built, as
            ``f(*inputs, **attrs)`` on NumPy arrays, so that shapes that a program computes with it
            are known. It may return None, or raise, to leave that to the step.
        flops: Counts the floating-point operations of a run, for placement by cost:
            ``f(inputs, outputs)`` of shapes, which are tuples of numbers. None where one for each
            element is about right.
        commutative: Its two inputs give the same bits in either order; strings are excepted.
        exact: Every element of its result is that of real arithmetic, rounded correctly, so that
            its bits do not depend on what is computed beside it. Complex results may differ.
        view: It yields the elements of its first input in their order, under another shape at most.
        accumulates: It adds up what meets in one place of an output, as scattering does; some
            devices do so in an order of chance, which ``Config(deterministic=True)`` refuses.
        repeats: Its output holds elements of an input again and again, and no others.
        nonnegative: No element of its output is negative, nor -0.
        total: It fails for no values of inputs whose shapes are known when the graph is built, and
            the values of ``host_inputs``, too. A step may then compute it where the program might
            not have: ahead of a loop that may make no round. What an ``expression`` computes is
            total without that.
        concurrent: The handle that it yields stands for what is made to be used in any order, such
            as a queue: ``Config(check_races=True)`` lets operations use it in no order.
        concerted: It goes on only together with steps of other sessions, as what gathers gradients
            of several workers does, and keeps the order among them by itself:
            ``Config(consistency=...)`` refuses to, and fences leave it alone.
        host_inputs: Names of tensors that kernels get as NumPy arrays on every device, such as
            shapes, whose values decide how much memory an output takes.
        aliases: Names of tensors whose memory outputs may share. None stands for all of them, or,
            where the op is elementwise, for none.
        keeps_inputs: Whether kernels may keep arrays that they get, beyond the call. None stands
            for whether the op changes something.
        may_be_dead: Outputs may be dead, so that what takes them does not run; for ops that the
            runtime itself runs.
        builtin: The runtime itself runs it, on every device, without a kernel.
        reaches: What it reaches that a program would not leave to a model of a stranger:
            ``"files"``, which it writes where its inputs say, or ``"python"``, functions of the
            process. ``hr.saved_model`` does not run such ops by itself.
        no_gradient: Why it has no gradient; empty where a rule should exist.
        public: Where users find it under ``headrace``; the function's own name if None, hidden
            if empty.
        node_name: What its nodes are called where a program gives them no name; ``type_name`` if
            empty.

    Raises:
        PluginError: if the rule lacks a docstring or annotations, the name is taken, the
            expression is wrong, or facts contradict each other.
    """

    def declare(rule: Callable[..., Any]) -> Any:
        where = f"{rule.__module__}:{rule.__code__.co_firstlineno}"
        if not rule.__doc__:
            raise PluginError(f"op {type_name!r} at {where} has no docstring; users read it")
        parameters = Parameters(rule)
        inputs, attrs = _inputs_and_attrs(rule, parameters, type_name, where)
        given = effects_of(type_name, stateful, effects)
        kept = "changes" in given if keeps_inputs is None else keeps_inputs
        inputs = with_host_inputs(type_name, inputs, host_inputs)
        if aliases is not None:
            check_names(type_name, "aliases", inputs, aliases)
        if early is not None and given:
            raise PluginError(
                f"op {type_name!r}: what has effects is not computed early; drop early="
            )
        if commutative:
            check_commutative(type_name, inputs)
        if concerted and not (blocking and "changes" in given):
            raise PluginError(
                f"op {type_name!r}: what is concerted changes something and may wait; state "
                "effects='changes' and blocking=True, too"
            )
        if total:
            check_total(type_name, given, blocking or calls_out)
        if may_be_dead and not builtin:
            raise PluginError(f"op {type_name!r}: only ops of the runtime itself may be dead")
        order = [name for name in parameters.names if name != "name"]
        if parameters.flexible:
            raise PluginError(
                f"op {type_name!r}: a rule takes no *args or **kwargs; use Sequence[Kind]"
            )

        def add_node(*args: Any, **kwargs: Any) -> Any:
            if KINDS:
                made = handled(callee, args, kwargs)
                if made is not NotImplemented:
                    return made
            values, name = parameters.bind(args, kwargs)
            return build_node(schema, values, name)

        schema = OpSchema(
            type=type_name,
            inputs=inputs,
            attrs=attrs,
            infer=_rule_by_kind(rule, order, inputs, attrs),
            function=add_node,
            effects=given,
            blocking=blocking,
            calls_out=calls_out,
            elementwise=elementwise,
            expression=expression,
            reduction=reduction,
            early=early,
            flops=flops,
            commutative=commutative,
            exact=exact,
            view=view,
            accumulates=accumulates,
            repeats=repeats,
            nonnegative=nonnegative,
            total=total,
            concurrent=concurrent,
            concerted=concerted,
            aliases=None if aliases is None else tuple(aliases),
            keeps_inputs=kept,
            may_be_dead=may_be_dead,
            builtin=builtin,
            reaches=checked_reach(type_name, reaches),
            no_gradient=no_gradient,
            public=rule.__name__ if public is None else public,
            node_name=node_name or type_name,
            where=where,
        )
        mapped = tuple(param.name for param in inputs if elementwise or param.name == elements_of)
        if elements_of and not mapped:
            raise PluginError(
                f"op {type_name!r}: elements_of names no input, got {shown(elements_of)}"
            )
        callee = Callee(type_name, mapped, add_node)
        if expression is not None:
            check_expression(schema)
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
            raise PluginError(
                f"op {type_name!r} at {where}: parameter {name!r} is not annotated; "
                "annotate it with a kind of tensors, such as Floating, or the type of an attribute"
            )
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
