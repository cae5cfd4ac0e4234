"""What data sets of many files have in common: their names, their turns, their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr
from headrace.errors import AttributeValueError, shown
from headrace_data.dataset import Dataset
from headrace_data.experimental.transformations import parallel_interleave
from headrace_io.matching import matching_names


def file_names(pattern: Any) -> list[str]:
    """Return the names of the files that a pattern, or several, match, sorted.

    Raises:
        AttributeValueError: if there are no patterns, or no files.
    """
    patterns = pattern if isinstance(pattern, list | tuple) else [pattern]
    if not patterns:
        raise AttributeValueError("File pattern is empty.")
    texts = [hr.compat.as_text(p) for p in patterns]
    found = sorted({name for text in texts for name in matching_names([text])})
    if not found:
        raise AttributeValueError(f"No files match {shown(pattern)}.")
    return found


def in_turns(files: Dataset, reader: Callable[[Any], Any], turns: Any, sloppy: bool) -> Dataset:
    """Return a data set of what a reader makes of files, some of them in turns.

    Args:
        files: Names of files.
        reader: From the name of a file to a data set.
        turns: How many files take turns; one if None.
        sloppy: Whether elements may come in the order in which they are ready.
    """
    cycle = 1 if turns is None else turns
    made: Any = files.apply(parallel_interleave(reader, cycle, sloppy=sloppy))
    return made  # type: ignore[no-any-return]


def repeated(
    dataset: Dataset, epochs: int | None, shuffle: bool, buffer_size: Any, seed: Any
) -> Dataset:
    """Return a data set repeated so often, each time in another order where that is asked for."""
    if shuffle:
        dataset = dataset.shuffle(buffer_size, seed)
    return dataset if isinstance(epochs, int) and epochs == 1 else dataset.repeat(epochs)
