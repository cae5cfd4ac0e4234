"""Tables of the reference that are made of the packages themselves, as MyST Markdown."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import io
import json
import re
import sys
from collections.abc import Iterable
from typing import Any

import headrace
from headrace.cli import ops as ops_command
from headrace.extend.scalars import SCALAR_FUNCTIONS
from headrace.graph.facts import told
from headrace.graph.schema import OPS, REQUIRED, OpSchema
from headrace.plugins import hookspecs
from headrace.plugins.host import host

_SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes|References|Gradient|Example):+\s*$")
_ENTRY = re.compile(r"^(?P<name>\*{0,2}[\w.]+): (?P<text>.*)$")


def environment() -> str:
    """Return a table of the environment variables of the workspace's packages."""
    rows = [
        f"| `{setting.variable}` | {_escaped(setting.doc)} | {package} |"
        for package, settings in host().settings.by_package().items()
        for setting in settings
    ]
    return "\n".join(["| variable | meaning | package |", "|---|---|---|", *rows])


def device_options() -> str:
    """Return a table of the options of devices of the workspace's packages."""
    rows = [
        f"| `{kind.name}` | `{option.name}` | {_escaped(option.doc)} | {option.expected} "
        f"| `{option.default}` | {'yes' if option.shorthand else ''} |"
        for kind in host().devices
        for option in kind.options
    ]
    head = "| kind | option | meaning | values | default | also by name |"
    return "\n".join([head, "|---|---|---|---|---|---|", *rows])


def hooks() -> dict[str, str]:
    """Return the signature of every hook, by its name."""
    found = {}
    for name, value in vars(hookspecs).items():
        if getattr(value, f"{hookspecs.PROJECT}_spec", None) is not None:
            found[name] = f"{name}{inspect.signature(value)}".replace("'", "")
    return found


def hook_reference() -> str:
    """Return each hook with its arguments and what it is for."""
    parts = []
    for name, signature in hooks().items():
        doc = inspect.getdoc(getattr(hookspecs, name)) or ""
        options = getattr(getattr(hookspecs, name), f"{hookspecs.PROJECT}_spec")
        first = "\n\nThe first answer that is not None counts." if options["firstresult"] else ""
        parts.append(f"## `{name}`\n\n```python\n{signature}\n```\n\n{_markdown(doc)}{first}")
    return "\n\n".join(parts)


def scalar_functions() -> str:
    """Return a table of the functions of scalar expressions."""
    lines = ["| function | takes | yields | means |", "|---|---|---|---|"]
    for function in SCALAR_FUNCTIONS.values():
        arguments = {
            "where": "condition, x, y",
            "cast": "x, dtype",
        }.get(function.name, ", ".join("xyz"[: function.arity]))
        takes = _TAKEN[function.takes]
        yields = "a truth value" if function.tests else "the dtype of its last argument"
        yields = "`dtype`" if function.name == "cast" else yields
        means = f"the op `{function.op}`" if function.op else f"`xp.{function.name}`"
        lines.append(f"| `s.{function.name}({arguments})` | {takes} | {yields} | {means} |")
    return "\n".join(lines)


_TAKEN = {
    frozenset({"float"}): "floats",
    frozenset({"int", "uint"}): "integers",
    frozenset({"bool"}): "truth values",
    frozenset({"float", "int", "uint"}): "numbers",
    frozenset({"float", "int", "uint", "bool"}): "numbers or truth values",
}


def declared() -> list[OpSchema]:
    """Return the ops of the workspace's packages."""
    host().declare_ops()
    # A process that runs tests may have declared ops of its own.
    own = [schema for schema in OPS if schema.where.startswith("headrace")]
    return sorted(own, key=lambda schema: schema.type)


def family_of(schema: OpSchema) -> str:
    """Return the family of an op: the name of the module that declares it."""
    return schema.where.partition(":")[0].rpartition(".")[2]


def families() -> list[str]:
    """Return all families."""
    return sorted({family_of(schema) for schema in declared()})


def functions(module: str) -> str:
    """Return the reference of a module's functions and classes, under a heading for each family."""
    families: dict[str, list[str]] = {}
    for name, value in public(module).items():
        families.setdefault(value.__module__, []).append(name)
    parts = []
    for family, names in families.items():
        title = (sys.modules[family].__doc__ or family).partition("\n")[0].partition(":")[0]
        lines = [f"## {title.rstrip('.')}", "", "```{eval-rst}"]
        for name in names:
            kind = "class" if inspect.isclass(public(module)[name]) else "function"
            lines.append(f".. auto{kind}:: {module}.{name}")
            lines += ["   :members:"] if kind == "class" else []
            # A class has one page; the others only show it.
            again = kind == "class" and module != "headrace" and name in vars(headrace)
            lines += ["   :no-index:"] if again else []
        parts.append("\n".join([*lines, "```"]))
    return "\n\n".join(parts)


def public(module: str) -> dict[str, Any]:
    """Return the functions and classes that ``{headrace} functions <module>`` documents."""
    found = importlib.import_module("headrace.functions" if module == "headrace" else module)
    # What a module imports when it is first asked for stands in its list of names only.
    names = dict.fromkeys([*vars(found), *getattr(found, "__all__", ())])
    values = {name: getattr(found, name) for name in names if not name.startswith("_")}
    return {name: value for name, value in values.items() if callable(value)}


def overview() -> str:
    """Return a table of all ops."""
    lines = ["| op | functions | gradient | kernels |", "|---|---|---|---|"]
    for schema in declared():
        family = family_of(schema)
        lines.append(
            f"| [`{schema.type}`]({family}.md#{anchor(schema)}) | {_users(schema)} | "
            f"{'no' if schema.no_gradient else 'yes'} | {', '.join(_devices(schema))} |"
        )
    return "\n".join(lines)


def family(name: str) -> str:
    """Return the reference of the ops of one family."""
    return "\n\n".join(one_op(s) for s in declared() if family_of(s) == name)


def one_op(schema: OpSchema) -> str:
    """Return the reference of one op."""
    facts = [
        f"* {_public(schema)}",
        f"* inputs: {_listed(_input(p) for p in schema.inputs)}",
        f"* attributes: {_listed(_attribute(a) for a in schema.attrs)}",
        f"* gradient: {_gradient(schema)}",
        f"* kernels: {_kernels(schema)}",
    ]
    flags = told(schema)
    if flags:
        facts.append(f"* {'; '.join(flags)}")
    heading = f"({anchor(schema)})=\n## {schema.type}"
    # With a heading of their own, or they would go on with the list of arguments.
    return f"{heading}\n\n{_markdown(schema.doc)}\n\n**Facts**\n\n" + "\n".join(facts)


def anchor(schema: OpSchema) -> str:
    """Return the anchor of an op on its family's page."""
    return f"op-{schema.type.lower()}"


def _public(schema: OpSchema) -> str:
    if not schema.public:
        return f"functions that add it: {_users(schema)}"
    names = ", ".join(
        p.name if p.default is p.empty else f"{p.name}={p.default}"
        for p in inspect.signature(schema.function).parameters.values()
    )
    return f"function: `hr.{schema.public}({names})`"


@functools.cache
def _functions() -> dict[str, list[str]]:
    """Return the public functions that add each op, as the command line tells them."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        ops_command.run(None, as_json=True)
    found: dict[str, list[str]] = {}
    for row in json.loads(printed.getvalue()):
        for name in row["ops"] if row["function"] else []:
            found.setdefault(name, []).append(row["function"])
    return found


def _users(schema: OpSchema) -> str:
    if schema.public:
        return f"`hr.{schema.public}`"
    names = _functions().get(schema.type, [])
    shown = ", ".join(f"`{name}`" for name in names[:3])
    return f"{shown} and others" if len(names) > 3 else shown or "none"


def _input(param: Any) -> str:
    text = f"`{param.name}`: {param.kind.name}"
    if param.variadic:
        return f"{text} (any number)"
    return f"{text} (may be left out)" if param.optional else text


def _attribute(param: Any) -> str:
    return f"`{param.name}`" if param.default is REQUIRED else f"`{param.name}={param.default}`"


def _gradient(schema: OpSchema) -> str:
    if schema.no_gradient:
        return f"none: {schema.no_gradient}"
    rule = host().gradients.get(schema.type)
    return "yes" if rule is not None else "no rule is installed"


def _devices(schema: OpSchema) -> list[str]:
    if schema.builtin:
        return ["every device"]
    return host().kernels.devices_of(schema.type) or ["none"]


def _kernels(schema: OpSchema) -> str:
    if schema.builtin:
        return "run by core itself, on every device"
    kernels = host().kernels
    found = []
    for kind in kernels.devices_of(schema.type):
        dtypes = kernels.dtypes_of(schema.type, kind)
        found.append(f"{kind} ({'all dtypes' if dtypes == ['any'] else ', '.join(dtypes)})")
    return _listed(found)


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items) or "none"


def _escaped(text: str) -> str:
    """Escape what Markdown would take for emphasis or tags, outside of code."""
    parts = re.split(r"(``.*?``)", text, flags=re.DOTALL)
    return "".join(
        part if part.startswith("``") else re.sub(r"([*_<>|])", r"\\\1", part) for part in parts
    )


def _markdown(doc: str) -> str:
    """Return a Google docstring as Markdown: its sections become lists."""
    lines: list[str] = []
    section = ""
    for line in inspect.cleandoc(doc).splitlines():
        heading = _SECTION.match(line)
        if heading is not None:
            section = heading[1]
            lines += [f"**{section}**", ""]
            continue
        if not section:
            lines.append(_escaped(line))
            continue
        inner = line.strip()
        entry = _ENTRY.match(inner)
        deep = len(line) - len(line.lstrip()) > 4
        if entry is not None and not deep and section in ("Args", "Attributes", "Raises"):
            lines.append(f"* `{entry['name']}`: {_escaped(entry['text'])}")
        elif section in ("Args", "Attributes", "Raises") and inner:
            lines.append(f"  {_escaped(inner)}")
        else:
            lines.append(_escaped(inner))
    return "\n".join(lines)
