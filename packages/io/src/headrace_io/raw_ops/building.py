"""Building a single op of TensorFlow's of what is given by name."""

from __future__ import annotations

import inspect
from collections import namedtuple
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, final

import headrace as hr
from headrace import DType, Operation, Tensor
from headrace.errors import ArgumentTypeError, DTypeError, listing, shown
from headrace.extend.plugins import host
from headrace_io import protos
from headrace_io.graph_protos import attr_value_of
from headrace_io.raw_ops.attributes import attribute
from headrace_io.raw_ops.table import Argument, Attribute, Signature, known, signature
from headrace_io.translation.frames import ENTER, EXIT
from headrace_io.translation.reader import build_node
from headrace_io.translation.values import ArrayHandle, QueueHandle, Reference

_HANDLES = (ArrayHandle, QueueHandle, Reference)


@cache
def names() -> tuple[str, ...]:
    """Return the types of the ops that can be built, in order."""
    rows = host().translations
    return tuple(op for op in sorted(known() - ENTER - EXIT) if rows.get(op) is not None)


@cache
def raw_op(name: str) -> RawOp:
    """Return the function that builds an op.

    Raises:
        AttributeError: if TensorFlow 1.15 has no such op, or Headrace does not build it.
    """
    if name in names():
        return RawOp(name)
    if name in known():
        raise AttributeError(f"hr.raw_ops: Headrace does not build TensorFlow's op {name}")
    raise AttributeError(f"hr.raw_ops: TensorFlow 1.15 has no op {shown(name)}")


@final
class RawOp:
    """Builds an op of TensorFlow's; inputs and attributes are given by name."""

    def __init__(self, op: str) -> None:
        """Take the type of the op."""
        found = signature(op)
        self.__name__ = self.__qualname__ = op
        self.__doc__ = _description(found)
        self.__signature__ = _python_signature(found)
        self._signature = found

    def __repr__(self) -> str:
        return f"<raw op {self.__name__}{self.__signature__}>"

    def __call__(self, *, name: str | None = None, **given: Any) -> Any:
        """Build the op.

        Args:
            name: The name of its operation, made unique in the scope in force.
            **given: Its inputs and attributes.

        Returns:
            Its output, a tuple of named outputs where it has several, or its operation where it has
            none. An output of several tensors is a list.

        Raises:
            ArgumentTypeError: if something is missing or of another kind, or is not taken.
            DTypeError: if an input does not have the dtype that the op or other inputs ask for.
            UnimplementedError: if the op takes functions.
        """
        found = self._signature
        _check_names(found, given)
        graph = hr.get_default_graph()
        full = graph.unique_name(name or found.op)
        message = protos.NodeDef(name=full, op=found.op)
        with hr.name_scope(f"{full}/"):
            inputs = _Inputs(found, given)
        for attr in found.parameters:
            if isinstance(attr, Attribute):
                message.attr[attr.own].CopyFrom(attribute(found.op, attr, given.get(attr.name)))
        for own, value in inputs.attrs.items():
            message.attr[own].CopyFrom(attr_value_of(value))
        return _outputs(found, message, build_node(message, inputs.flat))


@final
class _Inputs:
    """The inputs of an op as tensors.

    Attributes:
        flat: All of them, in the order of the op.
        attrs: The dtypes and numbers that they tell.
    """

    def __init__(self, found: Signature, given: Mapping[str, Any]) -> None:
        self.flat: list[Any] = []
        self.attrs: dict[str, Any] = {}
        self._signature = found
        for argument in found.inputs:
            self._add(argument, given[argument.name])

    def _add(self, argument: Argument, value: Any) -> None:
        if not argument.listed:
            self.flat.append(self._converted(argument, value, argument.dtype))
            return
        if not isinstance(value, list | tuple):
            raise ArgumentTypeError(
                f"raw_ops.{self._signature.op}: the argument {argument.name} must be a list of "
                f"tensors, got {shown(value)}"
            )
        if argument.typed:
            tensors = [self._tensor(argument, item, None) for item in value]
            self.attrs[argument.dtype] = tuple(t.dtype for t in tensors)
        else:
            known = self.attrs.setdefault(argument.number, len(value))
            if known != len(value):
                raise ArgumentTypeError(
                    f"raw_ops.{self._signature.op}: the argument {argument.name} must have {known} "
                    f"tensors, as others have, got {len(value)}"
                )
            tensors = [self._converted(argument, item, argument.dtype) for item in value]
        self.flat.extend(tensors)

    def _converted(self, argument: Argument, value: Any, dtype: str) -> Any:
        if isinstance(value, _HANDLES):
            return value
        if isinstance(value, hr.Variable) and (argument.reference or dtype == "resource"):
            return Reference(value.handle)
        if argument.reference or dtype == "resource":
            return value
        if dtype in _FIXED:
            return self._tensor(argument, value, hr.as_dtype(dtype))
        tensor = self._tensor(argument, value, self.attrs.get(dtype), dtype)
        self.attrs.setdefault(dtype, tensor.dtype)
        return tensor

    def _tensor(
        self, argument: Argument, value: Any, dtype: DType | None, attr: str = ""
    ) -> Tensor:
        if isinstance(value, Tensor) and value.dtype.kind == "resource":
            value = Reference(value).read()
        default = self._signature.defaults.get(attr)
        try:
            return hr.convert_to_tensor(
                value,
                dtype,
                name=argument.name,
                preferred_dtype=None if default is None else hr.as_dtype(default),
            )
        except (TypeError, ValueError) as error:
            raise DTypeError(
                f"raw_ops.{self._signature.op}: the argument {argument.name}: {error}"
            ) from error


# What are dtypes in the table, and not attributes that hold one.
_FIXED = frozenset(
    (
        *("bool", "complex64", "float32", "float64", "int8", "int32", "int64", "string", "uint8"),
        "variant",
    )
)


def _check_names(found: Signature, given: Mapping[str, Any]) -> None:
    names = [one.name for one in found.parameters]
    odd = [name for name in given if name not in names]
    missing = [
        one.name
        for one in found.parameters
        if one.name not in given and (isinstance(one, Argument) or one.required)
    ]
    if odd or missing:
        what = f"does not take {listing(odd)}" if odd else f"needs {listing(missing)}"
        raise ArgumentTypeError(
            f"raw_ops.{found.op} {what}; it takes, by name, {listing(names) or 'nothing'}"
        )


def _outputs(found: Signature, message: Any, made: Sequence[Any] | Operation) -> Any:
    if isinstance(made, Operation):
        return made
    results: list[Any] = []
    left = [_shown(value) for value in made]
    for output in found.outputs:
        if output.listed:
            count = _count(output, message)
            results.append(left[:count])
            left = left[count:]
        else:
            results.append(left.pop(0))
    if len(results) == 1:
        return results[0]
    fields = [output.name for output in found.outputs]
    return namedtuple(found.op, fields)(*results)  # noqa: PYI024 - no fields to annotate


def _count(output: Argument, message: Any) -> int:
    if output.number:
        return int(message.attr[output.number].i)
    return len(message.attr[output.dtype].list.type)


def _shown(value: Any) -> Any:
    """Return an output as programs have it: of a variable the handle, or what was written."""
    if isinstance(value, Reference):
        return value.handle if value.written is None else value.written
    return value


def _python_signature(found: Signature) -> inspect.Signature:
    parameters = []
    for one in found.parameters:
        required = isinstance(one, Argument) or one.required
        default = inspect.Parameter.empty if required else one.default  # type: ignore[union-attr]
        parameters.append(
            inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=default)
        )
    last = inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None)
    return inspect.Signature([*parameters, last])


def _description(found: Signature) -> str:
    made = ", ".join(output.name for output in found.outputs) or "nothing"
    return f"Build TensorFlow's op {found.op}, which yields {made}."
