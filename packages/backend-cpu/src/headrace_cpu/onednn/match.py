"""What all matchers of oneDNN have in common: the library, and what it refuses."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from headrace_cpu.onednn.library import Library, OnednnError, load
from headrace_cpu.program.instruction import Instruction
from headrace_cpu.program.matching import Candidate

_LOG = logging.getLogger("headrace.cpu")


def with_library(
    make: Callable[[Candidate, Library], Instruction | None],
) -> Callable[[Candidate], Instruction | None]:
    """Return what makes an instruction with the library, and leaves what that refuses to others."""

    @functools.wraps(make)
    def made(candidate: Candidate) -> Instruction | None:
        library = load()
        try:
            return None if library is None else make(candidate, library)
        except OnednnError as problem:
            _LOG.debug("%s stays with other kernels: %s", candidate.op.name, problem)
            return None

    return made
