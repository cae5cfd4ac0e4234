"""Files that only the user who runs the program can have written, such as compiled code.

Whoever may write a file of native code, or the folder in which it is, runs code as the user who
loads it. So such files are read only where neither can be another's: file and folder belong to the
user and nobody else may write them, and all folders on the way belong to the user or to root, and
are writable by others only where the sticky bit keeps these from renaming what is not theirs.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_FOLDER_MODE = 0o700
_FILE_MODE = 0o600
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class SharedFileError(PermissionError):
    """A file or folder that another user may have written."""


def read_private(path: Path) -> bytes:
    """Return the content of a file of the user's own.

    Raises:
        SharedFileError: if another user may have written the file, or put it there.
        OSError: if it cannot be read, or is no regular file.
    """
    check_private(path.parent)
    # A pipe would wait for a writer, and a link may lead to what is not there for this.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode):
            raise SharedFileError(f"{path} is no regular file: remove it")
        _check(path, facts)
        return file.read()


def write_private(path: Path, content: bytes) -> None:
    """Write a file that only the user can read and write, as a whole or not at all.

    The folder is made where it is not there, for the user alone.

    Raises:
        SharedFileError: if another user may write the folder.
        OSError: if it cannot be written.
    """
    _make_folder(path.parent)
    check_private(path.parent)
    # pid and a random number: ranks on several machines may share the folder.
    draft = path.with_name(f"{path.stem}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, _FILE_MODE), "wb") as file:
            file.write(content)
        draft.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise


def check_private(folder: Path) -> None:
    """Refuse a folder in which another user may put or replace files.

    Raises:
        SharedFileError: if it is one; says what to do.
        OSError: if it is not there.
    """
    place = folder.resolve()
    _check(place, place.stat())
    for above in place.parents:
        facts = above.stat()
        if facts.st_uid not in (0, os.geteuid()):
            raise SharedFileError(f"{above} belongs to another user (uid {facts.st_uid})")
        if facts.st_mode & _OTHERS_WRITE and not facts.st_mode & stat.S_ISVTX:
            raise SharedFileError(_writable(above, facts))


def _check(place: Path, facts: os.stat_result) -> None:
    if facts.st_uid != os.geteuid():
        raise SharedFileError(f"{place} belongs to another user (uid {facts.st_uid})")
    if facts.st_mode & _OTHERS_WRITE:
        raise SharedFileError(_writable(place, facts))


def _writable(place: Path, facts: os.stat_result) -> str:
    mode = stat.S_IMODE(facts.st_mode)
    return f"{place} may be written by others (mode {mode:04o}): remove it, or chmod go-w {place}"


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    for place in reversed(missing):
        # Ranks start at once: another one may have made it since.
        with contextlib.suppress(FileExistsError):
            place.mkdir(mode=_FOLDER_MODE)
