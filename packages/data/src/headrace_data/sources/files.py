"""Names of files as elements."""

from __future__ import annotations

import glob
import re
from pathlib import Path
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import InvalidArgumentError, NotFoundError, ShapeError
from headrace_data import structure
from headrace_data.build import make
from headrace_data.runtime.passes import Pass
from headrace_data.runtime.stream import DatasetValue, Element, State, Stream, stream
from headrace_data.structure import Described
from headrace_data.transformations.shuffling import shuffle as shuffled

# A buffer that holds the names of all files there may be.
_ALL = 1 << 40


def list_files(file_pattern: Any, shuffle: bool | None, seed: Any) -> Described:
    """Return a data set of the names of the files that match patterns."""
    with hr.name_scope("list_files"):
        pattern = hr.convert_to_tensor(file_pattern, hr.string, name="file_pattern")
        if pattern.shape.rank is not None and pattern.shape.rank > 1:
            raise ShapeError(
                f"list_files: file_pattern must be a scalar or a vector, got {pattern.spec.shape}"
            )
        element = structure.TensorComponent(hr.string, hr.Shape([]))
        files = make("files", element, arguments=[pattern])
        return files if shuffle is False else shuffled(files, _ALL, seed, True)


def matching(value: DatasetValue) -> list[bytes]:
    """Return the names of the files that match, sorted; those of this folder begin with "./".

    Raises:
        InvalidArgumentError: if there are none.
        NotFoundError: if a folder is not there.
    """
    patterns = [item.decode() for item in np.asarray(value.arguments[0]).ravel().tolist()]
    placed = map(_in_a_folder, patterns)
    found = sorted({name for pattern in placed for name in glob.glob(pattern)})  # noqa: PTH207 - absolute ones, too
    if not found:
        for pattern in patterns:
            folder = Path(pattern).parent
            if not glob.has_magic(str(folder)) and not folder.is_dir():
                raise NotFoundError(f"{folder}; No such file or directory")
        raise InvalidArgumentError(f"No files matched pattern: {', '.join(patterns)}")
    return [name.encode() for name in found]


def _in_a_folder(pattern: str) -> str:
    """Return a pattern that begins with a folder: this one where it names none before a wildcard.

    So TensorFlow finds "./a.txt" by "*.txt", and by "a.txt".
    """
    plain = re.split(r"[*?\[\\]", pattern, maxsplit=1)[0]
    return pattern if not pattern or "/" in plain else f"./{pattern}"


@stream("files")
class FilesStream(Stream):
    """The names of files that there were when the pass began."""

    def __init__(self, value: DatasetValue, run: Pass) -> None:
        super().__init__(value, run)
        self._names: list[bytes] | None = None
        self._at = 0

    @classmethod
    def check(cls, value: DatasetValue) -> None:
        """Refuse patterns that nothing matches."""
        matching(value)

    @classmethod
    def count(cls, value: DatasetValue) -> int:
        """Return how many files there are now."""
        return len(matching(value))

    def next(self) -> Element | None:
        """Return the next name."""
        if self._names is None:
            self._names = matching(self.value)
        if self._at >= len(self._names):
            return None
        self._at += 1
        return (np.array(self._names[self._at - 1], object),)

    def save(self) -> State:
        """Return the names, and how many were taken."""
        return [self._names, self._at]

    def restore(self, state: State) -> None:
        """Go on with the names that there were."""
        self._names, self._at = state
