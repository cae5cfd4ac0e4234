"""Names that plugins add to namespaces, of core and of other plugins."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

import headrace as hr
from headrace.errors import PluginError
from headrace.extend.plugins import NameRegistry, PluginHost, added_names, hookimpl, use_host


class Adds:
    """A plugin that adds names; two underscores stand for the dot."""

    def __init__(self, **names: str) -> None:
        self.names = {name.replace("__", "."): target for name, target in names.items()}

    @hookimpl
    def headrace_register_names(self, registry: NameRegistry) -> None:
        for name, target in self.names.items():
            registry.add(name, target)


def test_a_name_in_a_namespace_of_core_is_found_and_listed(fake_entry):
    with use_host(PluginHost([fake_entry("adds", Adds(image__tau="math:tau"))])):
        assert hr.image.tau == pytest.approx(6.2831853)
        assert {"tau", "resize_images"} <= {*dir(hr.image)}
        assert {"tau", "image.tau"}.isdisjoint(dir(hr))
    with pytest.raises(AttributeError, match=r"headrace\.image has no attribute 'tau'"):
        _ = hr.image.tau


def test_a_name_in_a_namespace_of_another_plugin_is_found(fake_entry, monkeypatch):
    fancy = ModuleType("fancy_module")
    fancy.__getattr__, fancy.__dir__ = added_names("fancy", "fancy_module")
    monkeypatch.setitem(sys.modules, "fancy_module", fancy)
    plugins = Adds(fancy="fancy_module"), Adds(fancy__tau="math:tau")
    entries = [fake_entry(name, plugin) for name, plugin in zip("ab", plugins, strict=True)]
    with use_host(PluginHost(entries)) as host:
        found = host.resolve_name("fancy")
        assert found.tau == pytest.approx(6.2831853)
        assert "tau" in dir(found)


def test_what_a_namespace_of_core_has_itself_is_kept(fake_entry):
    host = PluginHost([fake_entry("adds", Adds(image__rot90="math:tau"))])
    host.ask_all()
    (state,) = host.plugins()
    assert state.state == "broken"
    assert "the name headrace.image.rot90" in state.reason
    assert "a name of core cannot be replaced" in state.reason


@pytest.mark.parametrize("name", ["", "2d", "a.b.c", "a.", ".b", "a b"])
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(PluginError, match="is no public name: expected one, as in"):
        NameRegistry().add(name, "math:tau")
