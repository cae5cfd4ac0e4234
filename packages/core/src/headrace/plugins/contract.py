"""The versioned contract: which version of the plugin interface a plugin was built for.

The interface is what ``headrace.extend`` offers: hooks, tables, and what functions of plugins get
and must return. A plugin's entry-point module says ``headrace_api = 1``; one that says nothing was
built for version 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import PluginError, shown

# Raised when plugins that worked would no longer: a hook, argument or promise that goes away.
API_VERSION = 1

# All versions whose plugins still work; a version is dropped no earlier than one release after the
# next one came.
SUPPORTED = frozenset({1})

# What a module that says nothing was built for.
DEFAULT = 1


def check_version(plugin: Any, package: Callable[[], str]) -> None:
    """Refuse a plugin that was built for another interface.

    Args:
        plugin: What its entry point names.
        package: Returns its distribution, for the message.

    Raises:
        PluginError: if it was; says what to upgrade.
    """
    built_for = getattr(plugin, "headrace_api", DEFAULT)
    if not isinstance(built_for, int) or isinstance(built_for, bool):
        raise PluginError(
            f"headrace_api must be a whole number, as in headrace_api = {API_VERSION}, got "
            f"{shown(built_for)}; fix it in {package()}"
        )
    if built_for in SUPPORTED:
        return
    known = ", ".join(map(str, sorted(SUPPORTED)))
    upgrade = "headrace-core" if built_for > API_VERSION else package()
    raise PluginError(
        f"it was built for version {built_for} of the plugin interface, and this headrace-core "
        f"supports {known}; upgrade {upgrade}"
    )
