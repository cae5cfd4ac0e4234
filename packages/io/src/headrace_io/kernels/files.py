"""Kernels that read, write and find files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace.extend import KernelContext, KernelTable
from headrace_io.kernels.strings import one_string, string_array, string_scalar, strings_of
from headrace_io.matching import matching_names
from headrace_io.streams import read_whole, write_whole

KERNELS = KernelTable()


@KERNELS.stateful("ReadFile")
def read_file(ctx: KernelContext, filename: Any) -> Any:
    """Read a file."""
    return string_scalar(read_whole(one_string(filename, "filename")))


@KERNELS.stateful("WriteFile")
def write_file(ctx: KernelContext, filename: Any, contents: Any) -> None:
    """Write a file."""
    write_whole(one_string(filename, "filename"), one_string(contents, "contents"))


@KERNELS.stateful("MatchingFiles")
def matching_files(ctx: KernelContext, pattern: Any) -> Any:
    """List files."""
    rank = np.ndim(pattern)
    if rank > 1:
        raise ShapeError(f"pattern must be a scalar or a vector, got {rank} dimensions")
    names = matching_names(map(os.fsdecode, strings_of(pattern)))
    return string_array(map(os.fsencode, names))
