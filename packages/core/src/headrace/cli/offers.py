"""``python -m headrace ops --by PLUGIN``: what a plugin brings for which ops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from headrace.cli.tables import print_json, table
from headrace.errors import PluginError
from headrace.graph.schema import OPS
from headrace.plugins.host import PluginHost
from headrace.plugins.ownership import CORE_PACKAGE, package_of

CORE = "core"


@dataclass(frozen=True, slots=True)
class Row:
    """Something that a plugin brings for an op.

    Attributes:
        op: The type of the op.
        owner: The import package that declares the op.
        brings: "declaration", "kernel" or "gradient".
        device: The kind of devices that a kernel is for; empty for others.
        dtypes: What a kernel takes, "any" for all; empty for others.
        style: How a kernel is called: "plain", "stateful", "blocking" or "specialized".
        priority: Of kernels that take a node, that of the highest priority is asked first.
        replaces: Why it replaces what another package owns; empty where it does not.
        where: Module and line.
    """

    op: str
    owner: str
    brings: str
    device: str
    dtypes: str
    style: str
    priority: str
    replaces: str
    where: str


def run(name: str, plugins: PluginHost, *, as_json: bool = False) -> int:
    """Print what a plugin brings; "core" stands for core.

    Raises:
        PluginError: if no plugin has the name, or it is broken or disabled.
    """
    rows = sorted(rows_of(name, plugins), key=lambda row: (row.op, row.brings, row.device))
    if as_json:
        print_json([asdict(row) for row in rows])
        return 0
    if not rows:
        print(f"plugin {name!r} brings nothing for ops")
        return 0
    head = ("op", "owner", "brings", "device", "dtypes", "style", "priority", "replaces", "where")
    print("\n".join(table([head, *(tuple(asdict(row).values()) for row in rows)])))
    return 0


def rows_of(name: str, plugins: PluginHost) -> Iterator[Row]:
    """Yield what a plugin brings, as ``run`` does."""
    plugins.ask_all()
    package = _package(name, plugins)
    for schema in OPS:
        if package_of(schema.where) == package:
            yield Row(schema.type, package, "declaration", "", "", "", "", "", schema.where)
    plugins.kernels.arrive()
    for (op, kind), kernels in plugins.kernels.offers.items():
        for kernel in kernels:
            if plugins.kernels.provider((op, kind), kernel).name == name:
                dtypes = ", ".join(sorted(kernel.dtypes)) if kernel.dtypes is not None else "any"
                yield Row(
                    *(op, _owner(op), "kernel", kind, dtypes),
                    *(kernel.style, str(kernel.priority), kernel.override, kernel.where),
                )
    for op in plugins.gradients:
        found = plugins.gradients.rule(op)
        if found is not None and found[1].name == name:
            rule = found[0]
            yield Row(op, _owner(op), "gradient", "", "", "", "", rule.override, rule.where)


def _owner(op: str) -> str:
    schema = OPS.get(op)
    return package_of(schema.where) if schema is not None else "?"


def _package(name: str, plugins: PluginHost) -> str:
    """Return the import package of a plugin that works."""
    if name == CORE:
        return CORE_PACKAGE
    states = {state.name: state for state in plugins.plugins()}
    state = states.get(name)
    if state is None:
        near = get_close_matches(name, [CORE, *states], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        known = ", ".join(sorted([CORE, *states]))
        raise PluginError(f"no plugin is called {name!r}{hint}\n  plugins: {known}")
    if state.state in ("broken", "disabled"):
        raise PluginError(f"plugin {name!r} is {state.state}: {state.reason}")
    return package_of(state.module)
