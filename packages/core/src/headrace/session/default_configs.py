"""The settings of sessions that are opened on a target without settings of their own."""

from __future__ import annotations

from typing import Any

from headrace.session.config import Config

_CONFIGS: dict[str, Config] = {}


def set_default_config(target: str, config: Config | None) -> None:
    """Say with which settings sessions on a target run that are given none.

    Args:
        target: The target.
        config: The settings; None for the defaults again.
    """
    if config is None:
        _CONFIGS.pop(target, None)
    else:
        _CONFIGS[target] = config


def default_config(target: Any) -> Config | None:
    """Return the settings of sessions on a target that are given none, None for the defaults."""
    return _CONFIGS.get(target) if isinstance(target, str) else None
