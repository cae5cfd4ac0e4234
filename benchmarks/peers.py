"""The libraries that take part, and how to see whether they are installed."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Peer:
    """A library that takes part in benchmarks.

    Attributes:
        title: its name in the tables.
        needs: modules that must be importable; the first is the library's own.
        distributions: distributions that may provide it; the first installed one's version
            is shown.
        parts: distributions that it computes with where they are installed.
        library: a shared library in place of modules, looked for where wheels put it.
    """

    title: str
    needs: tuple[str, ...]
    distributions: tuple[str, ...]
    parts: tuple[str, ...] = ()
    library: str = ""

    def installed(self) -> bool:
        """Tell whether all needed modules are there, without importing them."""
        if self.library and not library_path(self.library).exists():
            return False
        return all(importlib.util.find_spec(name) is not None for name in self.needs)

    def version(self) -> str:
        """Return the installed version, "" if it is unknown."""
        return next(filter(None, map(_version, self.distributions)), "")

    def parts_in_words(self) -> str:
        """Say which parts it computes with, and which are not installed."""
        return ", ".join(f"{part} {_version(part) or NOT_INSTALLED}" for part in self.parts)


def library_path(name: str) -> Path:
    """Return where a wheel installs a shared library of its own."""
    return Path(sys.prefix) / "lib" / name


def _version(distribution: str) -> str:
    """Return a distribution's version, "" if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


NOT_INSTALLED = "not installed"
HEADRACE = "headrace"
ONEDNN_LIBRARY = "libdnnl.so.3"

PEERS = {
    HEADRACE: Peer(
        "headrace",
        ("headrace", "headrace_cpu", "headrace_autodiff", "headrace_train"),
        ("headrace-core",),
        parts=("llvmlite", "onednn-cpu-gomp"),
    ),
    "numpy": Peer("numpy", ("numpy",), ("numpy",)),
    "torch": Peer("torch", ("torch",), ("torch",)),
    "tensorflow": Peer("tensorflow", ("tensorflow",), ("tensorflow-cpu", "tensorflow")),
    "jax": Peer("jax", ("jax", "jaxlib"), ("jax",)),
    # The library of the limits; nobody's competitor.
    "onednn": Peer("oneDNN", (), ("onednn-cpu-gomp",), library=ONEDNN_LIBRARY),
}
