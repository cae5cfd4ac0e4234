"""Files that come with a program, as ``hr.resource_loader``: they lie beside the file that asks."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType

import headrace as hr
from headrace.errors import FileBesideNotFoundError
from headrace.extend.arguments import text

__all__ = [
    "get_data_files_path",
    "get_path_to_datafile",
    "get_root_dir_with_all_resources",
    "load_resource",
    "readahead_file_path",
]


def _folder(frame: FrameType) -> Path:
    return Path(inspect.getfile(frame)).absolute().parent


def get_data_files_path() -> str:
    """Return the folder of the file that calls this."""
    return str(_folder(sys._getframe(1)))


def get_path_to_datafile(path: str) -> str:
    """Return the path of a file beside the one that calls this, whether it is there or not.

    Args:
        path: The path, from the folder of the file that calls.

    Raises:
        ArgumentTypeError: if it is no text.
    """
    return str(_folder(sys._getframe(1)) / text(path, "path"))


def get_root_dir_with_all_resources() -> str:
    """Return the folder under which a build keeps the files of a program.

    Builds by Bazel have a folder ``....runfiles`` with the repository in it, which is returned for
    files inside of it; for others it is the folder of the file that calls this.
    """
    own = _folder(sys._getframe(1))
    for folder in (own, *own.parents):
        if ".runfiles" in folder.parent.name:
            return str(folder)
        if ".runfiles" in folder.name:
            break
    return str(own)


def load_resource(path: str) -> bytes:
    """Return what a file holds that comes with Headrace.

    Args:
        path: Its path from the folder of the package ``headrace``.

    Raises:
        ArgumentTypeError: if the path is no text.
        FileBesideNotFoundError: if it cannot be read: a ``NotFoundError`` and an ``OSError``.
    """
    found = Path(hr.__file__).parent / text(path, "path")
    try:
        return found.read_bytes()
    except (OSError, ValueError) as error:
        raise FileBesideNotFoundError(f"{path!r} cannot be read: {error}") from None


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """Return a path as it is: systems read ahead by themselves.

    Args:
        path: The path.
        readahead: How much to read ahead; changes nothing.
    """
    del readahead
    return path
