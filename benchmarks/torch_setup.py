"""Sets PyTorch up alike for all workloads, and compiles where that is possible."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import os
import shutil
from typing import Any

import torch

from benchmarks.participant import UnavailableError

_COMPILERS = ("g++", "clang++", "c++")


def set_threads(threads: int) -> None:
    """Let PyTorch compute with this many threads."""
    torch.set_num_threads(threads)


def compiled(function: Any) -> Any:
    """Return ``torch.compile(function)``.

    Raises:
        UnavailableError: if there is no C++ compiler, which its code for the CPU needs.
    """
    named = os.environ.get("CXX", "")
    if not any(shutil.which(name) for name in (named, *_COMPILERS) if name):
        raise UnavailableError("torch.compile needs a C++ compiler such as g++ on PATH")
    return torch.compile(function)
