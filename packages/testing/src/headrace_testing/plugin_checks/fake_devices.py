"""Fake devices: stand-ins for hardware that is absent, as strict about what kernels may do."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from headrace.extend.plugins import PluginHost, host

# Kind of devices -> the plugin that has it, and a module that pretends to be that plugin.
STAND_INS = {"cuda": ("cuda", "headrace_cuda.testing.plugin")}


def count_of(kind: str) -> int:
    """Return how many devices of a kind there are, 0 where their plugin cannot tell."""
    found = host().devices.get(kind)
    return 0 if found is None else host().count_devices(found)[0]


def host_with_stand_in(kind: str) -> PluginHost | None:
    """Return a host whose devices of a kind are pretended; None where nothing pretends them."""
    if kind not in STAND_INS:
        return None
    name, module = STAND_INS[kind]
    if find_spec(module.partition(".")[0]) is None:
        return None
    return _stand_in(host(), name, module)


@cache
def _stand_in(plugins: PluginHost, name: str, module: str) -> PluginHost:
    return plugins.with_plugin(name, module)
