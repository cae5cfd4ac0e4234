"""What the public functions build with: found in their code, without running it."""

from __future__ import annotations

import ast
import dis
import functools
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType
from typing import Any

import headrace
from headrace.graph.convert import constant_of, convert_to_tensor
from headrace.graph.schema import OPS, OpSchema
from headrace.graph.sparse_tensor import SparseTensor
from headrace.ops.variable import Variable

# What is public beside the functions of ``headrace`` itself.
NAMESPACES = tuple(
    name
    for name in headrace.__all__
    if inspect.ismodule(getattr(headrace, name)) and name != "errors"
)

# What the code of composites does not tell: results that are counts, indices, names or constants,
# and (None) values that are handed on.
_STATED: dict[str, str | None] = {
    "argsort": "indices are piecewise constant",
    "assert_variables_initialized": "names have no gradient",
    "collapse_repeated": "it yields labels and their numbers",
    "confusion_matrix": "a count is piecewise constant",
    "count_nonzero": "a count is piecewise constant",
    "ctc_unique_labels": "it yields labels and indices",
    "eye": "its values are constants",
    "index_table_from_file": "it makes a table",
    "index_table_from_tensor": "it makes a table",
    "index_to_string_table_from_file": "it makes a table",
    "index_to_string_table_from_tensor": "it makes a table",
    "matrix_rank": "a rank is piecewise constant",
    "non_max_suppression_padded": "which boxes are picked is piecewise constant",
    "ones": "its values are constants",
    "ones_like": "its values are constants",
    "report_uninitialized_variables": "names have no gradient",
    "required_space_to_batch_paddings": "it yields shapes",
    "sequence_mask": "it yields truth values",
    "shape_n": "it yields shapes",
    "sparse_fill_empty_rows": None,
    "sparse_reshape": None,
    "sparse_eye": "its values are constants",
    "sparse_placeholder": "it has no inputs",
    "sparse_to_indicator": "it yields truth values",
    "zero_fraction": "a count is piecewise constant",
    "zeros": "its values are constants",
    "zeros_like": "its values are constants",
}

# What many functions come to where elements are quantized, and only there: what these build with
# says little of those functions.
_FOR_LEVELS = ("levels_of", "cast_levels")

# Says why an op has no gradient, or None where it has a rule.
Reason = Callable[[OpSchema], str | None]


@dataclass(frozen=True, slots=True, eq=False)
class PublicFunction:
    """A function that programs call.

    Attributes:
        names: Its names, as in ``"hr.matmul"``; the one to use first.
        function: The function.
        schema: The op that it adds, None where it builds with others.
    """

    names: tuple[str, ...]
    function: Callable[..., Any]
    schema: OpSchema | None


def public_functions() -> list[PublicFunction]:
    """Return every public function that adds operations to a graph, once, by name."""
    names: dict[Callable[..., Any], list[str]] = {}
    modules = {"hr": headrace, **{f"hr.{n}": getattr(headrace, n) for n in NAMESPACES}}
    for prefix, module in modules.items():
        for name, value in vars(module).items():
            if not name.startswith("_") and _is_public(value):
                names.setdefault(value, []).append(f"{prefix}.{name}")
    found = []
    for value, known in names.items():
        schema = schema_of(value)
        if schema is None and not _builds_tensors(value):
            continue
        own = value.__name__

        def preference(name: str, own: str = own) -> tuple[int, bool, str]:
            return name.count("."), name.rpartition(".")[2] != own, name

        found.append(PublicFunction(tuple(sorted(known, key=preference)), value, schema))
    return sorted(found, key=lambda f: f.names[0])


def schema_of(value: Any) -> OpSchema | None:
    """Return the op that a function adds, None where it is another function."""
    schema = getattr(value, "schema", None)
    return schema if isinstance(schema, OpSchema) else None


def _is_for_levels(function: Callable[..., Any]) -> bool:
    return function.__name__ in _FOR_LEVELS


def _is_public(value: Any) -> bool:
    return inspect.isfunction(value) and (_is_ours(value) or value is convert_to_tensor)


def _is_ours(value: Any) -> bool:
    """Whether a function builds with ops; what only makes tensors of plain data does not."""
    return value.__module__.startswith("headrace.ops.") or value is constant_of


def _builds_tensors(function: Callable[..., Any]) -> bool:
    """Whether a function returns tensors or operations, or may, and builds with ops."""
    returned = str(function.__annotations__.get("return"))
    # A named tuple of tensors is told by its fields.
    named = function.__globals__.get(returned)
    if isinstance(named, type) and issubclass(named, tuple):
        returned = str(named.__annotations__)
    if any(word in returned for word in ("Tensor", "Operation", "IndexedSlices")):
        return True
    structures = returned in ("Any", "typing.Any") or returned.startswith(
        ("tuple[Any", "tuple[tuple[Any")
    )
    return structures and bool(parts(function))


@functools.cache
def parts(function: Callable[..., Any]) -> list[OpSchema]:
    """Return the ops that a function may build with, as far as its code names them.

    Operators of tensors are not seen: nothing in the code tells them from those of numbers.
    """
    found: dict[OpSchema, None] = {}
    seen: set[Any] = set()
    waiting = [function]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for used in _used(current):
            schema = used if isinstance(used, OpSchema) else schema_of(used)
            if schema is not None:
                found[schema] = None
            elif inspect.isfunction(used) and _is_ours(used) and not _is_for_levels(used):
                waiting.append(used)
    return sorted(found, key=lambda schema: schema.type)


@functools.cache
def _used(function: Callable[..., Any]) -> list[Any]:
    """Return what the code of a function names: functions, and schemas of ops."""
    named = list(_named(function))
    return [value for value in named if isinstance(value, OpSchema) or inspect.isfunction(value)]


def _named(function: Callable[..., Any]) -> Iterator[Any]:
    function = inspect.unwrap(function)
    names = _names(function)
    # Functions on variables call methods of theirs; elsewhere attributes are no functions.
    methods = vars(Variable) if function.__module__ == Variable.__module__ else {}
    for code in _codes(function.__code__):
        if "call_op" in code.co_names:
            strings = (c for c in code.co_consts if isinstance(c, str))
            yield from filter(None, map(OPS.get, strings))
        for instruction in dis.get_instructions(code):
            if instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                yield methods.get(instruction.argval)
            elif isinstance(instruction.argval, str):
                yield names.get(instruction.argval)
    yield from _cells(function).values()


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _cells(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function has of the functions around it."""
    cells = function.__closure__ or ()
    values = {}
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:
            # Not assigned yet.
            continue
    return values


@functools.cache
def _names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return what the names in a function mean, as far as that is known before it runs."""
    function = inspect.unwrap(function)
    found = {**function.__globals__, **_cells(function)}
    value: Any = None
    imported = ""
    module = ""
    for code in _codes(function.__code__):
        for instruction in dis.get_instructions(code):
            if instruction.opname == "IMPORT_NAME":
                module = instruction.argval
            elif instruction.opname == "IMPORT_FROM" and module.startswith("headrace"):
                value = getattr(importlib.import_module(module), instruction.argval, None)
                imported = instruction.argval
            elif instruction.opname == "STORE_FAST" and module.startswith("headrace"):
                if value is not None:
                    found[instruction.argval] = found[imported] = value
                value = None
    return found


def why_none(function: Callable[..., Any], reason: Reason) -> str | None:
    """Return why no gradient passes through a function, None where one does or may.

    Args:
        function: The function.
        reason: Says why an op has no gradient.
    """
    if schema_of(function) is None and function.__name__ in _STATED:
        return _STATED[function.__name__]
    return _why_none(function, reason, frozenset())


def _why_none(function: Any, reason: Reason, above: frozenset[Any]) -> str | None:
    schema = schema_of(function)
    if schema is not None:
        return reason(schema)
    if not inspect.isfunction(function) or not _is_ours(function) or function in above:
        return None
    reasons = [reason(part) for part in parts(function)]
    known = [text for text in reasons if text is not None]
    if known and len(known) == len(reasons):
        return known[0] if len(set(known)) == 1 else "; ".join(dict.fromkeys(known))
    returned = _returned(function)
    inside = above | {function}
    if any(_is_smooth(value, function, reason, inside) for value in returned):
        return None
    # A function of an op's name is that op, with some preparation.
    own = function.__name__.replace("_", "").lower()
    twin = next((part for part in parts(function) if part.type.lower() == own), None)
    if twin is not None:
        return reason(twin)
    found = [_why_of(value, function, reason, inside) for value in returned]
    return found[0] if found and all(found) else None


def _is_smooth(
    value: ast.expr, function: Callable[..., Any], reason: Reason, above: frozenset[Any]
) -> bool:
    """Whether an expression in a function calls an op with a gradient, or holds values of one."""
    if isinstance(value, ast.Tuple):
        return any(_is_smooth(part, function, reason, above) for part in value.elts)
    called = _called(value, function)
    if called is SparseTensor and isinstance(value, ast.Call) and len(value.args) == 3:
        return _why_of(value.args[1], function, reason, above) is None
    schema = schema_of(called)
    return schema is not None and not _passes_on(schema) and reason(schema) is None


def _passes_on(schema: OpSchema) -> bool:
    """Whether the gradient of an op's first input is that of its output, rearranged at most."""
    return schema.view or schema.type in ("Cast", "Transpose")


def _called(value: ast.expr, function: Callable[..., Any]) -> Any:
    """Return what an expression in a function calls, None where that is not known."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return None
    return _names(function).get(value.func.id)


def _tree(function: Callable[..., Any]) -> ast.AST | None:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions inside."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield from _statements(child)


@functools.cache
def _body(function: Callable[..., Any]) -> list[ast.AST]:
    tree = _tree(function)
    nodes = ast.walk(tree) if tree is not None else iter(())
    root = next((node for node in nodes if isinstance(node, ast.FunctionDef)), None)
    return [] if root is None else list(_statements(root))


def _returned(function: Callable[..., Any]) -> list[ast.expr]:
    return [n.value for n in _body(function) if isinstance(n, ast.Return) and n.value is not None]


def _why_of(
    value: ast.expr, function: Callable[..., Any], reason: Reason, above: frozenset[Any]
) -> str | None:
    """Return why no gradient passes through an expression in a function, None where one may."""
    if isinstance(value, ast.IfExp):
        both = [_why_of(v, function, reason, above) for v in (value.body, value.orelse)]
        return both[0] if all(both) else None
    if isinstance(value, ast.Name):
        assigned = [
            node.value
            for node in _body(function)
            if isinstance(node, ast.Assign)
            and any(_binds(target, value.id) for target in node.targets)
            and not _mentions(node.value, value.id)
        ]
        found = [_why_of(v, function, reason, above) for v in assigned]
        return found[0] if found and all(found) else None
    if isinstance(value, ast.Starred):
        return _why_of(value.value, function, reason, above)
    called = _called(value, function)
    if not isinstance(value, ast.Call) or called is None:
        return None
    if called is SparseTensor and value.args:
        # Its values, the second part, are what may have a gradient.
        return _why_of(value.args[1 if len(value.args) > 1 else 0], function, reason, above)
    schema = schema_of(called)
    simple = parts(called) if inspect.isfunction(called) else []
    inside = simple if schema is None else [schema]
    if inside and all(map(_passes_on, inside)) and value.args:
        return _why_of(value.args[0], function, reason, above)
    return _why_none(called, reason, above)


def _binds(target: ast.expr, name: str) -> bool:
    parts = target.elts if isinstance(target, ast.Tuple) else [target]
    return any(isinstance(part, ast.Name) and part.id == name for part in parts)


def _mentions(value: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(value))
