"""Parts of ``tf.contrib`` that live on in a package of their own, tf-slim."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

# What is below ``tf.contrib`` -> where tf-slim has it.
_MODULES = {
    "framework": "tf_slim",
    "layers": "tf_slim.layers",
    "losses": "tf_slim.losses",
    "metrics": "tf_slim.metrics",
    "slim": "tf_slim",
    "slim.nets": "tf_slim.nets",
    "training": "tf_slim.training",
}


class _Contrib(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in _MODULES:
            raise AttributeError(
                f"tensorflow.contrib has no {name!r} here: Headrace stands in for TensorFlow, and "
                f"has of contrib what tf-slim has: {', '.join(sorted(_MODULES))}"
            )
        return importlib.import_module(f"tensorflow.contrib.{name}")


def module(inside: str) -> ModuleType | None:
    """Return the module of a name below ``tensorflow.contrib``; None if there is none.

    Raises:
        ModuleNotFoundError: if tf-slim would have it and is not installed.
    """
    if not inside:
        made = _Contrib("tensorflow.contrib")
        made.__path__ = []
        return made
    if inside not in _MODULES:
        return None
    if importlib.util.find_spec("tf_slim") is None:
        raise ModuleNotFoundError(
            f"tensorflow.contrib.{inside} is found in the package tf-slim, which is not installed: "
            "pip install tf-slim",
            name=f"tensorflow.contrib.{inside}",
        )
    return importlib.import_module(_MODULES[inside])
