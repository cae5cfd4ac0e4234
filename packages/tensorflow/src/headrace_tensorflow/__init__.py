"""Programs and libraries that say ``import tensorflow`` run with Headrace in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.extend.plugins import added_names

if TYPE_CHECKING:
    from headrace_tensorflow.installing import install as install
    from headrace_tensorflow.installing import installed as installed
    from headrace_tensorflow.installing import uninstall as uninstall

# Module -> its public names. Modules are imported when a program first names one of these.
_FOUND_IN = {"installing": "install installed uninstall"}

__all__: list[str] = []
__all__ += [name for names in _FOUND_IN.values() for name in names.split()]

if not TYPE_CHECKING:
    __getattr__, __dir__ = added_names("tensorflow", __name__, _FOUND_IN)
