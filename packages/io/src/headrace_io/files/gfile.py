"""Files and folders under TensorFlow 1's names, as ``hr.gfile``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace_io.files import folders
from headrace_io.files.file import FastGFile as FastGFile
from headrace_io.files.file import GFile as GFile
from headrace_io.streams import FileName

Open = GFile

__all__ = [
    "Copy",
    "DeleteRecursively",
    "Exists",
    "FastGFile",
    "GFile",
    "Glob",
    "IsDirectory",
    "ListDirectory",
    "MakeDirs",
    "MkDir",
    "Open",
    "Remove",
    "Rename",
    "Stat",
    "Walk",
]


def Exists(filename: FileName) -> bool:
    """Return whether there is a file or folder."""
    return folders.exists(filename)


def IsDirectory(dirname: FileName) -> bool:
    """Return whether there is a folder."""
    return folders.isdir(dirname)


def ListDirectory(dirname: FileName) -> list[str]:
    """Return the names of what a folder holds, as ``hr.io.gfile.listdir``."""
    return folders.listdir(dirname)


def Glob(filename: FileName | Iterable[FileName]) -> list[str]:
    """Return the names of files that patterns match, as ``hr.io.gfile.glob``."""
    return folders.glob(filename)


def MkDir(dirname: FileName) -> None:
    """Make a folder, as ``hr.io.gfile.mkdir``."""
    folders.mkdir(dirname)


def MakeDirs(dirname: FileName) -> None:
    """Make a folder and those around it, as ``hr.io.gfile.makedirs``."""
    folders.makedirs(dirname)


def Remove(filename: FileName) -> None:
    """Delete a file, as ``hr.io.gfile.remove``."""
    folders.remove(filename)


def DeleteRecursively(dirname: FileName) -> None:
    """Delete a folder and all that it holds, as ``hr.io.gfile.rmtree``."""
    folders.rmtree(dirname)


def Copy(oldpath: FileName, newpath: FileName, overwrite: bool = False) -> None:
    """Copy a file, as ``hr.io.gfile.copy``."""
    folders.copy(oldpath, newpath, overwrite)


def Rename(oldname: FileName, newname: FileName, overwrite: bool = False) -> None:
    """Give a file or folder another name, as ``hr.io.gfile.rename``."""
    folders.rename(oldname, newname, overwrite)


def Stat(filename: FileName) -> folders.FileStatistics:
    """Return what the system tells of a file, as ``hr.io.gfile.stat``."""
    return folders.stat(filename)


def Walk(top: FileName, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the folders of a tree, as ``hr.io.gfile.walk``.

    Args:
        top: Where to begin.
        in_order: Whether a folder comes before those that it holds.
    """
    return folders.walk(top, in_order)
