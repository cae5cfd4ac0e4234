"""``python -m headrace ops``: functions and ops, with the devices and gradients they have."""

from __future__ import annotations

import difflib
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headrace.cli import offers
from headrace.cli.coverage import PublicFunction, parts, public_functions, why_none
from headrace.cli.tables import facts, print_json, table
from headrace.errors import GraphError
from headrace.graph.attributes import hint_name
from headrace.graph.facts import told
from headrace.graph.schema import OPS, REQUIRED, OpSchema
from headrace.plugins.host import PluginHost, host


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list.

    Attributes:
        function: What users call, as in ``"hr.matmul"``; empty for ops that functions make.
        aliases: Its other names.
        ops: The type names of the op, or of all that a function builds with.
        devices: Kinds of devices that have kernels for all of them.
        gradient: "rule" where it has one or its parts have, or why there is none.
    """

    function: str
    aliases: list[str]
    ops: list[str]
    devices: list[str]
    gradient: str


def run(name: str | None, *, by: str | None = None, as_json: bool = False) -> int:
    """Print the list of functions and ops, all about one, or what a plugin brings for them."""
    plugins = host()
    plugins.declare_ops()
    if by is not None:
        if name is not None:
            raise GraphError("ops takes the name of an op or --by PLUGIN, not both")
        return offers.run(by, plugins, as_json=as_json)
    if name is not None:
        _print_one(name, plugins, as_json)
        return 0
    # Functions first; ops that no function makes directly come after them.
    rows = [_row(function, plugins) for function in public_functions()]
    rows += sorted(_others(plugins), key=lambda row: (not row.function, row.function, row.ops))
    if as_json:
        print_json([asdict(row) for row in rows])
        return 0
    lines = [("function", "op", "devices", "gradient", "also called")]
    lines += [
        (
            row.function or "-",
            _few(row.ops, 4),
            ", ".join(row.devices) or "none",
            row.gradient,
            _few(row.aliases, 3) if row.aliases else "",
        )
        for row in rows
    ]
    print("\n".join(table(lines)))
    print("\n" + "\n".join(_summary(rows)))
    return 0


def _few(names: list[str], count: int) -> str:
    return ", ".join(names[:count]) + (", ..." if len(names) > count else "") or "-"


def _summary(rows: Sequence[Row]) -> list[str]:
    """Return how many functions there are, and what covers them."""
    functions = [row for row in rows if row.function]
    names = sum(1 + len(row.aliases) for row in functions)
    lines = [f"{len(functions)} functions under {names} names, {len(OPS)} ops"]
    kinds = Counter(kind for row in functions for kind in _counted(row, rows))
    lines += [f"  {count} run on {kind}" for kind, count in sorted(kinds.items())]
    reasons = Counter(row.gradient for row in functions)
    ruled = reasons.pop("rule", 0)
    lines.append(f"  {ruled} have gradients")
    lines.append(f"  {len(functions) - ruled} have none:")
    lines += [f"    {count} {why.removeprefix('none: ')}" for why, count in reasons.most_common()]
    return lines


def _counted(row: Row, rows: Sequence[Row]) -> list[str]:
    """Return the kinds of devices on which a function runs."""
    if row.devices in (["all"], ["fed"]):
        return sorted({kind for other in rows for kind in other.devices} - {"all", "fed"})
    return row.devices


def _row(function: PublicFunction, plugins: PluginHost) -> Row:
    first, *aliases = function.names
    schemas = _schemas(function)
    return Row(
        first,
        aliases,
        [schema.type for schema in schemas],
        _common_devices(schemas, plugins),
        _function_gradient(function.function, schemas, plugins),
    )


def _schemas(function: PublicFunction) -> list[OpSchema]:
    return parts(function.function) if function.schema is None else [function.schema]


def _others(plugins: PluginHost) -> list[Row]:
    """Return rows of the ops that no function of core's namespaces is."""
    named = {function.schema for function in public_functions()}
    rows = []
    for schema in OPS:
        if schema in named:
            continue
        place = schema.function.__module__
        of_plugin = schema.public and not place.startswith("headrace.")
        name = f"{place}.{schema.function.__name__}" if of_plugin else ""
        devices = _common_devices([schema], plugins)
        rows.append(Row(name, [], [schema.type], devices, _gradient(schema, plugins)))
    return rows


def _common_devices(schemas: Sequence[OpSchema], plugins: PluginHost) -> list[str]:
    kinds = [set(plugins.kernels.devices_of(s.type)) for s in schemas if not _runs_everywhere(s)]
    if kinds:
        return sorted(set.intersection(*kinds))
    return ["fed" if [schema.type for schema in schemas] == ["Placeholder"] else "all"]


def _runs_everywhere(schema: OpSchema) -> bool:
    """Whether an op needs no kernel; placeholders never run, they are fed."""
    return schema.builtin or schema.type == "Placeholder"


def _gradient(schema: OpSchema, plugins: PluginHost) -> str:
    reason = _reason(plugins)(schema)
    return "rule" if reason is None else f"none: {reason}"


def _reason(plugins: PluginHost) -> Callable[[OpSchema], str | None]:
    """Return the function that says why an op has no gradient, None where it has a rule."""
    nothing = not list(plugins.gradients)

    def reason(schema: OpSchema) -> str | None:
        if plugins.gradients.get(schema.type) is not None:
            return None
        if schema.no_gradient:
            return schema.no_gradient
        return "pip install headrace-autodiff" if nothing else "no rule is registered"

    return reason


def _function_gradient(
    function: Callable[..., Any], schemas: Sequence[OpSchema], plugins: PluginHost
) -> str:
    if not schemas:
        return "none: it adds no operation that takes a tensor"
    reason = why_none(function, _reason(plugins))
    return "rule" if reason is None else f"none: {reason}"


def _print_one(name: str, plugins: PluginHost, as_json: bool) -> None:
    short = name.removeprefix("headrace.").removeprefix("hr.")
    functions = {
        known.removeprefix("hr."): function
        for function in public_functions()
        for known in function.names
    }
    function = functions.get(short)
    schema = OPS.get(short) if function is None else function.schema
    if function is None and schema is None:
        schema = next((s for s in OPS if s.type.lower() == short.lower()), None)
    if schema is not None:
        called = next((n for n, f in functions.items() if f.schema is schema), "")
        content = _about(schema, short if function is not None else called, plugins)
        documentation = schema.doc
    elif function is not None:
        parameters = ", ".join(inspect.signature(function.function).parameters)
        content = asdict(_row(function, plugins))
        content["function"] = f"{short}({parameters})"
        if not content["aliases"]:
            del content["aliases"]
        documentation = inspect.getdoc(function.function) or ""
    else:
        near = difflib.get_close_matches(short, [*functions, *(s.type for s in OPS)], 3, 0.5)
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
    kernels = {
        kind: [
            f"{kernel.style}, priority {kernel.priority}, at {kernel.where}"
            for kernel in plugins.kernels.offers[schema.type, kind]
        ]
        for kind in sorted({kind for op, kind in plugins.kernels.offers if op == schema.type})
    }
    parameters = ", ".join(map(str, inspect.signature(schema.function).parameters))
    # The keys of kernels are (op, kind of device), those of rules the op.
    replaced = [
        str(found) for found in plugins.replacements if schema.type in (found.key, found.key[0])
    ]
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
        "facts": told(schema),
        "devices": devices or _common_devices([schema], plugins),
        "gradient": _gradient(schema, plugins),
        "declared in": schema.where,
        **({"kernels": kernels} if kernels else {}),
        **({"replaced": replaced} if replaced else {}),
    }
