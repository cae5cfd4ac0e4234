"""What there is of ``tf.contrib``: what lives on in tf-slim, and what is public elsewhere."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any, final

from headrace_tensorflow import names

# What is below ``tf.contrib`` -> where tf-slim has it, with all that is inside.
_SLIM = {
    "framework": "tf_slim",
    "framework.python.ops": "tf_slim.ops",
    "layers": "tf_slim.layers",
    "layers.python.layers": "tf_slim.layers",
    "losses": "tf_slim.losses",
    "losses.python.losses": "tf_slim.losses",
    "metrics": "tf_slim.metrics",
    "slim": "tf_slim",
    "slim.python.slim": "tf_slim",
    "training": "tf_slim.training",
}
# Names that are neither in tf-slim nor in the table -> the private module, or ours, with them.
_ELSEWHERE = {
    "framework": {
        "get_name_scope": "framework.ops",
        "list_variables": "training.checkpoint_utils",
        "load_checkpoint": "training.checkpoint_utils",
        "load_variable": "training.checkpoint_utils",
        "nest": "util",
        "smart_cond": "framework.smart_cond",
        "smart_constant_value": "framework.smart_cond",
    },
    "metrics": {"confusion_matrix": "ops.confusion_matrix"},
}


def _modules() -> list[str]:
    # Those of one word: what stands in for them is said in messages.
    return sorted({name for name in (*_SLIM, *names.contrib()) if "." not in name})


class _Contrib(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in _modules():
            raise AttributeError(
                f"tensorflow.contrib has no {name!r} here: Headrace stands in for TensorFlow, and "
                "has of contrib what tf-slim has, and what is public under another name: "
                f"{', '.join(_modules())}"
            )
        return importlib.import_module(f"tensorflow.contrib.{name}")


@final
class _Part(ModuleType):
    """A module of contrib: the names of tf-slim, if that has it, and those that are public."""

    def __init__(self, name: str, slim: ModuleType | None) -> None:
        """Take the name below ``tf.contrib``, and the module of tf-slim."""
        super().__init__(f"tensorflow.contrib.{name}")
        self.__path__: list[str] = []
        self._inside = name
        self._slim = slim

    def __getattr__(self, name: str) -> Any:
        """Return what is there under a name.

        Raises:
            AttributeError: if nothing is.
        """
        if name.startswith("__"):
            raise AttributeError(name)
        if hasattr(self._slim, name):
            return getattr(self._slim, name)
        public = names.contrib().get(self._inside, {}).get(name)
        if public is not None:
            return names.public(public)
        elsewhere = _ELSEWHERE.get(self._inside, {}).get(name)
        if elsewhere is not None:
            return getattr(importlib.import_module(f"tensorflow.python.{elsewhere}"), name)
        try:
            return importlib.import_module(f"{self.__name__}.{name}")
        except ModuleNotFoundError:
            raise AttributeError(
                f"{self.__name__} has no {name!r} here: Headrace stands in for TensorFlow, and has "
                "of contrib what tf-slim has, and what is public under another name"
            ) from None

    def __dir__(self) -> list[str]:
        named = (names.contrib().get(self._inside, {}), _ELSEWHERE.get(self._inside, {}))
        return sorted({*vars(self), *dir(self._slim), *named[0], *named[1]})


def module(inside: str) -> ModuleType | None:
    """Return the module of a name below ``tensorflow.contrib``; None if there is none.

    Raises:
        ModuleNotFoundError: if tf-slim would have it and is not installed.
    """
    if not inside:
        made = _Contrib("tensorflow.contrib")
        made.__path__ = []
        return made
    slim = _of_slim(inside)
    if inside in _ELSEWHERE or inside in names.contrib():
        return _Part(inside, slim)
    if slim is None and any(name.startswith(f"{inside}.") for name in _SLIM):
        return _Part(inside, None)
    return slim


def _of_slim(inside: str) -> ModuleType | None:
    """Return the module of tf-slim that stands for one of contrib; None if none does."""
    within = [name for name in _SLIM if f"{inside}.".startswith(f"{name}.")]
    if not within:
        return None
    if importlib.util.find_spec("tf_slim") is None:
        raise ModuleNotFoundError(
            f"tensorflow.contrib.{inside} is found in the package tf-slim, which is not installed: "
            "pip install tf-slim",
            name=f"tensorflow.contrib.{inside}",
        )
    nearest = max(within, key=len)
    full = f"{_SLIM[nearest]}{inside.removeprefix(nearest)}"
    return importlib.import_module(full) if importlib.util.find_spec(full) is not None else None
