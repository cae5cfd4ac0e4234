"""Event files that several writers share: those of one session and one folder."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, final

from headrace_train.summary.event_writer import EventWriter

# Taken again by a writer that is collected while another one is looked up.
_LOCK = threading.RLock()


@final
class SharedWriter:
    """A writer of an event file, and how many use it.

    Attributes:
        writer: The writer.
    """

    __slots__ = ("_forget", "_users", "writer")

    def __init__(self, writer: EventWriter, forget: Callable[[], object]) -> None:
        self.writer = writer
        self._forget = forget
        self._users = 1

    def join(self) -> SharedWriter:
        """Use it, too."""
        self._users += 1
        return self

    def leave(self) -> None:
        """Use it no longer; the last one closes it.

        Raises:
            OpError: if the disk refuses events, which are lost then.
        """
        with _LOCK:
            self._users -= 1
            last = not self._users
            if last:
                self._forget()
        if last:
            self.writer.close()


# Of a session, by the folder of the file.
_OPEN: weakref.WeakKeyDictionary[Any, dict[Path, SharedWriter]] = weakref.WeakKeyDictionary()


def shared_writer(session: Any, folder: Path, make: Callable[[], EventWriter]) -> SharedWriter:
    """Return the writer of a session to a folder, or a new one.

    Args:
        session: The session; None for a writer that is not shared.
        folder: The folder of the file.
        make: Makes a writer.
    """
    if session is None:
        return SharedWriter(make(), lambda: None)
    with _LOCK:
        known = _OPEN.setdefault(session, {})
        if folder in known:
            return known[folder].join()
        made = known[folder] = SharedWriter(make(), lambda: known.pop(folder))
        return made
