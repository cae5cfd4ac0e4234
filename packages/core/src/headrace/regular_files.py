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
