"""The module ``tensorflow``: the names of ``headrace``, and what only TensorFlow's root has."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace
from typing import Any, final

import headrace as hr

# What programs compare, to choose between interfaces.
VERSION = "1.15.5"


@final
class Root(ModuleType):
    """The names of ``headrace``, looked up when a program asks for them."""

    def __init__(self, name: str) -> None:
        """Take the name under which it is imported."""
        super().__init__(name, hr.__doc__)
        self.__path__: list[str] = []
        self.__version__ = VERSION
        for word in ("VERSION", "GIT_VERSION"):
            setattr(self, word, VERSION)
        self.COMPILER_VERSION = sys.version
        self.version = SimpleNamespace(
            VERSION=VERSION, GIT_VERSION=VERSION, COMPILER_VERSION=sys.version
        )

    def __getattr__(self, name: str) -> Any:
        """Return what Headrace has under a name of TensorFlow's root.

        Raises:
            AttributeError: if there is no such name.
        """
        if name in ("app", "flags"):
            return getattr(importlib.import_module("headrace_tensorflow.programs"), name)
        if name in ("contrib", "python"):
            return importlib.import_module(f"{self.__name__}.{name}")
        if name == "__all__":
            # For "from tensorflow import *".
            return [word for word in dir(self) if not word.startswith("_")]
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(hr, name)
        except AttributeError as error:
            raise AttributeError(
                f"tensorflow has no {name!r} here: Headrace stands in for TensorFlow, and {error}",
                name=name,
                obj=self,
            ) from None

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *dir(hr), "app", "flags"})
