"""Environment variables: the one module that reads them.

Each is documented in its row of ``VARIABLES``; ``python -m headrace doctor`` prints them.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from headrace.errors import ConfigError

VARIABLES = {
    "HEADRACE_DISABLE_PLUGINS": "comma-separated names of plugins that are not loaded",
    "HEADRACE_DATA": "folder of data sets, with a sub-folder for each (mnist, ...)",
    "HEADRACE_CPU_DEVICES": "number of cpu devices that a process has (default 1)",
    "HEADRACE_START_TIMEOUT": "seconds within which all ranks of a cluster must have started",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The environment's settings, read once.

    Attributes:
        disabled_plugins: Names of entry points that are not loaded.
        data_folder: Where data sets are looked for, None where unset.
        cpu_devices: Number of cpu devices.
        start_timeout_s: Seconds that a cluster may take to start.
    """

    disabled_plugins: frozenset[str] = frozenset()
    data_folder: str | None = None
    cpu_devices: int = 1
    start_timeout_s: float = 60.0


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
    )


def _number(name: str, default: float, *, whole: bool = False) -> float:
    text = os.environ.get(name, "")
    if not text:
        return default
    try:
        value = float(int(text) if whole else float(text))
    except ValueError:
        value = -1.0
    if value <= 0:
        expected = "a whole number" if whole else "a number"
        raise ConfigError(f"{name} must be {expected} above 0, got {text!r}")
    return value
