"""Putting Headrace in the place of TensorFlow, and taking it away again."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from headrace.errors import ConfigError
from headrace_tensorflow.finder import ROOT, Finder

_FINDER = Finder()


def install() -> ModuleType:
    """Let ``import tensorflow`` give Headrace from now on, in this process.

    TensorFlow may be installed or not; it is not imported. Installing twice changes nothing.

    Returns:
        The module that ``import tensorflow`` gives.

    Raises:
        ConfigError: if TensorFlow has been imported already.
    """
    if not installed():
        if ROOT in sys.modules:
            place = getattr(sys.modules[ROOT], "__file__", None)
            raise ConfigError(
                f"tensorflow has been imported from {place}: call headrace.tensorflow.install() "
                "before anything imports it"
            )
        finders: list[Any] = sys.meta_path
        finders.insert(0, _FINDER)
    __import__(ROOT)
    return sys.modules[ROOT]


def installed() -> bool:
    """Tell whether ``import tensorflow`` gives Headrace."""
    return _FINDER in sys.meta_path


def uninstall() -> None:
    """Let ``import tensorflow`` find what is installed again.

    Modules that have imported it keep what they have.
    """
    if not installed():
        return
    sys.meta_path.remove(_FINDER)
    for name in [name for name in sys.modules if name == ROOT or name.startswith(f"{ROOT}.")]:
        del sys.modules[name]
