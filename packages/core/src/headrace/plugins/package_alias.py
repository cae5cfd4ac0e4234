"""Modules of core that stand for a module of a plugin package."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def provided(module: str, alias: str, package: str) -> Any:
    """Import the module of a plugin package that a module of core stands for.

    Args:
        module: Its own name, as in ``"headrace_testing"``.
        alias: The name that it has under ``headrace``.
        package: The distribution that brings it.

    Raises:
        ModuleNotFoundError: if the package is not installed; says how to install it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"{alias} is provided by the package {package}: pip install {package}", name=alias
        ) from None
