"""Recording CuPy's public interface, so that kernels can be checked where CuPy is not installed.

``python -m headrace_cuda.testing`` writes ``cupy_api.txt`` anew from the installed CuPy.
Each line is a name, what it is, and the names of a function's parameters; ``*`` and ``**`` stand
for any number of further ones.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
from importlib.resources import files
from typing import Any

FILE = "cupy_api.txt"
MODULES = ("", "fft", "linalg", "lib", "lib.stride_tricks")
# What of SciPy's modules for CuPy can be imported without a GPU's libraries.
SPECIAL = "cupyx.scipy.special"
_UFUNC_PARAMETERS = ["out", "dtype", "casting"]


def describe_cupy() -> list[str]:
    """Return the lines of the record."""
    import cupy

    lines = [f"# cupy {cupy.__version__}"]
    for module in MODULES:
        owner = cupy
        for part in module.split(".") if module else ():
            owner = getattr(owner, part)
        prefix = f"{module}." if module else ""
        for name in sorted(vars(owner)):
            if not name.startswith("_"):
                line = _line(cupy, f"{prefix}{name}", getattr(owner, name))
                lines.extend([line] if line else [])
    owner = importlib.import_module(SPECIAL)
    for name in sorted(vars(owner)):
        line = "" if name.startswith("_") else _line(cupy, f"{SPECIAL}.{name}", vars(owner)[name])
        lines.extend([line] if line else [])
    members = [name for name in sorted(dir(cupy.ndarray)) if not name.startswith("_")]
    lines.extend(_member(f"ndarray.{name}", getattr(cupy.ndarray, name)) for name in members)
    return lines


def _line(cupy: Any, name: str, value: Any) -> str:
    if isinstance(value, types.ModuleType):
        return f"{name} module" if name in MODULES else ""
    if isinstance(value, cupy.ufunc):
        return " ".join([name, "ufunc", *_UFUNC_PARAMETERS])
    if isinstance(value, type):
        return f"{name} type"
    if callable(value):
        return " ".join([name, "function", *_parameters(value)])
    return f"{name} constant"


def _member(name: str, value: Any) -> str:
    if not callable(value):
        return f"{name} attribute"
    return " ".join([name, "method", *_documented(value)])


def _parameters(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return _documented(function)
    stars = {"VAR_KEYWORD": "**", "VAR_POSITIONAL": "*"}
    return [stars.get(p.kind.name, p.name) for p in parameters]


def _documented(function: Any) -> list[str]:
    """Return the parameters of a compiled function, from the first line of its docstring."""
    first = (function.__doc__ or "").split("\n", 1)[0]
    match = re.fullmatch(r"[\w.]+\((.*?)\)(?: -> \S+)?", first)
    if match is None:
        return ["**"]
    names = [part.split("=")[0].split()[-1] for part in match[1].split(",") if part.strip()]
    stars = {name: "**" if name.startswith("**") else "*" for name in names if name[0] == "*"}
    return [stars.get(name, name) for name in names if name not in ("self", "*")]


Record = dict[str, tuple[str, tuple[str, ...]]]


def read_record() -> Record:
    """Return for each recorded name what it is, and its parameters in order."""
    text = files("headrace_cuda.testing").joinpath(FILE).read_text(encoding="utf-8")
    record: Record = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, kind, *parameters = line.split()
            record[name] = (kind, tuple(parameters))
    return record


def recorded_version() -> str:
    """Return the version of the CuPy that was recorded."""
    text = files("headrace_cuda.testing").joinpath(FILE).read_text(encoding="utf-8")
    return text.split("\n", 1)[0].removeprefix("# cupy ")


def main() -> None:
    """Write the record anew."""
    from pathlib import Path

    path = Path(__file__).parent / FILE
    path.write_text("\n".join(describe_cupy()) + "\n", encoding="utf-8")
