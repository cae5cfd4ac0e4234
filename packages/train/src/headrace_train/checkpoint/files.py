"""Files that are either there in full or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import socket
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.extend.files import is_device
from headrace.extend.files import open_regular as open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

_STALE_SECONDS = 600.0
_TEMPORARY = re.compile(r"\..*\.(?P<host>[^.]*)\.(?P<pid>\d+)\.[0-9a-f]{8}\.tmp")


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """Give a temporary file beside ``path``, and put it in the place of ``path`` at the end.

    When the body ends without an exception, the content is on the disk before the name points to
    it, and the name is on the disk before this returns. After an exception, ``path`` is as it was.
    What is no file and no folder, such as ``/dev/null``, is never replaced: it gets the content.

    Yields:
        The temporary file, empty, in the same folder, so that renaming it is atomic.
    """
    if is_device(path):
        with tempfile.TemporaryDirectory() as folder:
            passing = Path(folder, path.name)
            passing.touch()
            yield passing
            path.write_bytes(passing.read_bytes())
        return
    name = f".{path.name[:100]}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}.tmp"
    temporary = path.with_name(name)
    try:
        os.fsencode(temporary)
    except ValueError as error:
        # Half of a surrogate pair: no file is named so.
        raise OSError(errno.EINVAL, str(error)) from error
    try:
        # Made here, with the permissions of any new file, so that a wrong folder is found early.
        temporary.touch(exist_ok=False)
        yield temporary
        _sync(temporary, os.O_RDWR)
        temporary.replace(path)
        sync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_temporary(name: str) -> bool:
    """Whether ``name`` is that of a temporary file of ``replaced``."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_stale(directory: Path, *, older_than_s: float = _STALE_SECONDS) -> list[Path]:
    """Remove temporary files that killed processes of this machine left in ``directory``.

    Another machine, or another container of this one, may share the folder, where our process
    numbers mean nothing: files of other hosts, and files touched lately, are left alone.

    Returns:
        What was removed.
    """
    removed = []
    for file in directory.iterdir():
        found = _TEMPORARY.fullmatch(file.name)
        if found is None or found["host"] != _host() or _is_alive(int(found["pid"])):
            continue
        with contextlib.suppress(OSError):
            if time.time() - file.stat().st_mtime >= older_than_s:
                file.unlink()
                removed.append(file)
    return removed


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep other threads and processes out that also ask for ``directory``.

    The lock ends with the process that holds it. On file systems without locks it does nothing.
    """
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in ``folder`` are on the disk."""
    _sync(folder, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:60]


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
