"""``python -m headrace ops``: the ops, with the devices and gradients that cover them."""

from __future__ import annotations

import difflib
import dis
import inspect
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import headrace
from headrace.cli.tables import facts, print_json, table
from headrace.errors import GraphError
from headrace.graph.attributes import hint_name
from headrace.graph.convert import constant_of
from headrace.graph.schema import OPS, REQUIRED, OpSchema
from headrace.ops.variable import Variable
from headrace.plugins.host import PluginHost, host

_NAMESPACES = {"hr.": headrace, "hr.nn.": headrace.nn}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list.

    Attributes:
        function: What users call, as in ``"hr.matmul"``; empty for ops that functions make.
        ops: The type names of the op, or of all that a function builds with.
        devices: Kinds of devices that have kernels for all of them.
        gradient: "rule" where all have one, or why there is none.
    """

    function: str
    ops: list[str]
    devices: list[str]
    gradient: str


def run(name: str | None, *, as_json: bool = False) -> int:
    """Print the list of ops, or all about one."""
    plugins = host()
    plugins.declare_ops()
    if name is not None:
        _print_one(name, plugins, as_json)
        return 0
    rows = [_row(name, [schema], plugins) for name, schema in _functions()]
    rows += [_row(name, _parts(made), plugins) for name, made in _composites().items()]
    # Functions first; ops that no function makes directly come after them.
    rows.sort(key=lambda row: (not row.function, row.function, row.ops))
    if as_json:
        print_json([asdict(row) for row in rows])
        return 0
    lines = [("function", "op", "devices", "gradient")]
    lines += [
        (
            row.function or "-",
            ", ".join(row.ops[:4]) + (", ..." if len(row.ops) > 4 else "") or "-",
            ", ".join(row.devices) or "none",
            row.gradient,
        )
        for row in rows
    ]
    print("\n".join(table(lines)))
    return 0


def _row(name: str, schemas: list[OpSchema], plugins: PluginHost) -> Row:
    kinds = [set(_devices(s, plugins)) for s in schemas if not _runs_everywhere(s)]
    common = sorted(set.intersection(*kinds)) if kinds else [_everywhere(schemas)]
    gradients = [_gradient(schema, plugins) for schema in schemas]
    gradient = gradients[0] if len(set(gradients)) == 1 else "that of its parts"
    return Row(name, [schema.type for schema in schemas], common, gradient)


def _everywhere(schemas: list[OpSchema]) -> str:
    return "fed" if [schema.type for schema in schemas] == ["Placeholder"] else "all"


def _functions() -> list[tuple[str, OpSchema]]:
    """Return the name of every op's function, empty where other functions make the op."""
    found = []
    for prefix, module in _NAMESPACES.items():
        for name, value in vars(module).items():
            schema = getattr(value, "schema", None)
            if isinstance(schema, OpSchema):
                found.append((f"{prefix}{name}", schema))
    named = {schema for _, schema in found}
    for schema in OPS:
        place = schema.function.__module__
        of_plugin = schema.public and not place.startswith("headrace.")
        if schema not in named:
            found.append((f"{place}.{schema.function.__name__}" if of_plugin else "", schema))
    return found


def _runs_everywhere(schema: OpSchema) -> bool:
    """Whether an op needs no kernel; placeholders never run, they are fed."""
    return schema.builtin or schema.type == "Placeholder"


def _devices(schema: OpSchema, plugins: PluginHost) -> list[str]:
    return plugins.kernels.devices_of(schema.type)


def _gradient(schema: OpSchema, plugins: PluginHost) -> str:
    if plugins.gradients.get(schema.type) is not None:
        return "rule"
    if schema.no_gradient:
        return f"none: {schema.no_gradient}"
    if not list(plugins.gradients):
        return "none: pip install headrace-autodiff"
    return "none: no rule is registered"


def _composites() -> dict[str, Callable[..., Any]]:
    """Return the public functions that are no op but build with ops, by name."""
    return {
        prefix + name: value
        for prefix, module in _NAMESPACES.items()
        for name, value in vars(module).items()
        if inspect.isfunction(value)
        and value.__module__.startswith("headrace.ops.")
        and not name.startswith("_")
        and not hasattr(value, "schema")
        and re.search("Tensor|Operation", str(value.__annotations__.get("return")))
    }


def _parts(function: Callable[..., Any]) -> list[OpSchema]:
    """Return the ops that a function may build with, as far as its code names them."""
    found: dict[OpSchema, None] = {}
    seen: set[Any] = set()
    waiting = [function]
    while waiting:
        code = waiting.pop()
        if code in seen:
            continue
        seen.add(code)
        if "call_op" in code.__code__.co_names:
            named = (OPS.get(c) for c in code.__code__.co_consts if isinstance(c, str))
            found.update((schema, None) for schema in named if schema is not None)
        # Functions on variables call methods of theirs; elsewhere attributes are no functions.
        methods = vars(Variable) if code.__module__ == Variable.__module__ else {}
        for instruction in dis.get_instructions(code):
            used = None
            if instruction.opname == "LOAD_GLOBAL":
                used = code.__globals__.get(instruction.argval)
            elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                used = methods.get(instruction.argval)
            schema = getattr(used, "schema", None)
            if isinstance(schema, OpSchema):
                found[schema] = None
            elif used is not None and _builds(used):
                waiting.append(used)
    return sorted(found, key=lambda schema: schema.type)


def _builds(value: Any) -> bool:
    """Whether ``value`` is a function of Headrace that makes nodes of more than plain data."""
    return inspect.isfunction(value) and (
        value.__module__.startswith("headrace.ops.") or value is constant_of
    )


def _print_one(name: str, plugins: PluginHost, as_json: bool) -> None:
    short = name.removeprefix("headrace.").removeprefix("hr.")
    composites = {known.removeprefix("hr."): f for known, f in _composites().items()}
    functions = [(known.removeprefix("hr."), schema) for known, schema in _functions()]
    called, schema = next(
        ((known, s) for known, s in functions if short in (s.type, known)), ("", None)
    )
    if schema is None and short not in composites:
        called, schema = next(
            ((known, s) for known, s in functions if short.lower() == s.type.lower()), ("", None)
        )
    if schema is not None:
        content = _about(schema, called, plugins)
        documentation = schema.doc
    elif short in composites:
        row = _row(short, _parts(composites[short]), plugins)
        parameters = ", ".join(inspect.signature(composites[short]).parameters)
        content = {**asdict(row), "function": f"{short}({parameters})"}
        documentation = inspect.getdoc(composites[short]) or ""
    else:
        known = [*composites, *(name for name, _ in functions if name), *(s.type for s in OPS)]
        near = difflib.get_close_matches(short, known, 3, 0.5)
        hint = f"; did you mean {' or '.join(near)}?" if near else ""
        raise GraphError(f"no op or function is called {name!r}{hint}")
    if as_json:
        print_json({**content, "documentation": documentation})
        return
    print("\n".join(facts(content, "")))
    print(f"\n{documentation}")


def _about(schema: OpSchema, name: str, plugins: PluginHost) -> dict[str, Any]:
    devices = {
        kind: plugins.kernels.dtypes_of(schema.type, kind)
        for kind in plugins.kernels.devices_of(schema.type)
    }
    parameters = ", ".join(map(str, inspect.signature(schema.function).parameters))
    flags = [f for f in ("stateful", "blocking", "elementwise", "reduction") if getattr(schema, f)]
    return {
        "op": schema.type,
        "function": f"{name}({parameters})" if name else "none: other functions make it",
        "inputs": {
            p.name: p.kind.name
            + (", any number" if p.variadic else "")
            + (", optional" if p.optional else "")
            for p in schema.inputs
        },
        "attributes": {
            a.name: hint_name(a.hint) + ("" if a.default is REQUIRED else f" = {a.default!r}")
            for a in schema.attrs
        },
        "facts": flags,
        "devices": devices or _row("", [schema], plugins).devices,
        "gradient": _gradient(schema, plugins),
        "declared in": schema.where,
    }
