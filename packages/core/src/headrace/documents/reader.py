"""Building a graph of the records of a document, trusting none of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace.device_name import DeviceName
from headrace.dtypes import DType
from headrace.errors import DocumentError, GraphError, HeadraceError, shorten
from headrace.graph.attributes import brief, decode, fits, hint_name, is_integer, read_shape
from headrace.graph.collections import usual_collections
from headrace.graph.creation_site import Site, user_site
from headrace.graph.function import MAX_NESTED, Function, functions_of
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.schema import OPS, REQUIRED, AttrParam, Kind, OpSchema
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.save_slice_info import SaveSliceInfo
from headrace.ops.variable import Variable

_OPERATION_KEYS = {
    *("name", "type", "inputs", "arity", "attrs", "control", "device", "colocated"),
    *("gradient", "origin", "copy_of", "shapes", "site"),
}
_FUNCTION_KEYS = {"name", "operations", "parameters", "results"}
# An operation of a few letters has thousands of outputs; programs have few such.
_FEW_OUTPUTS = 64
_MOST_OUTPUTS = 1 << 17
_VARIABLE_KEYS = {"handle", "initial_value", "initializer", "snapshot", "trainable"}
_OPTIONAL_KEYS = {"collections", "part_of"}
_TENSOR = re.compile(r"(.*):(0|[1-9][0-9]{0,8})", re.DOTALL)


class OutputLimit:
    """Bounds the outputs of all operations that are read from one file."""

    def __init__(self) -> None:
        self._many = 0

    def add(self, outputs: int) -> None:
        """Count the outputs of an operation.

        Raises:
            DocumentError: if there are too many of operations that have many.
        """
        self._many += outputs if outputs > _FEW_OUTPUTS else 0
        if self._many > _MOST_OUTPUTS:
            raise DocumentError(
                f"operations of more than {_FEW_OUTPUTS} outputs have more than {_MOST_OUTPUTS} in "
                "all, which is refused in a file; build such a graph by a program"
            )


class GraphReader:
    """Builds ``graph`` from a document's parts, in the order of the methods.

    Attributes:
        graph: The graph built so far.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        self._functions: dict[str, Function] = {}
        self._depths: dict[str, int] = {}
        self._known: dict[str, Operation] = {}
        self._all_names: set[str] = set()
        self._outputs = OutputLimit()
        self._site = user_site()

    def read_seed(self, data: Any) -> None:
        """Set the graph's seed."""
        if data is not None and not is_integer(data):
            raise DocumentError(f"'seed' must be an integer or null, got {brief(data)}")
        self.graph.seed = data

    def read_functions(self, data: Any) -> None:
        """Read the functions that operations hold, each after those that it holds."""
        for i, record in enumerate(_listed(data, "'functions'")):
            if not isinstance(record, dict) or set(record) - {"effects"} != _FUNCTION_KEYS:
                raise DocumentError(
                    f"function {i} must be an object with {_names(_FUNCTION_KEYS)}, got "
                    f"{brief(record)}"
                )
            name = record["name"]
            if not isinstance(name, str) or not name or name in self._functions:
                raise DocumentError(f"function {i}: {brief(name)} is no name, or given twice")
            with _place(f"function {brief(name)}"):
                self._functions[name] = self._read_function(record)

    def _read_function(self, record: dict[str, Any]) -> Function:
        function = Function(record["name"], self.graph)
        reader = GraphReader(function)
        reader._functions = self._functions
        reader._outputs = self._outputs
        reader.read_operations(record["operations"])
        held = [f.name for op in function.operations for f in functions_of(op)]
        depth = 1 + max((self._depths[name] for name in held), default=0)
        if depth > MAX_NESTED:
            raise DocumentError(f"functions are nested more than {MAX_NESTED} deep")
        self._depths[function.name] = depth
        parameters = [reader._operation(n) for n in _listed(record["parameters"], "'parameters'")]
        indices = [op.attrs["index"] for op in parameters if op.type == "Parameter"]
        all_of_them = [op for op in function.operations if op.type == "Parameter"]
        if indices != list(range(len(parameters))) or len(all_of_them) != len(parameters):
            raise DocumentError("'parameters' must be all Parameter operations, by index")
        results = [reader._tensor(t) for t in _listed(record["results"], "'results'")]
        function.complete([op.outputs[0] for op in parameters], results)
        function.effects = reader._operations(record, "effects")
        return function

    def read_operations(self, data: Any) -> None:
        """Add all operations, each after those that it depends on."""
        records = _listed(data, "'operations'")
        for i, record in enumerate(records):
            if not isinstance(record, dict) or not isinstance(record.get("name"), str):
                raise DocumentError(f"operation {i} must be an object with a name")
            name = record["name"]
            if not name or name in self._all_names:
                fault = "is empty" if not name else "is given to two operations"
                raise DocumentError(f"operation {i}: the name {brief(name)} {fault}")
            self._all_names.add(name)
        for i, record in enumerate(records):
            with _place(f"operation {i} {brief(record['name'])}"):
                op = self._read_operation(record)
                self._known[op.name] = op
        for name in self._known:
            self.graph.reserve_name(name)

    def read_variables(self, data: Any) -> None:
        """List the graph's variables."""
        handles: set[Tensor] = set()
        for i, record in enumerate(_listed(data, "'variables'")):
            with _place(f"variable {i}"):
                if not isinstance(record, dict) or set(record) - _OPTIONAL_KEYS != _VARIABLE_KEYS:
                    raise DocumentError(f"expected an object with {_names(_VARIABLE_KEYS)}")
                handle = self._tensor(record["handle"])
                if handle in handles:
                    raise DocumentError(f"{handle.name!r} is the handle of two variables")
                handles.add(handle)
                start, snapshot = (
                    self._content(record[key], handle, key) for key in ("initial_value", "snapshot")
                )
                if not isinstance(record["trainable"], bool):
                    raise DocumentError(
                        f"'trainable' must be true or false, got {brief(record['trainable'])}"
                    )
                initializer = self._operation(record["initializer"])
                trainable = record["trainable"]
                names = _listed(record.get("collections", []), "'collections'")
                if not all(isinstance(name, str) for name in names):
                    raise DocumentError(f"'collections' must be strings, got {brief(names)}")
                chosen = names if "collections" in record else usual_collections(trainable)
                variable = Variable.from_parts(
                    handle, start, initializer, snapshot, trainable, chosen
                )
                if "part_of" in record:
                    variable.save_slice_info = _part_of(record["part_of"], variable)

    def _content(self, data: Any, handle: Tensor, key: str) -> Tensor:
        """Return a tensor that has the dtype of what a variable holds."""
        tensor = self._tensor(data)
        if handle.spec.content is None:
            raise DocumentError(f"{handle.name!r} ({handle.op.type}) is no handle of a variable")
        if tensor.dtype != handle.spec.content.dtype:
            raise DocumentError(
                f"{key!r} is {tensor.dtype}, the variable holds {handle.spec.content.dtype}"
            )
        return tensor

    # -- operations

    def _read_operation(self, record: dict[str, Any]) -> Operation:
        odd = set(record) - _OPERATION_KEYS
        if odd:
            raise DocumentError(f"unknown keys {_names(odd)}; known are {_names(_OPERATION_KEYS)}")
        schema = _schema(record.get("type"))
        with _place(schema.type):
            inputs = [self._tensor(item) for item in _listed(record.get("inputs", []), "'inputs'")]
            arity = _read_arity(record.get("arity", []), schema, len(inputs))
            attrs = _read_attrs(record.get("attrs", {}), schema, self._functions)
            specs = checked_specs(schema, inputs, arity, attrs)
            self._outputs.add(len(specs))
            return self.graph.add_operation(
                schema,
                name=record["name"],
                inputs=inputs,
                arity=arity,
                attrs=attrs,
                specs=_sharpened(specs, record.get("shapes", [])),
                control_inputs=self._operations(record, "control"),
                device=_read_device(record.get("device", "")),
                colocated_with=self._operations(record, "colocated"),
                site=self._read_site(record.get("site")),
                origin=_text(record, "origin"),
                copy_of=_text(record, "copy_of"),
                gradient_rule=_text(record, "gradient"),
            )

    def _operations(self, record: dict[str, Any], key: str) -> tuple[Operation, ...]:
        return tuple(self._operation(item) for item in _listed(record.get(key, []), f"{key!r}"))

    def _operation(self, data: Any) -> Operation:
        if not isinstance(data, str):
            raise DocumentError(f"expected the name of an operation, got {brief(data)}")
        found = self._known.get(data)
        if found is None:
            raise DocumentError(
                f"it depends on {brief(data)}, which does not come before it: a cycle"
                if data in self._all_names
                else f"it depends on {brief(data)}, which is not in the document"
            )
        return found

    def _tensor(self, data: Any) -> Tensor:
        match = _TENSOR.fullmatch(data) if isinstance(data, str) else None
        if match is None:
            raise DocumentError(f"expected a tensor as 'operation:index', got {brief(data)}")
        op = self._operation(match[1])
        index = int(match[2])
        if index >= len(op.outputs):
            raise DocumentError(
                f"{brief(data)} does not exist: {op.type} {brief(op.name)} has "
                f"{len(op.outputs)} outputs"
            )
        return op.outputs[index]

    def _read_site(self, data: Any) -> Site:
        if data is None:
            return self._site
        if (
            not isinstance(data, list)
            or [type(item) for item in data] != [str, int, str]
            or not is_integer(data[1])
        ):
            raise DocumentError(f"'site' must be [file, line, text], got {brief(data)}")
        return Site(*data)


def checked_specs(
    schema: OpSchema, inputs: list[Tensor], arity: tuple[int, ...], attrs: dict[str, Any]
) -> tuple[TensorSpec, ...]:
    """Return what is known of the outputs of an operation that a stranger describes.

    Args:
        schema: Its op.
        inputs: What it takes, flat.
        arity: How many of them each parameter takes.
        attrs: Its attributes, as the rule takes them.

    Raises:
        DocumentError: if building it would have refused or converted its inputs.
        HeadraceError: if the rule refuses them.
    """
    _check_kinds(schema, inputs, arity)
    return _infer(schema, [t.spec for t in inputs], arity, attrs)


@contextmanager
def _place(what: str) -> Iterator[None]:
    """Say where in the document an error of the block was found."""
    try:
        yield
    except HeadraceError as error:
        raise DocumentError(shorten([f"{what}: {error}"])) from error.__cause__


def _listed(data: Any, what: str) -> list[Any]:
    if not isinstance(data, list):
        raise DocumentError(f"{what} must be a list, got {brief(data)}")
    return data


def _part_of(data: Any, variable: Variable) -> SaveSliceInfo:
    """Return what a variable is a part of."""
    if not isinstance(data, dict) or set(data) != {"name", "offset", "shape"}:
        raise DocumentError("'part_of' must be an object with 'name', 'offset' and 'shape'")
    name, offset, whole = data["name"], data["offset"], data["shape"]
    dims = variable.shape.plain.dims or ()
    lists = (offset, whole)
    if not isinstance(name, str) or not all(
        isinstance(part, list) and len(part) == len(dims) and all(is_integer(n) for n in part)
        for part in lists
    ):
        raise DocumentError(
            "'part_of' must have a name, and a number for each axis of the variable"
        )
    if not all(
        n is not None and 0 <= begin <= size - n
        for begin, size, n in zip(offset, whole, dims, strict=True)
    ):
        raise DocumentError(
            f"a variable of shape {variable.shape} at {brief(offset)} is no part of {brief(whole)}"
        )
    return SaveSliceInfo(name, whole, offset, list(variable.shape.known))


def _names(keys: set[str]) -> str:
    return ", ".join(repr(key[:40]) for key in sorted(keys)[:16])


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key, "")
    if not isinstance(value, str):
        raise DocumentError(f"{key!r} must be a string, got {brief(value)}")
    return value


def _schema(type_name: Any) -> OpSchema:
    if not isinstance(type_name, str):
        raise DocumentError(f"'type' must be the name of an op, got {brief(type_name)}")
    try:
        return OPS[type_name]
    except GraphError as error:
        raise DocumentError(str(error)) from None


def _read_arity(data: Any, schema: OpSchema, inputs: int) -> tuple[int, ...]:
    counts = _listed(data, "'arity'") or [1] * len(schema.inputs)
    least = [0 if p.optional else p.least for p in schema.inputs]
    most = [inputs if p.variadic else 1 for p in schema.inputs]
    if (
        len(counts) != len(schema.inputs)
        or not all(is_integer(n) for n in counts)
        or not all(low <= n <= high for low, n, high in zip(least, counts, most, strict=True))
        or sum(counts) != inputs
    ):
        takes = ", ".join(
            p.name + ("..." if p.variadic else "?" if p.optional else "") for p in schema.inputs
        )
        raise DocumentError(
            f"it takes ({takes}), the document gives {inputs} inputs"
            + (f", arranged as {brief(data)}" if data else "")
        )
    return tuple(counts)


def _check_kinds(schema: OpSchema, inputs: list[Tensor], arity: tuple[int, ...]) -> None:
    """Refuse inputs of dtypes that building the operation would have refused or converted."""
    common: dict[Kind, DType] = {}
    position = 0
    for param, count in zip(schema.inputs, arity, strict=True):
        for tensor in inputs[position : position + count]:
            kind = param.kind
            if not kind.accepts(tensor.dtype):
                raise DocumentError(f"{param.name} must be {kind.name}, got {tensor.dtype}")
            if kind.unify and common.setdefault(kind, tensor.dtype) != tensor.dtype:
                raise DocumentError(
                    f"{param.name} is {tensor.dtype}, the inputs before it are {common[kind]}"
                )
        position += count


def _read_attrs(data: Any, schema: OpSchema, functions: Mapping[str, Function]) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DocumentError(f"'attrs' must be an object, got {brief(data)}")
    known = {a.name for a in schema.attrs}
    if not set(data) <= known:
        raise DocumentError(
            f"it has no attributes {_names(set(data) - known)}; it has {_names(known) or 'none'}"
        )
    missing = {a.name for a in schema.attrs if a.default is REQUIRED} - set(data)
    if missing:
        raise DocumentError(f"attributes {_names(missing)} are missing")
    return {a.name: _read_attr(a, data, functions) for a in schema.attrs}


def _read_attr(param: AttrParam, data: dict[str, Any], functions: Mapping[str, Function]) -> Any:
    if param.name not in data:
        # Written before the op had this attribute: then its default is what was meant.
        return param.read(param.default)
    with _place(f"attribute {param.name!r}"):
        value = decode(data[param.name], functions=functions)
        if not fits(value, param.hint):
            raise DocumentError(f"expected {hint_name(param.hint)}, got {brief(data[param.name])}")
        return value


def _infer(
    schema: OpSchema, specs: list[TensorSpec], arity: tuple[int, ...], attrs: dict[str, Any]
) -> tuple[TensorSpec, ...]:
    try:
        with np.errstate(all="ignore"):
            found, _ = schema.output_specs(specs, arity, attrs)
    except HeadraceError:
        raise
    except Exception as error:
        # A rule may rely on what the checks of building ensure; here nothing is ensured.
        raise DocumentError(
            f"its rule refuses what the document gives: {type(error).__name__}: {error}"
        ) from error
    return found


def _sharpened(specs: tuple[TensorSpec, ...], data: Any) -> list[TensorSpec]:
    """Return specs with the shapes that the document knows better than the rule."""
    shapes = _listed(data, "'shapes'") or [None] * len(specs)
    if len(shapes) != len(specs):
        raise DocumentError(f"'shapes' has {len(shapes)} entries for {len(specs)} outputs")
    found = []
    for spec, entry in zip(specs, shapes, strict=True):
        if entry is None:
            found.append(spec)
            continue
        if not isinstance(entry, dict) or set(entry) != {"shape"}:
            raise DocumentError(f"expected null or a shape, got {brief(entry)}")
        found.append(spec.sharpened(read_shape(entry["shape"])))
    return found


def _read_device(data: Any) -> DeviceName:
    if not isinstance(data, str) or len(data) > 200:
        raise DocumentError(f"'device' must be a device name, got {brief(data)}")
    return DeviceName.parse(data)
