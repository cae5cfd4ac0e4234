"""Expressions of ops: what a declaration states, written down for the dtypes of a node."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace import dtypes
from headrace.dtypes import DType
from headrace.errors import PluginError, shown
from headrace.graph.attributes import attribute_key
from headrace.graph.schema import REQUIRED, AttrParam, InputParam, OpSchema
from headrace.records import dataclass
from headrace.scalars.scalar import (
    INPUT,
    Scalar,
    ScalarError,
    Scalars,
    ScalarTypeError,
    constant,
)

if TYPE_CHECKING:
    from headrace.graph.operation import Operation

# Tried in this order when an op is declared: an expression must mean something for one of them.
_TRIED = (dtypes.float32, dtypes.bool_, dtypes.int32, dtypes.uint8, dtypes.float64)
# What stands for an attribute that every node must give, by its annotation.
_STAND_INS = {float: 1.0, int: 1, bool: True, DType: dtypes.float32}


@dataclass(frozen=True, slots=True, eq=False)
class Expression:
    """An elementwise op's value, for inputs of certain dtypes and certain attributes.

    Attributes:
        steps: All scalars that the value needs, each after those that it is computed from; the
            last one is the value.
    """

    steps: tuple[Scalar, ...]

    @property
    def result(self) -> Scalar:
        """The value."""
        return self.steps[-1]


# Expressions by op, dtypes and attributes; they are forgotten together when they are many.
_RECORDED: dict[Any, Expression | None] = {}
_MOST_RECORDED = 4096


def expression_of(op: Operation) -> Expression | None:
    """Return the expression of an operation.

    Returns:
        None if its op states none, or none for these dtypes.

    Raises:
        PluginError: if what it states is wrong; names the op and the line of its declaration.
    """
    schema, attrs = op.schema, op.attrs
    if schema.expression is None:
        return None
    # Thousands of nodes share a few expressions.
    key = (
        schema,
        tuple([t.spec.dtype.name for t in op.inputs]),
        tuple([t.spec.dtype.name for t in op.outputs]),
        op.arity,
        tuple([(name, attribute_key(value)) for name, value in attrs.items()]) if attrs else (),
    )
    try:
        return _RECORDED[key]
    except KeyError:
        pass
    if len(_RECORDED) >= _MOST_RECORDED:
        _RECORDED.clear()
    found = _RECORDED[key] = _promised(op)
    return found


def is_total(op: Operation) -> bool:
    """Whether an operation fails for no values of its inputs, so that it may run unasked.

    That holds where its op says so, or what it computes of each element; where all shapes are
    known; and where its rule has seen the values of what it reads on the host, such as sizes.
    """
    schema = op.schema
    if schema.stateful or schema.blocking or schema.calls_out:
        return False
    if not all(t.spec.shape.is_fully_defined() for t in (*op.inputs, *op.outputs)):
        return False
    if not schema.total and expression_of(op) is None:
        return False
    read = schema.flat_places(op.arity, lambda param: param.on_host)
    return all(op.inputs[i].spec.value is not None for i in read)


def _promised(op: Operation) -> Expression | None:
    """Return the expression of an operation, of which the dtype is that of the output."""
    schema = op.schema
    if any(t.dtype.is_quantized for t in (*op.inputs, *op.outputs)):
        # Scalars are numbers: of levels, kernels copy and compare the integers.
        return None
    found = _record(schema, tuple([t.dtype for t in op.inputs]), op.arity, op.attrs)
    if found is not None and [found.result.dtype] != [t.dtype for t in op.outputs]:
        promised = ", ".join(str(t.dtype) for t in op.outputs)
        raise _wrong(schema, f"yields {found.result.dtype}, and the rule promises {promised}")
    return found


def _record(
    schema: OpSchema, given: tuple[DType, ...], arity: tuple[int, ...], attrs: Mapping[str, Any]
) -> Expression | None:
    try:
        return _written(schema, given, arity, attrs)
    except ScalarTypeError:
        return None
    except ScalarError as error:
        raise _wrong(schema, str(error)) from None
    except Exception as error:
        raise _wrong(schema, f"{type(error).__name__}: {error}") from error


def _written(
    schema: OpSchema, given: Sequence[DType], arity: tuple[int, ...], attrs: Mapping[str, Any]
) -> Expression:
    assert schema.expression is not None
    inputs = tuple(Scalar(INPUT, dtype, value=i) for i, dtype in enumerate(given))
    scalars = Scalars(given[0])
    value = schema.expression(scalars, *schema.group(inputs, arity), **attrs)
    if not isinstance(value, Scalar):
        value = constant(value, given[0])
    return Expression(_in_order(value))


def _in_order(value: Scalar) -> tuple[Scalar, ...]:
    """Return a scalar and all that it is computed from, arguments first."""
    found: dict[Scalar, None] = {}
    stack = [(value, False)]
    while stack:
        scalar, ready = stack.pop()
        if ready:
            found[scalar] = None
        elif scalar not in found:
            stack.append((scalar, True))
            stack.extend((arg, False) for arg in reversed(scalar.args) if arg not in found)
    return tuple(found)


def check_expression(schema: OpSchema) -> None:
    """Refuse an expression that can be seen to be wrong when its op is declared.

    Raises:
        PluginError: if it takes other arguments than the op, uses functions that there are not, or
            means nothing for any dtype; names the op and the line.
    """
    assert schema.expression is not None
    if not schema.inputs:
        raise _wrong(schema, "computes from elements of inputs, and the op takes no tensors")
    _check_arguments(schema)
    if not _has_samples(schema):
        # What it does with its attributes shows with the first node.
        return
    reason = ""
    for dtype in _TRIED:
        try:
            if _tried(schema, dtype) is not None:
                return
        except ScalarTypeError as error:
            reason = reason or f"means nothing for any dtypes; for {dtype}: {error}"
        except ScalarError as error:
            raise _wrong(schema, str(error)) from None
        except Exception as error:
            if any(a.default is REQUIRED for a in schema.attrs):
                # The stand-ins of attributes may be what is wrong.
                return
            raise _wrong(schema, f"{type(error).__name__}: {error}") from error
    raise _wrong(schema, reason or "takes none of the dtypes of which scalars can be")


def sample_expression(schema: OpSchema, dtype: DType | None) -> Expression | None:
    """Return the expression that a node of an op may have, with usual attributes.

    Args:
        schema: An op that states an expression.
        dtype: The dtype of its first input, None for any.

    Returns:
        None if it has none for the dtype, or that shows only with a node's attributes.
    """
    if not _has_samples(schema):
        return None
    for tried in _TRIED if dtype is None else (dtype,):
        try:
            found = _tried(schema, tried)
        except Exception:
            # That a node's expression is wrong is said when there is one.
            continue
        if found is not None:
            return found
    return None


def _has_samples(schema: OpSchema) -> bool:
    required = [a for a in schema.attrs if a.default is REQUIRED]
    return all(a.hint in _STAND_INS for a in required)


def _tried(schema: OpSchema, dtype: DType) -> Expression | None:
    """Return the expression for first inputs of a dtype, None where the op takes no such inputs."""
    if not schema.inputs[0].kind.accepts(dtype):
        return None
    given = tuple(_dtype_for(param, dtype) for param in schema.inputs)
    attrs = {a.name: _sample(a) for a in schema.attrs}
    return _written(schema, given, (1,) * len(given), attrs)


def _sample(attr: AttrParam) -> Any:
    return _STAND_INS[attr.hint] if attr.default is REQUIRED else attr.default


def _dtype_for(param: InputParam, wanted: DType) -> DType:
    return next((d for d in (wanted, *_TRIED) if param.kind.accepts(d)), wanted)


def _check_arguments(schema: OpSchema) -> None:
    assert schema.expression is not None
    code = getattr(schema.expression, "__code__", None)
    if code is None:
        raise _wrong(schema, f"is no function: {shown(schema.expression)}")
    count, attrs = code.co_argcount, {a.name for a in schema.attrs}
    keywords = set(code.co_varnames[count : count + code.co_kwonlyargcount])
    if keywords != attrs and not code.co_flags & inspect.CO_VARKEYWORDS:
        raise _wrong(
            schema,
            f"takes the keyword arguments {sorted(keywords)}, and the op's attributes are "
            f"{sorted(attrs)}",
        )
    if count != 1 + len(schema.inputs) and not code.co_flags & inspect.CO_VARARGS:
        raise _wrong(
            schema,
            f"takes {count} arguments by position, expected {1 + len(schema.inputs)}: the scalar "
            f"functions and the op's {len(schema.inputs)} inputs",
        )


def _wrong(schema: OpSchema, what: str) -> PluginError:
    return PluginError(f"op {schema.type!r} at {schema.where}: its expression {what}")
