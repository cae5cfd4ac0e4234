"""Folding Headrace's own frames away from the tracebacks of a program's mistakes.

A mistake is told in a few lines that name the line of the program; the frames between that line and
the one that noticed are Headrace's, and help only who works on it. They are left out where an
uncaught ``HeadraceError`` is shown: by Python, in threads, in notebooks, and on ranks. The error
itself, which a program may catch, keeps all of its frames until then. ``HEADRACE_TRACEBACK=full``
shows them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

from headrace.errors import HeadraceError, InternalError
from headrace.graph.creation_site import is_library

HINT = "headrace: frames of the library are left out; HEADRACE_TRACEBACK=full shows them\n"


def fold(error: BaseException) -> bool:
    """Leave the library's frames out of an error's traceback, and out of those of its causes.

    Errors other than ``HeadraceError`` stay as they are, and so does what is a fault of Headrace,
    and what no line outside of it called.

    Args:
        error: An error that nothing caught, and that is about to be shown.

    Returns:
        Whether frames were left out.
    """
    # lazy: settings are read when something is shown
    from headrace.settings import TRACEBACK

    if not isinstance(error, HeadraceError) or isinstance(error, InternalError):
        return False
    if TRACEBACK.is_wrong() or TRACEBACK.read() == "full":
        return False
    frames = list(_frames(error.__traceback__))
    kept = list(_outside(error))
    if not kept or len(kept) == len(frames):
        return False
    seen: set[int] = set()
    waiting: list[BaseException] = [error]
    while waiting:
        link = waiting.pop()
        seen.add(id(link))
        link.__traceback__ = _joined(list(_outside(link)))
        cause = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
        if cause is None or id(cause) in seen:
            continue
        if not all(_is_of_python(step.tb_frame) for step in _outside(cause)):
            waiting.append(cause)
        else:
            # What the library met inside, and told in the message.
            link.__cause__ = None
            link.__suppress_context__ = True
    return True


def _frames(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _outside(error: BaseException) -> Iterator[TracebackType]:
    """Yield the steps of a traceback that are outside of the library."""
    return (s for s in _frames(error.__traceback__) if not is_library(s.tb_frame))


def _is_of_python(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in sys.stdlib_module_names


def _joined(steps: list[TracebackType]) -> TracebackType | None:
    trace = None
    for step in reversed(steps):
        trace = TracebackType(trace, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return trace


def install() -> None:
    """Fold frames wherever this process shows errors from now on; what shows them stays."""
    _fold_before_hook()
    _fold_before_thread_hook()
    _fold_in_notebooks()


def _fold_before_hook() -> None:
    show = sys.excepthook

    def excepthook(
        kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        folded = fold(error)
        show(kind, error, error.__traceback__ if folded else trace)
        if folded and show is sys.__excepthook__ and sys.stderr is not None:
            sys.stderr.write(HINT)

    # Who asks whether the program has a hook of its own finds what this one calls.
    excepthook.__wrapped__ = show  # type: ignore[attr-defined]
    sys.excepthook = excepthook


def _fold_before_thread_hook() -> None:
    show: Callable[[Any], object] = threading.excepthook

    def excepthook(args: Any) -> None:
        if args.exc_value is not None and fold(args.exc_value):
            args = threading.ExceptHookArgs(
                (args.exc_type, args.exc_value, args.exc_value.__traceback__, args.thread)
            )
        show(args)

    excepthook.__wrapped__ = show  # type: ignore[attr-defined]
    threading.excepthook = excepthook


def _fold_in_notebooks() -> None:
    """Let IPython, which shows errors by itself, show folded ones, where it runs the program."""
    ask = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if ask is None else ask()
    if shell is None or not hasattr(shell, "set_custom_exc"):
        return

    def show(
        shell: Any,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
        tb_offset: int | None = None,
    ) -> None:
        if fold(error):
            trace = error.__traceback__
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)

    shell.set_custom_exc((HeadraceError,), show)
