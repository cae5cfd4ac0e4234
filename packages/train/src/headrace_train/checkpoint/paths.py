"""Where a checkpoint lies: the prefix by which programs know it, and the files behind it.

As in TensorFlow a program names a checkpoint by a *prefix*, as in ``run/model-100``, and never
by its files. The file is the prefix with ``.h5``, unless the prefix has that suffix itself.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

from headrace.errors import ArgumentTypeError, CheckpointMismatchError, shown

SUFFIX = ".h5"
# What file systems take; the temporary name of a file is never longer than this.
_LONGEST_NAME_BYTES = 255


def as_prefix(path: Any, label: str = "save_path") -> str:
    """Return the prefix that a program gave, checked before any file is touched.

    Raises:
        ArgumentTypeError: if it is no path.
        CheckpointError: if no file can have this name.
    """
    try:
        text: str | bytes = os.fspath(path)
    except TypeError:
        raise ArgumentTypeError(
            f"{label} must be the path of a checkpoint, got {shown(path)}"
        ) from None
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    check_path(text, label)
    _, name = split(text)
    if not name or name in (".", ".."):
        raise CheckpointMismatchError(
            f"{text!r} is no path of a checkpoint: expected one that ends in the name of a file"
        )
    return text


def check_path(text: str, label: str) -> None:
    """Refuse what no file can be called, or what no other program could name.

    Raises:
        ArgumentTypeError: if it is no string.
        CheckpointError: if ``text`` holds a zero character or a lone surrogate, or is too long.
    """
    if not isinstance(text, str):
        raise ArgumentTypeError(f"{label} must be a string, got {shown(text)}")
    try:
        data = text.encode()
    except UnicodeEncodeError as reason:
        raise CheckpointMismatchError(
            f"{label} cannot be written as UTF-8: {shown(text)} holds a lone surrogate at "
            f"{reason.start}"
        ) from None
    if b"\0" in data:
        raise CheckpointMismatchError(
            f"{label} holds a zero character, which no name of a file may have: {shown(text)}"
        )
    longest = max((len(part) for part in data.split(b"/")), default=0)
    if longest + len(SUFFIX) > _LONGEST_NAME_BYTES:
        raise CheckpointMismatchError(
            f"{label} has a part of {longest} bytes, expected at most "
            f"{_LONGEST_NAME_BYTES - len(SUFFIX)}: {shown(text)}"
        )


def split(prefix: str) -> tuple[str, str]:
    """Return the folder of a prefix as it is written, empty for the current one, and its name."""
    folder, slash, name = prefix.rpartition("/")
    return folder or slash, name


def join(folder: str, name: str) -> str:
    """Return the prefix of a name in a folder, as ``split`` takes it apart."""
    return f"{folder.rstrip('/')}/{name}" if folder else name


def is_absolute(prefix: str) -> bool:
    """Whether a prefix names its place whatever the current folder is."""
    return prefix.startswith("/")


def file_of(prefix: str) -> Path:
    """Return the file to which a checkpoint of ``prefix`` is written."""
    return Path(prefix if prefix.endswith(SUFFIX) else prefix + SUFFIX)


def prefix_of(file: str | Path) -> str:
    """Return the prefix of a file that a saver wrote."""
    return str(file).removesuffix(SUFFIX)


def find_file(prefix: str | Path) -> Path | None:
    """Return the regular file behind a prefix, None if there is none.

    That is also the prefix itself, where it is the name of a whole file.
    """
    text = os.fspath(prefix)
    for file in dict.fromkeys((file_of(text), Path(text))):
        if is_regular(file):
            return file
    return None


def is_regular(file: Path) -> bool:
    """Whether there is a file at a path; a pipe, a socket, a device or a folder is none."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except (OSError, ValueError):
        return False


def existing_file(prefix: str | Path) -> Path:
    """Return the file behind a prefix, or the one that should be there.

    Raises:
        CheckpointError: if ``prefix`` cannot be the name of one.
    """
    text = as_prefix(prefix, "the path of a checkpoint")
    found = find_file(text)
    if found is not None:
        return found
    # What is there and no file is told of by its own name.
    whole = file_of(text)
    return Path(text) if not os.path.lexists(whole) and os.path.lexists(text) else whole
