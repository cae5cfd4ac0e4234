"""The libraries that take part, and how to see whether they are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """A library that takes part in benchmarks.

    Attributes:
        title: its name in the tables.
        needs: modules that must be importable; the first is the library's own.
        distributions: distributions that may provide it; the first installed one's version
            is shown.
    """

    title: str
    needs: tuple[str, ...]
    distributions: tuple[str, ...]

    def installed(self) -> bool:
        """Tell whether all needed modules are there, without importing them."""
        return all(importlib.util.find_spec(name) is not None for name in self.needs)

    def version(self) -> str:
        """Return the installed version, "" if it is unknown."""
        for distribution in self.distributions:
            try:
                return importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                continue
        return ""


HEADRACE = "headrace"

PEERS = {
    HEADRACE: Peer(
        "headrace",
        ("headrace", "headrace_cpu", "headrace_autodiff", "headrace_train"),
        ("headrace-core",),
    ),
    "numpy": Peer("numpy", ("numpy",), ("numpy",)),
    "torch": Peer("torch", ("torch",), ("torch",)),
    "tensorflow": Peer("tensorflow", ("tensorflow",), ("tensorflow-cpu", "tensorflow")),
    "jax": Peer("jax", ("jax", "jaxlib"), ("jax",)),
}
