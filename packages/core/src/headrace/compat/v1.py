"""The names of ``hr`` once more, as ``hr.compat.v1``.

Programs that were written for several versions of TensorFlow name the interface of version 1 so:
``tf.compat.v1.placeholder``. That interface is the one of ``hr`` itself, so each name is looked up
there when a program asks for it, and is the very same thing.
"""

import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from headrace import *  # noqa: F403 - it is the same interface

# A package without a folder: what is imported from inside of it is found by its name in ``hr``.
__path__: list[str] = []


def __getattr__(name: str) -> _Any:
    """Return what ``hr`` has under a public name."""
    if name.startswith("_") and name not in ("__all__", "__version__"):
        raise AttributeError(f"headrace.compat.v1 has no attribute {name!r}")
    return getattr(_sys.modules["headrace"], name)


def __dir__() -> list[str]:
    return [name for name in dir(_sys.modules["headrace"]) if not name.startswith("_")]
