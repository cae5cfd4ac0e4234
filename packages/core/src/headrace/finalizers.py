"""Finalizers: what is called when an object is collected, wherever the program is just then.

The collector runs wherever memory is asked for: up to Python 3.11 also inside of
``ContextVar.set``, while that copies the values of the thread's context. Whoever sets a context
variable then takes away what is being copied, and the process crashes; NumPy sets one in
``np.errstate``, and where it makes a generator of random numbers. So what is done runs in another
context than that of the thread.
"""

from __future__ import annotations

import contextvars
import weakref
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def apart(call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call something in a context of its own, whose variables are unset, as ``__del__`` must.

    Args:
        call: what to call.
        *args: passed on.
        **kwargs: passed on.

    Returns:
        What ``call`` returns.
    """
    return contextvars.Context().run(call, *args, **kwargs)


def when_collected(
    watched: Any, call: Callable[..., object], *args: Any, at_exit: bool = True
) -> weakref.finalize[..., Any]:
    """Have something called when an object is collected, in a context of its own.

    Args:
        watched: the object.
        call: what to call; it must not refer to the object.
        *args: passed on.
        at_exit: whether it is called at the end of the program where the object is still there.

    Returns:
        What calls it; calling that does it now, and never again.
    """
    made: weakref.finalize[..., Any] = weakref.finalize(watched, apart, call, *args)
    made.atexit = at_exit
    return made
