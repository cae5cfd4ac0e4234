"""Messages to people, at levels, as ``hr.logging``: Python's logger ``"headrace"``."""

import logging as _logging
from typing import Any as _Any

from headrace.arguments import nesting as _nesting
from headrace.arguments import whole as _whole
from headrace.errors import AttributeValueError as _AttributeValueError
from headrace.errors import shown as _shown

DEBUG = _logging.DEBUG
INFO = _logging.INFO
WARN = _logging.WARNING
ERROR = _logging.ERROR
FATAL = _logging.FATAL

_LOGGER = _logging.getLogger("headrace")
_seen: dict[str, int] = {}
# Handlers write what has no name by its number.
_MOST_LEVEL = 1 << 31


def get_logger() -> _logging.Logger:
    """Return the logger. It writes to the standard error unless the program configured logging."""
    if not _LOGGER.handlers and not _logging.getLogger().handlers:
        handler = _logging.StreamHandler()
        handler.setFormatter(_logging.Formatter("%(levelname)s:%(name)s:%(message)s"))
        _LOGGER.addHandler(handler)
        _LOGGER.propagate = False
    return _LOGGER


def get_verbosity() -> int:
    """Return the least level that is written; ``WARN`` unless it was set."""
    return _LOGGER.getEffectiveLevel()


def set_verbosity(v: _Any) -> None:
    """Say what the least level is that is written.

    Args:
        v: A level, such as ``hr.logging.INFO`` or ``"INFO"``.

    Raises:
        ArgumentTypeError: if it is neither a whole number nor a string.
        AttributeValueError: if no level has this name.
    """
    known = _logging.getLevelNamesMapping()
    if isinstance(v, str) and v not in known:
        expected = ", ".join(sorted(known, key=known.__getitem__))
        raise _AttributeValueError(f"v must be a level, one of {expected}, got {_shown(v)}")
    get_logger().setLevel(v if isinstance(v, str) else _whole(v, "v"))


def log(level: int, msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write a message of a level; ``msg % args`` is formatted only where it is written."""
    get_logger().log(_whole(level, "level", -_MOST_LEVEL, _MOST_LEVEL), msg, *args, **kwargs)


def debug(msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write a message for those who look for faults."""
    get_logger().debug(msg, *args, **kwargs)


def info(msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write a message about what goes as it should."""
    get_logger().info(msg, *args, **kwargs)


def warning(msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write a warning."""
    get_logger().warning(msg, *args, **kwargs)


warn = warning


def error(msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write what failed."""
    get_logger().error(msg, *args, **kwargs)


def fatal(msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write what ends the program; it does not end it."""
    get_logger().critical(msg, *args, **kwargs)


def TaskLevelStatusMessage(msg: str) -> None:  # noqa: N802 - TensorFlow's name
    """Write what failed, as ``error`` does."""
    error(msg)


def vlog(level: int, msg: str, *args: _Any, **kwargs: _Any) -> None:
    """Write a message of a level, as ``log`` does."""
    log(level, msg, *args, **kwargs)


def log_if(level: int, msg: str, condition: _Any, *args: _Any) -> None:
    """Write a message where a condition holds."""
    if condition:
        log(level, msg, *args)


def log_every_n(level: int, msg: str, n: int, *args: _Any) -> None:
    """Write a message the first time it comes, and every ``n``-th time after."""
    every = _whole(n, "n", 1)
    log_if(level, msg, _count(msg) % every == 0, *args)


def log_first_n(level: int, msg: str, n: int, *args: _Any) -> None:
    """Write a message the first ``n`` times that it comes."""
    first = _whole(n, "n")
    log_if(level, msg, _count(msg) < first, *args)


def _count(msg: str) -> int:
    """Return how often a message came before."""
    with _nesting("msg"):
        count = _seen[msg] = _seen.get(msg, -1) + 1
    return count


def flush() -> None:
    """Write what waits in buffers."""
    for handler in get_logger().handlers:
        handler.flush()
