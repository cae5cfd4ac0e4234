"""Errors on their way between ranks: as text, and raised again as what they were.

Of an error's class only the name of its nearest kin in ``headrace.errors`` travels, so reading
one never makes an object of a class that a sender chose.
"""

from __future__ import annotations

import json
import traceback
from typing import final

from headrace import errors
from headrace.errors import CancelledError, ClusterError, HeadraceError, NodeDef, OpError, shorten

# Together below what travels in one message with its header.
MAX_TEXT = 8000
MAX_TRACE = 12000
MAX_NAME = 1000


@final
class StepAbortedError(CancelledError):
    """What the tasks of a step stop with because it failed elsewhere: never the cause itself."""


@final
class RemoteTraceback(Exception):  # noqa: N818 - it shows where an error was raised
    """The traceback of another rank, shown as the cause of the error that came from it."""

    def __str__(self) -> str:
        """Return the traceback as the other rank would have printed it."""
        return f"\n{self.args[0]}"


def pack(error: BaseException) -> bytes:
    """Return an error as bytes."""
    kin = next(c.__name__ for c in type(error).__mro__ if _known(c.__name__) or c is BaseException)
    text = str(error)
    if isinstance(error, MemoryError):
        # As where a kernel of this process has no memory: not the end of the task.
        kin, text = "ResourceExhaustedError", text or "the memory has no room"
    elif kin == "BaseException":
        kin, text = "ClusterError", f"{type(error).__name__}: {text}"
    trace = ""
    source = error.__cause__ or error
    if not isinstance(source, HeadraceError):
        # A kernel's or our own mistake: where it was made helps. The innermost part says most.
        trace = "".join(traceback.format_exception(source))[-MAX_TRACE:]
    consequence = isinstance(error, StepAbortedError)
    fields = {"kind": kin, "text": text[:MAX_TEXT], "trace": trace, "consequence": consequence}
    known = error.node_def if isinstance(error, OpError) else None
    if isinstance(known, NodeDef):
        # Without the inputs, of which there may be any number.
        fields["node"] = [known.name[:MAX_NAME], known.op, known.device]
    return json.dumps(fields).encode()


def unpack(data: bytes, where: str) -> HeadraceError:
    """Return the error in ``data``, which says that it comes from ``where``.

    Args:
        data: What ``pack`` made.
        where: The task, as in ``"/job:ps/task:0 (rank 0)"``.
    """
    fields = json.loads(data)
    if fields["consequence"]:
        return StepAbortedError(fields["text"])
    kind = _known(fields["kind"]) or ClusterError
    first, *rest = fields["text"].splitlines() or [""]
    error = kind(shorten([first, f"  on {where}", *rest]))
    if isinstance(error, OpError) and "node" in fields:
        name, op, device = map(str, fields["node"])
        # The session of the program finds the operation by its name.
        error.concerns(None, NodeDef(name, op, (), device))
    if fields["trace"]:
        error.__cause__ = RemoteTraceback(fields["trace"])
    return error


def _known(name: str) -> type[HeadraceError] | None:
    kind = getattr(errors, name, None)
    return kind if isinstance(kind, type) and issubclass(kind, HeadraceError) else None
