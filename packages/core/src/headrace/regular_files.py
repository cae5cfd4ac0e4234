"""Opening what is a file like any other: a pipe could block, and a device need not end."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path


def open_regular(path: Path) -> io.BufferedReader:
    """Open a file for reading, and nothing else.

    Args:
        path: The file; links are followed.

    Raises:
        OSError: if it cannot be opened, or is no regular file.
    """
    # Opened without waiting, and then looked at: what the name means may change in between.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:
        # NUL, or half of a surrogate pair: no file is named so.
        raise OSError(errno.EINVAL, str(error)) from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            what = "a folder" if stat.S_ISDIR(mode) else "no regular file"
            raise OSError(errno.EINVAL, f"Is {what}")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def is_device(path: Path) -> bool:
    """Tell whether something is neither file nor folder: a device, a pipe or a socket.

    Files that are written as a whole are put in the place of what had their name. Of devices such
    as ``/dev/null``, which others use, root would rob the machine in that way.

    Args:
        path: What may be there or not; links are followed.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
