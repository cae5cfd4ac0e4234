"""``python -m headrace plugins``: every plugin found, with its state."""

from __future__ import annotations

from dataclasses import asdict

from headrace.cli.tables import print_json, table
from headrace.plugins.host import host


def run(*, as_json: bool = False) -> int:
    """Print the plugins."""
    plugins = host()
    plugins.ask_all()
    states = plugins.plugins()
    if as_json:
        print_json([asdict(state) for state in states])
    elif not states:
        print("no plugins: nothing but core is installed; try pip install headrace-backend-cpu")
    else:
        rows = [("plugin", "state", "package", "module", "reason")]
        rows += [(s.name, s.state, s.distribution, s.module, s.reason) for s in states]
        print("\n".join(table(rows)))
        for state in states:
            for override in state.overrides:
                print(f"replaced: {override}")
    return 0
