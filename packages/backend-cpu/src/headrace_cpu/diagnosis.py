"""What ``python -m headrace doctor`` says of the cpu device."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

# What sets the number of threads of a BLAS, in the order in which OpenBLAS and MKL look.
_THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


def diagnose() -> dict[str, object]:
    """Return facts and problems."""
    problems: list[tuple[str, str]] = []
    threads = {name: os.environ[name] for name in _THREAD_VARIABLES if name in os.environ}
    cores = len(os.sched_getaffinity(0))
    facts: dict[str, object] = {
        "title": "cpu",
        "cores": cores,
        "numpy": np.__version__,
        "blas": _blas(),
        "blas threads": ", ".join(f"{k}={v}" for k, v in threads.items()) or f"{cores} (unset)",
        "llvmlite": _version("llvmlite"),
        "onednn": _onednn(problems),
    }
    if facts["blas"] == "none":
        problems.append(
            (
                "NumPy was built without a BLAS: matrix products and convolutions are slow",
                "install its wheel: pip install --force-reinstall --only-binary numpy numpy",
            )
        )
    facts["problems"] = problems
    return facts


def _onednn(problems: list[tuple[str, str]]) -> str:
    """Return which oneDNN there is; it is optional, but what is there should work."""
    # lazy: oneDNN is loaded by those who ask about it
    from headrace_cpu.onednn.library import find

    found = find()
    if found.library is not None:
        return f"{found.library.version} {found.library.path}"
    if found.reason != "not installed":
        problems.append(
            (
                f"oneDNN {found.reason}; convolutions run without it, several times slower",
                "pip install 'headrace-backend-cpu[onednn]', and unset HEADRACE_ONEDNN",
            )
        )
    return found.reason


def _blas() -> str:
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {})
    if not blas.get("found"):
        return "none"
    return f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "not installed"
