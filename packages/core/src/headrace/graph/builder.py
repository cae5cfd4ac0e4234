"""Building one node: converting its inputs, running its rule, adding it to the graph."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace import dtypes
from headrace.arguments import items, members
from headrace.dtypes import DType, promote
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    DTypeError,
    HeadraceError,
    located,
    shown,
)
from headrace.graph.attributes import as_text, fits, hint_name
from headrace.graph.convert import (
    as_tensor,
    cast_inside,
    contains_tensor,
    convert_to_tensor,
    dtype_inside,
    holds_nothing,
    is_python_literal,
    natural_dtype,
)
from headrace.graph.creation_site import user_site
from headrace.graph.function import note_waits
from headrace.graph.graph import Graph
from headrace.graph.graph_scopes import checked_name, place_by_functions
from headrace.graph.operation import Operation
from headrace.graph.schema import AttrParam, InputParam, Kind, OpSchema, call_op
from headrace.graph.scopes import current_scope, other_graph_of, use_graph
from headrace.graph.spec import TensorSpec, constant_spec
from headrace.graph.static_values import static_value
from headrace.graph.tensor import Tensor


def build_node(schema: OpSchema, values: dict[str, Any], name: str | None) -> Any:
    """Add a node to the default graph and return its outputs as its rule shaped them.

    It is added to another program's graph where all tensors that it takes are of that one.

    Args:
        schema: The op.
        values: The argument of every parameter, tensors and attributes alike.
        name: The node's name; the op's own if None.

    Returns:
        A tensor, a tuple or list of tensors, or the operation where it has no outputs.

    Raises:
        HeadraceError: whatever the conversion or the rule refuses, with the op and user's line.
    """
    inputs: list[Tensor] = []
    arity: tuple[int, ...] = ()
    names = _Names(name if name is not None else schema.node_name)
    elsewhere: Graph | None = None
    try:
        attrs = {a.name: _attribute(a, values[a.name]) for a in schema.attrs}
        inputs, arity = _convert_inputs(schema, values, names)
        specs, answer = schema.output_specs(_known_specs(schema, inputs, arity), arity, attrs)
    except _ElsewhereError as found:
        elsewhere = found.graph
    except HeadraceError as error:
        if error.located:
            raise
        given = inputs or _tensors_in([values[p.name] for p in schema.inputs])
        raise _located(error, schema, given) from None
    if elsewhere is not None:
        with use_graph(elsewhere):
            return build_node(schema, values, name)
    scope = current_scope()
    op = scope.graph.add_operation(
        schema,
        name=names.of_node,
        inputs=inputs,
        arity=arity,
        attrs=attrs,
        specs=specs,
        control_inputs=scope.control_inputs,
        device=scope.device,
        colocated_with=scope.colocated_with,
        site=user_site(),
        gradient_rule=scope.gradient_rule(schema.type),
    )
    if scope.outer_waits:
        note_waits(op, scope.outer_waits)
    if scope.device_functions:
        place_by_functions(op, scope)
    return shaped_like(answer, op)


class _ElsewhereError(Exception):
    """The inputs of a node are tensors of another program's graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.graph = graph


def _known_specs(
    schema: OpSchema, inputs: Sequence[Tensor], arity: tuple[int, ...]
) -> list[TensorSpec]:
    """Return the specs of inputs, those of shapes with the values that constants lead to."""
    specs = [t.spec for t in inputs]
    for i in schema.flat_places(arity, _is_on_host) if schema.host_inputs else ():
        if specs[i].value is None:
            value = static_value(inputs[i])
            if value is not None:
                specs[i] = constant_spec(value, specs[i].dtype)
    return specs


def _is_on_host(param: InputParam) -> bool:
    return param.on_host


def shaped_like(answer: Any, op: Operation) -> Any:
    """Return an operation's outputs in the form in which its rule returned their specs."""
    if answer is None:
        return op
    if isinstance(answer, TensorSpec):
        return op.outputs[0]
    return list(op.outputs) if isinstance(answer, list) else tuple(op.outputs)


def _attribute(param: AttrParam, value: Any) -> Any:
    found = param.read(value)
    if fits(found, param.hint):
        return found
    # Programs that Python 2 ran, too, have bytes where text is meant.
    text = as_text(found)
    if text is not found and fits(text, param.hint):
        return text
    raise ArgumentTypeError(f"{param.name} must be {hint_name(param.hint)}, got {shown(value)}")


def _full_name(name: str) -> str:
    scope = current_scope()
    name = checked_name(name)
    if name.endswith("/"):
        # An exact name, as name scopes write it; still unique among the operations.
        return scope.graph.exact_name(name[:-1])
    full = f"{scope.name}/{name}" if scope.name else name
    return scope.graph.unique_full_name(full)


class _Names:
    """The name of a node, taken when it is first asked for, and those of constants made for it."""

    def __init__(self, asked: str) -> None:
        self._asked = asked

    @functools.cached_property
    def of_node(self) -> str:
        """The node's name in its graph."""
        return _full_name(self._asked)

    def of_input(self, label: str) -> str:
        """Return an exact name for what a parameter's value is made a tensor of."""
        return current_scope().graph.unique_full_name(f"{self.of_node}/{label}") + "/"


def _convert_inputs(
    schema: OpSchema, values: dict[str, Any], names: _Names
) -> tuple[list[Tensor], tuple[int, ...]]:
    slots: list[tuple[str, Kind, Any]] = []
    labels: list[str] = []
    arity: list[int] = []
    for param in schema.inputs:
        value = values[param.name]
        if param.variadic:
            items = _variadic_items(value, param.name, param.least)
            slots.extend((param.name, param.kind, item) for item in items)
            labels.extend(f"{param.name}_{i}" for i in range(len(items)))
            arity.append(len(items))
        elif value is None and param.optional:
            arity.append(0)
        else:
            slots.append((param.name, param.kind, value))
            labels.append(param.name)
            arity.append(1)
    tensors: list[Tensor | None] = []
    for _, kind, value in slots:
        tensors.append(_tensor_of(kind, value, slots, tensors))
    other = other_graph_of(tensors)
    if other is not None:
        # Before constants are made of the other inputs.
        raise _ElsewhereError(other)
    for kind in dict.fromkeys([kind for _, kind, _ in slots]):
        members = [i for i, slot in enumerate(slots) if slot[1] is kind]
        if kind.unify:
            first = tensors[members[0]]
            if first is not None and all(
                (t := tensors[i]) is not None and t.spec.dtype is first.spec.dtype for i in members
            ):
                _check_kind(kind, slots[members[0]][0], first.spec.dtype)
                continue
            common = _common_dtype(kind, [slots[i] for i in members], tensors, members)
            for i in members:
                tensor = tensors[i]
                name = names.of_input(labels[i]) if tensor is None else ""
                tensors[i] = _with_dtype(slots[i], tensor, common, name)
        else:
            for i in members:
                label, _, value = slots[i]
                if tensors[i] is None:
                    tensors[i] = _constant(kind, value, names.of_input(labels[i]))
                _check_kind(kind, label, _present(tensors[i]).dtype)
    capture = current_scope().graph.capture
    return [capture(_present(t)) for t in tensors], tuple(arity)


def _tensor_of(
    kind: Kind,
    value: Any,
    slots: Sequence[tuple[str, Kind, Any]],
    before: Sequence[Tensor | None],
) -> Tensor | None:
    """Return the tensor that a value is or is built of; None where it is plain data.

    Args:
        kind: What dtypes it may have.
        value: The value.
        slots: All inputs of the node.
        before: The tensors of those before it.
    """
    if kind.accepts(dtypes.resource) and not kind.accepts(dtypes.float32):
        handle = getattr(value, "handle", value)
        return handle if isinstance(handle, Tensor) else None
    if contains_tensor(value):
        return convert_to_tensor(value, _dtype_for_list(kind, value, slots, before))
    if isinstance(value, Tensor) and kind.accepts(dtypes.resource) and not kind.reads:
        return value
    return as_tensor(value)


def _dtype_for_list(
    kind: Kind,
    value: Any,
    slots: Sequence[tuple[str, Kind, Any]],
    before: Sequence[Tensor | None],
) -> DType | None:
    """Return the dtype that a list with tensors in it takes from an input before it.

    None where there is none, or it cannot hold what the tensors hold.
    """
    if _takes_bool_alone(kind):
        return dtypes.bool_ if dtype_inside(value) in _NUMBERS else None
    if not kind.unify:
        return None
    for tensor, (_, other, plain) in zip(before, slots, strict=False):
        if other is kind:
            asked = natural_dtype(plain) if tensor is None else tensor.dtype
            return cast_inside(dtype_inside(value), asked) if kind.accepts(asked) else None
    return None


def _variadic_items(value: Any, label: str, least: int) -> list[Any]:
    listed = isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim > 0)
    if isinstance(value, Tensor | str | bytes) or not listed:
        raise DTypeError(f"{label} is a list of tensors, got {shown(value)}")
    if len(value) < least:
        raise AttributeValueError(f"{label} needs at least one tensor")
    return items(value, label)


def convert_alike(kind: Kind, values: Mapping[str, Any]) -> list[Tensor]:
    """Return values as tensors of one dtype, as inputs of one op become such tensors.

    Args:
        kind: The dtypes that they may have.
        values: The values by what messages call them.

    Raises:
        DTypeError: if they are of other dtypes, or of several that no dtype holds.
    """
    slots = [(label, kind, value) for label, value in values.items()]
    tensors: list[Tensor | None] = []
    for value in values.values():
        tensors.append(_tensor_of(kind, value, slots, tensors))
    common = _common_dtype(kind, slots, tensors, [*range(len(slots))])
    return [_with_dtype(slot, t, common, None) for slot, t in zip(slots, tensors, strict=True)]


def _common_dtype(
    kind: Kind,
    slots: list[tuple[str, Kind, Any]],
    tensors: list[Tensor | None],
    members: list[int],
) -> DType:
    """Return the dtype that all inputs of one kind take; tensors decide before plain data."""
    common: DType | None = None
    first = ""
    for i, (label, _, _) in zip(members, slots, strict=True):
        tensor = tensors[i]
        if tensor is None:
            continue
        _check_kind(kind, label, tensor.dtype)
        merged = tensor.dtype if common is None else promote(common, tensor.dtype)
        if merged is None:
            assert common is not None
            raise DTypeError(
                f"{label} is {tensor.dtype} where {first} is {common}: neither holds every value "
                f"of the other; {_cast_advice(label, tensor.dtype, first, common)}"
            )
        common, first = merged, first or label
    if common is not None:
        return common
    return _dtype_of_data(kind, slots)


def _cast_advice(label: str, dtype: DType, other_label: str, other: DType) -> str:
    """Return which of two inputs to cast: towards floats, where least is lost."""
    order = ("bool", "uint", "int", "float", "complex")
    if "string" in (dtype.kind, other.kind):
        return "strings and numbers do not mix"
    if dtype.is_quantized or other.is_quantized:
        return "levels of ranges do not mix; hr.quantization.dequantize makes floats of them"
    if order.index(dtype.kind) > order.index(other.kind):
        return f"convert {other_label} with hr.cast(..., hr.{dtype})"
    return f"convert {label} with hr.cast(..., hr.{other})"


def _dtype_of_data(kind: Kind, slots: list[tuple[str, Kind, Any]]) -> DType:
    order = ("bool", "uint", "int", "float", "complex", "string", "quantized")

    def rank(dtype: DType) -> tuple[int, int]:
        return order.index(dtype.kind), dtype.itemsize

    common: DType | None = None
    strong: DType | None = None
    # An array that is of the dtype of the others, if it fits that.
    lower: tuple[str, DType] | None = None
    for label, _, value in slots:
        natural = natural_dtype(value)
        literal = is_python_literal(value)
        if literal and holds_nothing(value):
            if strong or common:
                # It takes the dtype of what is before it.
                continue
            natural = _dtype_of_nothing(kind)
        if not literal and _takes_bool_alone(kind) and natural.is_numeric:
            return dtypes.bool_
        if not kind.accepts(natural) and not literal and (natural.is_integer or kind.whole):
            lower = lower or (label, natural)
            continue
        if natural.is_bool and not kind.accepts(natural) and (common or strong):
            # Plain booleans behind numbers are 0 and 1 of the dtype of these.
            continue
        if literal and natural.is_integer and not kind.accepts(natural):
            natural = dtypes.float32 if kind.accepts(dtypes.float32) else natural
        _check_kind(kind, label, natural)
        if not literal:
            # Where no dtype holds both, an array takes that of one before it, if it fits.
            strong = natural if strong is None else promote(strong, natural) or strong
        elif common is None or rank(natural) > rank(common):
            common = natural
    chosen = strong or common
    if strong and common and order.index(common.kind) > order.index(strong.kind):
        chosen = common
    if chosen is None and kind.whole is not None:
        return kind.whole
    if chosen is None:
        assert lower is not None
        _check_kind(kind, *lower)
    assert chosen is not None
    return chosen


def _dtype_of_nothing(kind: Kind) -> DType:
    """Return the dtype of an empty list: a shape or indices where those alone are taken."""
    usual = (dtypes.float32, dtypes.int32, dtypes.bool_, dtypes.string)
    return next(filter(kind.accepts, usual), dtypes.float32)


def _with_dtype(
    slot: tuple[str, Kind, Any], tensor: Tensor | None, dtype: DType, name: str | None
) -> Tensor:
    label, _, value = slot
    if tensor is None:
        try:
            return convert_to_tensor(value, dtype, name)
        except DTypeError as error:
            raise DTypeError(f"{label}: {error}") from None
    if tensor.dtype != dtype:
        cast = call_op("Cast", tensor, dtype)
        assert isinstance(cast, Tensor)
        return cast
    return convert_to_tensor(tensor)


def _constant(kind: Kind, value: Any, name: str) -> Tensor:
    if not holds_nothing(value):
        lowered = kind.whole is not None and not kind.accepts(natural_dtype(value))
        return convert_to_tensor(value, kind.whole if lowered else None, name)
    return convert_to_tensor(value, _dtype_of_nothing(kind), name)


_NUMBERS = frozenset(d for d in dtypes.ALL if d.is_numeric)


@functools.cache
def _takes_bool_alone(kind: Kind) -> bool:
    return [d for d in dtypes.ALL if kind.accepts(d)] == [dtypes.bool_]


def _check_kind(kind: Kind, label: str, dtype: DType) -> None:
    if not kind.accepts(dtype):
        mend = "; convert it with hr.cast" if _casts_to(kind, dtype) else ""
        raise DTypeError(f"{label} must be {kind.name}, got {dtype}{mend}")


def _casts_to(kind: Kind, dtype: DType) -> bool:
    """Whether a cast makes a tensor of ``dtype`` one that the kind accepts."""
    numbers = [d for d in dtypes.ALL if d.is_numeric or d.is_bool]
    return dtype in numbers and any(map(kind.accepts, numbers))


def _present(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


def _tensors_in(values: Sequence[Any], known: set[int] | None = None) -> list[Tensor]:
    found: list[Tensor] = []
    # Lists may hold themselves, and more than once.
    known = set() if known is None else known
    if len(known) >= _MOST_LISTS or id(values) in known:
        return found
    known.add(id(values))
    try:
        held = members(values)
    except HeadraceError:
        # Of one without an end the error tells that is raised now.
        return found
    for value in held:
        if isinstance(value, list | tuple):
            found += _tensors_in(value, known)
        found += [value] if isinstance(value, Tensor) else []
    return found


# Lists in which errors look for the tensors that they name.
_MOST_LISTS = 200


def _located(error: HeadraceError, schema: OpSchema, inputs: list[Tensor]) -> HeadraceError:
    label = schema.public or schema.type
    lines = [f"{label}: {error}"]
    if inputs:
        lines.append("  inputs: " + ", ".join(f"{t.name}: {t.spec}" for t in inputs[:6]))
    lines.append(f"  at {user_site()}")
    return located(type(error), lines)
