"""The libraries to compare with, imported where they are used: neither needs to be there."""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from typing import Any

MODULES = {
    "jax": "jax",
    "jnp": "jax.numpy",
    "lax": "jax.lax",
    "jnn": "jax.nn",
    "jops": "jax.ops",
    "jsp": "jax.scipy.special",
    "jsl": "jax.scipy.linalg",
    "torch": "torch",
    "F": "torch.nn.functional",
}


@cache
def _load(name: str) -> Any:
    if name.startswith("jax"):
        jax = importlib.import_module("jax")
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")
    return importlib.import_module(name)


class Later:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(_load(self._name), name)


jax: Any = Later("jax")
jnp: Any = Later("jax.numpy")
lax: Any = Later("jax.lax")
jnn: Any = Later("jax.nn")
jops: Any = Later("jax.ops")
jsp: Any = Later("jax.scipy.special")
jsl: Any = Later("jax.scipy.linalg")
torch: Any = Later("torch")
F: Any = Later("torch.nn.functional")


def installed(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def full_name(short: str) -> str:
    """Return the name with the module's name written out: ``jnp.exp`` -> ``jax.numpy.exp``."""
    head, _, rest = short.partition(".")
    return f"{MODULES[head]}.{rest}"


def resolve(short: str) -> Any:
    head, _, rest = short.partition(".")
    found = _load(MODULES[head])
    for part in rest.split("."):
        found = getattr(found, part)
    return found
