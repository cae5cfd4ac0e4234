"""Names of files that are looked up once."""

from __future__ import annotations

from typing import Any

import headrace as hr
from headrace_io.ops.files import matching_files


def match_filenames_once(pattern: Any, name: str | None = None) -> hr.Variable:
    """Return a variable with the names of files that match patterns, looked up when it is made.

    It is a local variable, which checkpoints leave out: ``hr.local_variables_initializer``
    initializes it.

    Args:
        pattern: One or several patterns, as ``hr.matching_files`` takes them, [] or [n].
        name: The name of the operations.

    Returns:
        A variable of strings, [number of names].
    """
    with hr.name_scope(name, "matching_filenames") as scope:
        return hr.Variable(
            name=scope,
            initial_value=matching_files(pattern),
            trainable=False,
            validate_shape=False,
            collections=[hr.GraphKeys.LOCAL_VARIABLES],
        )
