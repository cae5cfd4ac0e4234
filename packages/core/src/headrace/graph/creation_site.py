"""Creation sites: which line of the user's program made an operation."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from types import FrameType

from headrace.graph.context_blocks import read, within
from headrace.records import dataclass

# Frames of these packages are Headrace's own; the first frame outside them is the user's.
LIBRARY_ROOTS = {
    "headrace",
    "headrace_autodiff",
    "headrace_cpu",
    "headrace_cuda",
    "headrace_data",
    "headrace_io",
    "headrace_mpi",
    "headrace_serve",
    "headrace_tensorflow",
    "headrace_testing",
    "headrace_train",
}
_TRANSPARENT = {"contextlib", "functools", "threading", "runpy"}


@dataclass(frozen=True, slots=True)
class Site:
    """A file and line number; the source text is looked up only when printed.

    Attributes:
        filename: The file, as Python names it.
        line: The line's number.
        text: What stands there. None to look it up; a site that came from elsewhere brings it
            along, since the file may be another one here.
    """

    filename: str
    line: int
    text: str | None = field(default=None, compare=False)

    @property
    def source(self) -> str:
        """The text of the line, empty where it is not known."""
        if self.text is not None:
            return self.text
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        source = self.source
        place = f"{self.filename}:{self.line}"
        return f"{place}: {source}" if source else place


UNKNOWN_SITE = Site("<unknown>", 0)
_PINNED: ContextVar[Site | None] = ContextVar("headrace_site", default=None)


@contextmanager
def pinned_site(site: Site) -> Iterator[None]:
    """Let all operations made in the block have one creation site.

    For code that builds on behalf of one line of the user's program, and calls into plugins.
    """
    with within(_PINNED, site):
        yield


def is_library(frame: FrameType) -> bool:
    """Whether a frame is Headrace's own, or that of Python's modules through which it calls."""
    root = frame.f_globals.get("__name__", "").partition(".")[0]
    return (
        root in LIBRARY_ROOTS
        or root in _TRANSPARENT
        or frame.f_code.co_filename.startswith("<headrace")
    )


def user_site() -> Site:
    """Return the innermost line on the stack that is not Headrace's own."""
    pinned = read(_PINNED)
    if pinned is not None:
        return pinned
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not is_library(frame):
            return Site(frame.f_code.co_filename, frame.f_lineno)
        if frame.f_back is None:
            break
        frame = frame.f_back
    return UNKNOWN_SITE
