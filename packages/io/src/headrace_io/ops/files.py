"""Ops that read, write and find files, on the device that runs them."""

from __future__ import annotations

import headrace as hr
from headrace.errors import ShapeError
from headrace.extend import Shape, Spec, String, TensorSpec, op, require

STRING = TensorSpec(hr.string, Shape([]))
STRINGS = TensorSpec(hr.string, Shape([None]))

_FILES = "what is in files does not depend on tensors"


def one(string: TensorSpec, label: str) -> None:
    """Refuse a tensor that is no scalar.

    Raises:
        ShapeError: if it is known to be none.
    """
    require(string.rank in (None, 0), f"{label} must be a scalar, got {string.shape}", ShapeError)


@op("ReadFile", effects="reads", no_gradient=_FILES)
def read_file(filename: String) -> Spec:
    """The content of a file.

    Args:
        filename: [], a name that the process of the device can read.

    Returns:
        [], string. Raises when it runs ``NotFoundError`` if the file is not there,
        ``FailedPreconditionError`` if it is a directory, and others of the families.
    """
    one(filename, "filename")
    return STRING


@op("WriteFile", effects="changes", reaches="files", no_gradient=_FILES)
def write_file(filename: String, contents: String) -> None:
    """Write a file, in place of what it held; directories that are missing are made.

    Args:
        filename: [], a name that the process of the device can write. Raises when it runs
            ``FailedPreconditionError`` if it is a directory's, and others of the families.
        contents: [], what to write.
    """
    one(filename, "filename")
    one(contents, "contents")


@op("MatchingFiles", effects="reads", no_gradient=_FILES)
def matching_files(pattern: String) -> Spec:
    r"""The names of the files and directories that match patterns, sorted.

    In a pattern ``*`` stands for any characters of one part of a path, ``?`` for any one,
    ``[a-z]`` and ``[!a-z]`` for one of some or none of them, and ``\`` takes the next character
    as it is. A name that several patterns match is listed once for each.

    Args:
        pattern: [] or [n]. Raises when it runs ``NotFoundError`` if the directory that a pattern
            begins with, before the first part with a wildcard, is not there.

    Returns:
        [number of names], string.
    """
    require(
        pattern.rank in (None, 0, 1),
        f"pattern must be a scalar or a vector, got shape {pattern.shape}",
        ShapeError,
    )
    return STRINGS
