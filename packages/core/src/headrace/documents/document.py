"""Graphs as JSON documents: byte for byte the same for the same program, safe from strangers.

A document holds one operation per line, in the order of the graph. What an op's rule works out
again on loading (dtypes and shapes of outputs) is not in it, so that a document cannot claim what
its ops refuse. Loading makes nodes of declared ops from plain data and executes nothing.

A record of an operation leaves out what is empty. Its keys: ``name``, ``type``, ``inputs`` (as
"operation:index"), ``arity`` (where parameters take more or less than one input), ``attrs``,
``control``, ``device``, ``colocated``, ``gradient``, ``origin``, ``copy_of`` (of a constant in a
function), ``shapes`` (where more is known than the rule says) and ``site`` (on request).

Functions that operations hold stand in a list of their own, each after those that it holds, with
the keys ``name``, ``operations``, ``parameters``, ``results`` and, where there are any,
``effects``; attributes refer to their names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NoReturn

from headrace.documents.reader import GraphReader
from headrace.errors import DocumentError, HeadraceError, shown
from headrace.graph.attributes import encode
from headrace.graph.collections import usual_collections
from headrace.graph.function import MAX_NESTED, Function, functions_in, nested_deeper
from headrace.graph.graph import Graph
from headrace.graph.operation import Operation
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.variable import Variable
from headrace.version import __version__

FORMAT = "headrace.graph"
VERSION = 1
_KEYS = ("format", "operations", "producer", "seed", "variables", "version")
# Left out where there are none.
_FUNCTIONS = "functions"
_EFFECTS = "effects"


def dump(graph: Graph, *, sites: bool = False) -> str:
    """Return a graph as a document.

    Args:
        graph: The graph.
        sites: Keep the file, line and text that made each operation.

    Raises:
        DocumentError: if the graph holds something that documents do not.
    """
    # In this order: a variable that another thread adds now has its operations in the graph.
    variables = graph.variables
    writer = _Writer(sites)
    operations = [writer.operation(op) for op in graph.operations]
    held = functions_in(graph)
    deep = nested_deeper(held)
    if deep is not None:
        raise DocumentError(
            f"{deep.name!r} nests functions more than {MAX_NESTED} deep, and would not be read "
            "again; repeat with hr.while_loop instead"
        )
    functions = [_function(function, sites) for function in held]
    listed = [
        {
            "handle": v.handle.name,
            "initial_value": v.initial_value.name,
            "initializer": v.initializer.name,
            "snapshot": v.snapshot.name,
            "trainable": v.trainable,
            **_collections(v),
            **_part(v),
        }
        for v in variables
    ]
    named = f'"{_FUNCTIONS}":{_lines(functions)},\n' if functions else ""
    return (
        f'{{"format":{_json(FORMAT)},\n{named}"operations":{_lines(operations)},\n'
        f'"producer":{_json(_producer())},\n"seed":{_json(encode(graph.seed))},\n'
        f'"variables":{_lines(listed)},\n"version":{VERSION}}}\n'
    )


def load(text: str | bytes) -> Graph:
    """Read a graph from a document.

    Args:
        text: What ``dump`` returned, or its UTF-8 bytes.

    Raises:
        DocumentError: if it is damaged, of an unknown version, or no graph that could be built.
    """
    data = _parse(text)
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise DocumentError(f"not a graph document: it does not say 'format': {FORMAT!r}")
    version = data.get("version")
    if type(version) is not int or version != VERSION:
        raise DocumentError(
            f"the graph document is of version {shown(version, 40)}, this Headrace reads version "
            f"{VERSION}; write it again, or install a newer headrace-core"
        )
    found = set(data) - {_FUNCTIONS}
    if found != set(_KEYS):
        odd = ", ".join(repr(key[:40]) for key in sorted(found ^ set(_KEYS))[:8])
        raise DocumentError(f"a graph document has the keys {', '.join(_KEYS)}; check {odd}")
    reader = GraphReader()
    reader.read_seed(data["seed"])
    reader.read_functions(data.get(_FUNCTIONS, []))
    reader.read_operations(data["operations"])
    reader.read_variables(data["variables"])
    return reader.graph


def _collections(variable: Variable) -> dict[str, list[str]]:
    """Return the record of the collections of a variable, empty where they are the usual ones."""
    graph = variable.graph
    names = [
        name
        for name in graph.get_all_collection_keys()
        if any(item is variable for item in graph.get_collection(name))
    ]
    usual = usual_collections(variable.trainable)
    return {} if sorted(names) == sorted(usual) else {"collections": sorted(names)}


def _part(variable: Variable) -> dict[str, Any]:
    """Return the record of what a variable is a part of, empty where it is a whole."""
    info = variable.save_slice_info
    if info is None:
        return {}
    return {
        "part_of": {"name": info.full_name, "offset": info.var_offset, "shape": info.full_shape}
    }


def _function(function: Function, sites: bool) -> dict[str, Any]:
    writer = _Writer(sites)
    record = {
        "name": function.name,
        "operations": [writer.operation(op) for op in function.operations],
        "parameters": [t.op.name for t in function.parameters],
        "results": [t.name for t in function.results],
    }
    effects = [op.name for op in function.effects]
    return {**record, _EFFECTS: effects} if effects else record


def _producer() -> str:
    return f"headrace-core {__version__}"


def _json(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _lines(records: Iterable[Any]) -> str:
    text = ",\n".join(map(_json, records))
    return f"[\n{text}\n]" if text else "[]"


def _parse(text: str | bytes) -> Any:
    if not isinstance(text, str | bytes | bytearray):
        raise DocumentError(f"a graph document is str or bytes, got {type(text).__name__}")
    try:
        decoded = text if isinstance(text, str) else text.decode("utf-8")
        return json.loads(decoded, object_pairs_hook=_object, parse_constant=_no_constant)
    except DocumentError:
        raise
    except UnicodeDecodeError as error:
        raise DocumentError(f"the graph document is not UTF-8 text: {error.reason}") from None
    except RecursionError:
        raise DocumentError("the graph document is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"the graph document is no JSON: {error}") from None
    except ValueError:
        # Python refuses to read integers of thousands of digits.
        raise DocumentError("the graph document holds an integer of too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise DocumentError(f"the graph document gives the key {twice[:40]!r} twice in one object")
    return found


def _no_constant(name: str) -> NoReturn:
    raise DocumentError(f"the graph document holds {name}, which is no JSON")


class _Writer:
    """Makes records of operations, knowing what a reader will know of each tensor."""

    def __init__(self, sites: bool) -> None:
        self.sites = sites
        self._specs: dict[Tensor, TensorSpec] = {}

    def operation(self, op: Operation) -> dict[str, Any]:
        """Return the record of an operation."""
        try:
            record = {
                "name": op.name,
                "type": op.type,
                "inputs": [t.name for t in op.inputs],
                "arity": [] if all(n == 1 for n in op.arity) else list(op.arity),
                "attrs": {name: encode(value) for name, value in op.attrs.items()},
                "control": [c.name for c in op.control_inputs],
                "device": str(op.device_name),
                "colocated": [c.name for c in op.colocated_with],
                "gradient": op.gradient_rule,
                "origin": op.origin,
                "copy_of": op.copy_of,
                "shapes": self._shapes(op),
            }
        except HeadraceError as error:
            raise DocumentError(f"{op.type} {op.name!r} has no document form: {error}") from None
        if self.sites:
            record["site"] = [op.site.filename, op.site.line, op.site.source]
        return {key: value for key, value in record.items() if value not in ("", [], {})}

    def _shapes(self, op: Operation) -> list[Any]:
        """Return the shapes of outputs of which more is known than their rule will find."""
        try:
            specs = [self._specs[t] for t in op.inputs]
        except KeyError as error:
            raise DocumentError(f"its input {error.args[0].name!r} comes after it") from None
        inferred, _ = op.schema.output_specs(specs, op.arity, op.attrs)
        if [s.dtype for s in inferred] != [t.dtype for t in op.outputs]:
            raise DocumentError("its outputs are not those that its op's rule gives")
        shapes: list[Any] = []
        for spec, tensor in zip(inferred, op.outputs, strict=True):
            known = spec.sharpened(tensor.spec.shape)
            shapes.append(encode(tensor.spec.shape) if known.shape != spec.shape else None)
            self._specs[tensor] = known
        return shapes if any(shapes) else []
