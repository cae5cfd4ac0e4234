"""What is said about compiling: one line in a program, for the first step that needs it.

What is compiled for further steps, and for other shapes, is told at level DEBUG. Lines go to the
logger ``headrace`` at level INFO otherwise. Where the program has not configured logging, they are
seen on stderr; ``HEADRACE_QUIET=1`` silences them.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

from headrace.extend.settings import QUIET

_said: set[str] = set()
_told = False
_lock = threading.Lock()
_current = threading.local()


@dataclass(slots=True)
class Compiled:
    """What was compiled.

    Attributes:
        kernels: How many kernels were compiled.
        seconds: How long that took.
        cached: How many others came from the cache on disk.
    """

    kernels: int = 0
    seconds: float = 0.0
    cached: int = 0

    def __str__(self) -> str:
        """Return the line that tells of it."""
        number = f"{self.kernels} kernel{'s' * (self.kernels != 1)}"
        rest = f", {self.cached} from the cache" if self.cached else ""
        return f"compiled {number} in {self.seconds:.1f} s{rest}"


@contextlib.contextmanager
def compiling() -> Iterator[Compiled]:
    """Collect what this thread compiles inside, and tell of it once at the end.

    Inside another one, the outer one tells. Nothing is said where nothing was compiled.
    """
    outer: Compiled | None = getattr(_current, "work", None)
    if outer is not None:
        yield outer
        return
    work = _current.work = Compiled()
    try:
        yield work
    finally:
        _current.work = None
        if work.kernels:
            tell(work)


@contextlib.contextmanager
def compiling_for(work: Compiled) -> Iterator[None]:
    """Add what this thread compiles inside to ``work``, of which another one tells."""
    outer: Compiled | None = getattr(_current, "work", None)
    _current.work = work
    try:
        yield
    finally:
        _current.work = outer


def tell(work: Compiled) -> None:
    """Tell of what was compiled: the user the first time, and later only who asks for more."""
    global _told
    with _lock:
        first, _told = not _told, True
    if first:
        say(str(work))
    else:
        _logger().debug("%s", work)


def say(text: str) -> None:
    """Tell the user, on stderr where logging is not configured."""
    if QUIET.read():
        return
    _logger().info(text)


def _logger() -> logging.Logger:
    """Return the logger of compilation, which writes by itself where logging is not configured."""
    logger, above = logging.getLogger("headrace.compiler"), logging.getLogger("headrace")
    if above.hasHandlers():
        for handler in [h for h in logger.handlers if isinstance(h, _StderrHandler)]:
            logger.removeHandler(handler)
            logger.setLevel(logging.NOTSET)
    elif not logger.handlers:
        logger.addHandler(_StderrHandler())
        if above.level == logging.NOTSET:
            logger.setLevel(logging.INFO)
    return logger


def notice(text: str) -> None:
    """Tell the user once in the life of the process."""
    with _lock:
        if text in _said:
            return
        _said.add(text)
    say(text)


class _StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to what ``sys.stderr`` is when a line comes."""

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self.setFormatter(logging.Formatter("headrace: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        self.setStream(sys.stderr)
        super().emit(record)
