"""Programs that run beside plugins of some code."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint, entry_points

import pytest

import headrace as hr
from headrace.extend import OPS
from headrace.extend.plugins import PluginState
from headrace.plugins import host as host_module
from headrace.plugins.reserved import OFFICIAL
from tests.contracts.plugin_parts import HEAD


@pytest.fixture
def run_beside(tmp_path, monkeypatch, capsys):
    """Run a program beside plugins of some code; return what it prints, and their states."""
    ours = list(entry_points(group="headrace"))
    # All of ours: modules that were imported once declare no ops again.
    host_module.host().declare_ops()
    known = {schema.type for schema in OPS}
    official = [*OFFICIAL, "fancy"]

    def forget() -> None:
        for name in official:
            vars(hr).pop(name, None)
        OPS.forget({schema.type for schema in OPS} - known)

    def run(program: str, **plugins: str) -> tuple[str, dict[str, PluginState]]:
        entries = []
        for name, code in plugins.items():
            (tmp_path / f"plugin_{name}.py").write_text(HEAD + code)
            entries.append(EntryPoint(name, f"plugin_{name}", "headrace"))
            monkeypatch.delitem(sys.modules, f"plugin_{name}", raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        found = sorted([*ours, *entries], key=lambda entry: entry.name)
        host = host_module.PluginHost(found)
        monkeypatch.setattr(host_module, "_HOST", host)
        forget()
        with hr.Graph().as_default():
            exec(compile(program, "<program>", "exec"), {"__name__": "program"})
        host.ask_all()
        return capsys.readouterr().out, {state.name: state for state in host.plugins()}

    yield run
    forget()
