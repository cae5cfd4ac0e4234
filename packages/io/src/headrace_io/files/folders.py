"""Operations on files and folders: listing, copying, moving, deleting."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from headrace.errors import AlreadyExistsError, FailedPreconditionError, NotFoundError, OpError
from headrace.extend.arguments import items
from headrace_io.matching import matching_names
from headrace_io.streams import FileName, error_of_system, file_name


class FileStatistics(NamedTuple):
    """What the system tells of a file.

    Attributes:
        length: Its size in bytes.
        mtime_nsec: When it was changed last, in nanoseconds since 1970.
        is_directory: Whether it is a folder.
    """

    length: int
    mtime_nsec: int
    is_directory: bool


@contextmanager
def _doing(what: str, name: FileName) -> Iterator[Path]:
    """Yield a path; what the system refuses is an error of Headrace's families."""
    text = file_name(name)
    try:
        yield Path(text)
    except OSError as error:
        raise error_of_system(error, f"cannot {what} {text!r}") from error


def exists(path: FileName) -> bool:
    """Return whether there is a file or folder.

    Args:
        path: Its name.
    """
    return os.path.exists(file_name(path))  # noqa: PTH110 - a path that cannot be is none


def isdir(path: FileName) -> bool:
    """Return whether there is a folder.

    Args:
        path: Its name.
    """
    return os.path.isdir(file_name(path))  # noqa: PTH112 - likewise


def listdir(path: FileName) -> list[str]:
    """Return the names of what a folder holds, sorted.

    Args:
        path: The folder.

    Raises:
        NotFoundError: if it is no folder.
    """
    if not isdir(path):
        raise NotFoundError(f"there is no folder {file_name(path)!r}")
    with _doing("list", path) as folder:
        return sorted(entry.name for entry in folder.iterdir())


def glob(pattern: FileName | Iterable[FileName]) -> list[str]:
    """Return the names of files that a pattern, or one of several, matches, sorted.

    Those of a pattern that begins with no folder begin with "./".

    Args:
        pattern: Names with the wildcards of ``fnmatch(3)`` within parts of a path.
    """
    patterns = (
        [pattern] if isinstance(pattern, str | bytes | os.PathLike) else items(pattern, "pattern")
    )
    found: list[str] = []
    for one in map(file_name, patterns):
        with suppress(NotFoundError):
            found += matching_names([one])
    return found


def mkdir(path: FileName) -> None:
    """Make a folder in one that is there; one that is there already stays as it is.

    Args:
        path: Its name.

    Raises:
        NotFoundError: if the folder around is not there.
    """
    with _doing("make the folder", path) as folder:
        folder.mkdir(exist_ok=True)


def makedirs(path: FileName) -> None:
    """Make a folder, and those around it that are not there.

    Args:
        path: Its name.
    """
    with _doing("make the folder", path) as folder:
        folder.mkdir(parents=True, exist_ok=True)


def remove(path: FileName) -> None:
    """Delete a file.

    Args:
        path: Its name.

    Raises:
        NotFoundError: if it is not there.
        FailedPreconditionError: if it is a folder.
    """
    with _doing("delete", path) as file:
        if file.is_dir() and not file.is_symlink():
            raise FailedPreconditionError(f"cannot delete {str(file)!r}: it is a folder")
        file.unlink()


def rmtree(path: FileName) -> None:
    """Delete a folder and all that it holds.

    Args:
        path: Its name.

    Raises:
        NotFoundError: if it is not there.
    """
    with _doing("delete", path) as folder:
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink()


def copy(src: FileName, dst: FileName, overwrite: bool = False) -> None:
    """Copy a file.

    Args:
        src: Its name.
        dst: The name of the copy.
        overwrite: Whether the copy may take the place of a file.

    Raises:
        AlreadyExistsError: if a file is in the place and may not be overwritten.
        NotFoundError: if there is no file to copy.
    """
    target = _free(dst, overwrite)
    with _doing("copy", src) as file:
        shutil.copyfile(file, target)


def rename(src: FileName, dst: FileName, overwrite: bool = False) -> None:
    """Give a file or folder another name.

    Args:
        src: Its name.
        dst: The new one.
        overwrite: Whether it may take the place of another.

    Raises:
        AlreadyExistsError: if something is in the place and may not be overwritten.
        NotFoundError: if there is nothing to rename.
    """
    target = _free(dst, overwrite)
    with _doing("rename", src) as file:
        file.replace(target)


def _free(name: FileName, overwrite: bool) -> str:
    if not overwrite and exists(name):
        raise AlreadyExistsError(f"{file_name(name)!r} exists already; pass overwrite=True")
    return file_name(name)


def stat(path: FileName) -> FileStatistics:
    """Return what the system tells of a file.

    Args:
        path: Its name.

    Raises:
        NotFoundError: if it is not there.
    """
    with _doing("look at", path) as file:
        found = file.stat()
        return FileStatistics(found.st_size, found.st_mtime_ns, file.is_dir())


def walk(
    top: FileName, topdown: bool = True, onerror: Callable[[OpError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder of a tree with the names of the folders and the files that it holds.

    Args:
        top: Where to begin.
        topdown: Whether a folder comes before those that it holds.
        onerror: Called with the error where a folder cannot be listed; nothing if None.
    """
    folder = file_name(top)
    try:
        names = listdir(folder)
    except NotFoundError as error:
        if onerror is not None:
            onerror(error)
        return
    inside = [name for name in names if isdir(f"{folder}/{name}")]
    files = [name for name in names if name not in inside]
    if topdown:
        yield folder, inside, files
    for name in inside:
        yield from walk(os.path.join(folder, name), topdown, onerror)  # noqa: PTH118
    if not topdown:
        yield folder, inside, files
