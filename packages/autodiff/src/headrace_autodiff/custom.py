"""Gradients that programs define themselves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, final

from headrace import (
    Operation,
    Tensor,
    Variable,
    convert_to_tensor,
    get_default_graph,
    identity_n,
    name_scope,
    nest,
    zeros_like,
)
from headrace.errors import GraphError, PluginError, listing, shown
from headrace.extend.gradients import GradientRule
from headrace.extend.graphs import gradient_override_map as gradient_override_map
from headrace_autodiff.lookup import USER_RULES
from headrace_autodiff.lookup import find as find_rule

F = TypeVar("F", bound=Callable[..., Any])


@final
class RegisterGradient:
    """A decorator that names a gradient rule: of an op type, or for ``gradient_override_map``.

    The function takes the operation and the gradients of its outputs, None for those that none
    reaches, and returns one gradient or None for each input. It holds for the whole process.

    Example::

        @hr.RegisterGradient("GuidedRelu")
        def guided_relu(op, grad):
            return hr.where(grad > 0, hr.where(op.outputs[0] > 0, grad, 0), 0)

        with hr.gradient_override_map({"Relu": "GuidedRelu"}):
            y = hr.nn.relu(x)
    """

    def __init__(self, op_type: Any) -> None:
        """Start naming a rule.

        Args:
            op_type: The op type, or the name.

        Raises:
            GraphError: if it is no string.
        """
        if not isinstance(op_type, str) or not op_type:
            raise GraphError(f"RegisterGradient takes an op type or a name, got {shown(op_type)}")
        self._name = op_type

    def __call__(self, rule: F) -> F:
        """Name ``rule``.

        Raises:
            PluginError: if another rule has the name.
        """
        where = f"{rule.__module__}:{rule.__code__.co_firstlineno}"
        if USER_RULES.get(self._name) is None and find_rule(self._name) is not None:
            raise PluginError(
                f"{self._name} has a gradient rule already; to use the one at {where} for some "
                "operations only, register it under another name and use hr.gradient_override_map"
            )
        USER_RULES.add([GradientRule(self._name, rule, where)])
        return rule


def no_gradient(op_type: str) -> None:
    """Declare that an op passes no gradient on to its inputs. It holds for the whole process.

    Args:
        op_type: The op type.

    Raises:
        GraphError: if it is no string.
        PluginError: if the op has a gradient rule.
    """

    @RegisterGradient(op_type)
    def stop(op: Operation, *gradients: Any) -> list[None]:
        return [None] * len(op.inputs)


def custom_gradient(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function a gradient of its own.

    ``f`` takes tensors and returns ``(y, grad_fn)``: a tensor or a list of these, and a function
    from the gradients of the ys (zeros where none arrives) to those of the arguments. If ``f``
    reads variables other than its arguments, ``grad_fn`` takes them as ``variables=`` and returns
    two lists, for the arguments and for the variables.

    The gradient belongs to the graph in memory: a document of the graph holds its name only.

    Example::

        @hr.custom_gradient
        def log1pexp(x):
            e = hr.exp(x)
            return hr.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    Args:
        f: The function.

    Returns:
        A function from tensors to what ``f`` returns first.

    Raises:
        GraphError: when called, if ``f`` or ``grad_fn`` returns something else.
    """

    @functools.wraps(f)
    def decorated(*args: Any, **kwargs: Any) -> Any:
        graph = get_default_graph()
        label = getattr(f, "__name__", "f")
        with name_scope(None, "CustomGradient") as scope:
            xs = [convert_to_tensor(a) for a in args]
            start = graph.version
            ys, single, grad_fn = _split_result(label, f(*xs, **kwargs))
            variables = _variables_read(ys, xs, start)
            _check_takes_variables(label, grad_fn, variables)
            rule = functools.partial(_apply, label, grad_fn, len(ys), tuple(variables))
            graph.gradient_rules[scope] = rule
            with gradient_override_map({"IdentityN": scope}):
                outputs = identity_n([*ys, *xs, *(v.value() for v in variables)])
        return outputs[0] if single else outputs[: len(ys)]

    return decorated


def grad_pass_through(f: Callable[..., Any]) -> Callable[..., Any]:
    """Give a function of one tensor the gradient of the identity.

    Args:
        f: The function; what it returns has the shape of what it takes.

    Returns:
        A function that computes the same.
    """

    @custom_gradient
    def passing(*args: Any, **kwargs: Any) -> Any:
        def grad(*arriving: Any, **others: Any) -> Any:
            variables = others.get("variables")
            given = arriving[0] if len(arriving) == 1 else list(arriving)
            return given if variables is None else (given, [None] * len(variables))

        return f(*args, **kwargs), grad

    return functools.wraps(f)(passing)


def _split_result(label: str, result: Any) -> tuple[list[Tensor], bool, Callable[..., Any]]:
    if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
        raise GraphError(
            f"custom_gradient: {label} must return (y, grad_fn): a tensor or a list of tensors, "
            f"and a function; got {shown(result)}"
        )
    ys, grad_fn = result
    single = not isinstance(ys, list | tuple)
    return [convert_to_tensor(y) for y in ([ys] if single else ys)], single, grad_fn


def _variables_read(ys: Sequence[Tensor], xs: Sequence[Tensor], start: int) -> list[Variable]:
    """Return the variables that operations since ``start`` read on the way to the ys."""
    graph = get_default_graph()
    known = {graph.stand_in(v.handle): v for v in graph.outermost.variables}
    found: dict[Variable, None] = {}
    seen: set[Tensor] = set(xs)
    stack = list(ys)
    while stack:
        tensor = stack.pop()
        if tensor in seen or tensor.op.index < start:
            continue
        seen.add(tensor)
        stack.extend(tensor.op.inputs)
        if tensor.op.type == "ReadVariable" and tensor.op.inputs[0] in known:
            found[known[tensor.op.inputs[0]]] = None
    return sorted(found, key=lambda v: v.handle.op.index)


def _check_takes_variables(
    label: str, grad_fn: Callable[..., Any], variables: Sequence[Variable]
) -> None:
    parameters = inspect.signature(grad_fn).parameters.values()
    if variables and not any(p.name == "variables" or p.kind is p.VAR_KEYWORD for p in parameters):
        raise GraphError(
            f"custom_gradient: {label} reads {listing(v.name for v in variables)}, whose "
            "gradients would be lost; let grad_fn take variables= and return two lists, for the "
            "arguments and for the variables, or pass the variables as arguments"
        )


def _apply(
    label: str,
    grad_fn: Callable[..., Any],
    count: int,
    variables: tuple[Variable, ...],
    op: Operation,
    *grads: Tensor | None,
) -> list[Any]:
    """The rule of the node that stands for a call: its inputs are ys, arguments and variables."""
    pairs = list(zip(op.outputs, grads, strict=True))[:count]
    arriving = [zeros_like(t) if g is None and t.dtype.is_differentiable else g for t, g in pairs]
    wanted = len(op.inputs) - count - len(variables)
    result: Any
    of_variables: Any = []
    if variables:
        result = grad_fn(*arriving, variables=list(variables))
        if not isinstance(result, tuple) or len(result) != 2:
            raise GraphError(
                f"custom_gradient: with variables, grad_fn of {label} returns two lists, for the "
                f"arguments and for the variables; got {shown(result)}"
            )
        result, of_variables = result
    else:
        result = grad_fn(*arriving)
    # In any structure: functions for calls with and without variables return lists in lists.
    given = nest.flatten(result)
    if len(given) != wanted or len(of_variables) != len(variables):
        raise GraphError(
            f"custom_gradient: grad_fn of {label} returned {len(given)} gradients for {wanted} "
            f"arguments and {len(of_variables)} for {len(variables)} variables"
        )
    return [None] * count + given + list(of_variables)


# TensorFlow's names of it.
NoGradient = NotDifferentiable = no_gradient
