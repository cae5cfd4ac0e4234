"""What a program gives a session for its settings, in either form, made the one that it uses."""

from __future__ import annotations

from typing import Any

from headrace.errors import ConfigError, ConfigTypeError, shown
from headrace.session.config import Config


def as_config(config: Any) -> Config:
    """Return the settings of a session in the form that it uses.

    Args:
        config: An ``hr.Config``, an ``hr.ConfigProto``, or None for the defaults.

    Raises:
        ConfigError: if it is none of these, or asks for what there is not.
    """
    if config is None:
        return Config()
    if isinstance(config, Config):
        return config
    # lazy: who has such a message has imported it
    from headrace.session.config_proto import ConfigProto, config_of

    if isinstance(config, ConfigProto):
        return config_of(config)
    raise ConfigTypeError(
        f"config must be an hr.Config or an hr.ConfigProto, got {shown(config)}; as in "
        "hr.Config(threads=2)"
    )


def check_shared(config: Any) -> None:
    """Refuse a session of a cluster that is to have state of its own.

    Raises:
        ConfigError: if it is.
    """
    if not isinstance(config, Config) and getattr(config, "isolate_session_state", False):
        raise ConfigError(
            "isolate_session_state asks for variables of the session's own, and sessions of a "
            "cluster share those of its tasks; leave it out, or open a session without a target"
        )
