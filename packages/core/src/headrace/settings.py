"""Environment variables: the one module that reads them.

Each is documented in its row of ``VARIABLES``; ``python -m headrace doctor`` prints them.
``pathlib`` is imported where it is used: it would be a twentieth of the time of
``import headrace``, which reads no variable.
"""

from __future__ import annotations

import os
import re
from dataclasses import field
from typing import TYPE_CHECKING

from headrace.errors import ConfigError
from headrace.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = {
    "HEADRACE_DISABLE_PLUGINS": "comma-separated names of plugins that are not loaded",
    "HEADRACE_DATA": "folder of data sets, with a sub-folder for each (mnist, ...)",
    "HEADRACE_CPU_DEVICES": "number of cpu devices that a process has (default 1)",
    "HEADRACE_START_TIMEOUT": "seconds within which all ranks of a cluster must have started",
    "HEADRACE_CUDA_MEMORY_LIMIT": "memory that a process takes of each GPU at most, as in 8GiB",
    "HEADRACE_ONEDNN": "file of the oneDNN library (default the package onednn-cpu-gomp's)",
    "HEADRACE_CACHE": "folder of compiled kernels (default ~/.cache/headrace)",
    "HEADRACE_CACHE_SIZE": "size of the compiled kernels that are kept, as in 1GiB (256MiB)",
    "HEADRACE_THREADS": "number of threads that kernels use (default: the cores of the process)",
    "HEADRACE_EXECUTOR": "plan or plain: what runs steps unless hr.Config says (default plan)",
    "HEADRACE_COMPILE_AFTER": "steps before kernels are made, unless hr.Config says (default 2)",
    "HEADRACE_QUIET": "1 keeps reports of compiling and notices off stderr",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The environment's settings, read once.

    Attributes:
        disabled_plugins: Names of entry points that are not loaded.
        data_folder: Where data sets are looked for, None where unset.
        cpu_devices: Number of cpu devices.
        start_timeout_s: Seconds that a cluster may take to start.
        cuda_memory_limit: Bytes that a process takes of each GPU at most, None for all it needs.
        cache_folder: Where compiled kernels are kept.
        cache_size: Bytes of compiled kernels that are kept at most.
        threads: Number of threads that a kernel uses, None for what the process may use.
        quiet: Whether reports of compiling and notices are kept off stderr.
        onednn_library: The file of the oneDNN library, None to look for it.
        executor: What runs steps where a session does not say.
        compile_after: Steps before kernels are generated, where a session does not say.
    """

    disabled_plugins: frozenset[str] = frozenset()
    data_folder: str | None = None
    cpu_devices: int = 1
    start_timeout_s: float = 60.0
    cuda_memory_limit: int | None = None
    cache_folder: Path = field(default_factory=lambda: _cache_folder())
    cache_size: int = 256 * 2**20
    threads: int | None = None
    quiet: bool = False
    onednn_library: str | None = None
    executor: str = "plan"
    compile_after: int = 2


def read_settings() -> Settings:
    """Return the settings of the environment as it is now.

    Raises:
        ConfigError: if a variable has a value that it does not take.
    """
    disabled = os.environ.get("HEADRACE_DISABLE_PLUGINS", "")
    return Settings(
        disabled_plugins=frozenset(n.strip() for n in disabled.split(",") if n.strip()),
        data_folder=os.environ.get("HEADRACE_DATA") or None,
        cpu_devices=int(_number("HEADRACE_CPU_DEVICES", 1, whole=True)),
        start_timeout_s=_number("HEADRACE_START_TIMEOUT", 60),
        cuda_memory_limit=_size("HEADRACE_CUDA_MEMORY_LIMIT"),
        cache_folder=_cache_folder(),
        cache_size=_size("HEADRACE_CACHE_SIZE") or 256 * 2**20,
        threads=int(_number("HEADRACE_THREADS", 0, whole=True)) or None,
        quiet=os.environ.get("HEADRACE_QUIET", "") not in ("", "0"),
        onednn_library=os.environ.get("HEADRACE_ONEDNN") or None,
        executor=_choice("HEADRACE_EXECUTOR", ("plan", "plain")),
        compile_after=int(_number("HEADRACE_COMPILE_AFTER", 2, whole=True, least=0)),
    )


def _choice(name: str, choices: tuple[str, ...]) -> str:
    """Return the value of a variable, the first of ``choices`` where it is unset."""
    text = os.environ.get(name, "") or choices[0]
    if text not in choices:
        raise ConfigError(f"{name} must be {' or '.join(choices)}, got {text!r}")
    return text


def _cache_folder() -> Path:
    from pathlib import Path

    chosen = os.environ.get("HEADRACE_CACHE")
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(chosen or Path(base, "headrace")).expanduser()


_UNITS = {"": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def _size(name: str) -> int | None:
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(|KiB|MiB|GiB)", text)
    size = int(float(match[1]) * _UNITS[match[2]]) if match else 0
    if size <= 0:
        raise ConfigError(
            f"{name} must be a number of bytes above 0, or one of KiB, MiB or GiB as in 8GiB, got "
            f"{text!r}"
        )
    return size


def _number(name: str, default: float, *, whole: bool = False, least: float | None = None) -> float:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        value = float(int(text) if whole else float(text))
    except ValueError:
        value = -1.0
    if value < 0 or (least is None and value <= 0):
        expected = "a whole number" if whole else "a number"
        bound = "above 0" if least is None else f"of at least {least:g}"
        raise ConfigError(f"{name} must be {expected} {bound}, got {text!r}")
    return value
