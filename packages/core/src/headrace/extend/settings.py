"""Settings from the environment: declaring those of a package, and those of core that matter to it.

A package declares a ``Setting`` at module level, reads it where it needs it, and registers it in
``headrace_register_settings``. Options of devices, which sessions give, are in
``headrace.extend.devices``.
"""

from headrace.plugins.registries.settings import (
    SettingRegistry,
)
from headrace.settings import (
    CACHE_SIZE,
    COMPILE_WAIT,
    QUIET,
    Setting,
    cache_folder,
    choice,
    missing_file,
    names,
    seconds,
    size,
    switch,
    text,
    whole_number,
)

__all__ = [
    "CACHE_SIZE",
    "COMPILE_WAIT",
    "QUIET",
    "Setting",
    "SettingRegistry",
    "cache_folder",
    "choice",
    "missing_file",
    "names",
    "seconds",
    "size",
    "switch",
    "text",
    "whole_number",
]
