"""Runtimes whose steps can be traced one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from headrace.runtime.runtime import Runtime

if TYPE_CHECKING:
    from headrace.runtime.profiling.trace import Recorder


@runtime_checkable
class Traceable(Protocol):
    """A runtime that can be had once more, with the same state, for steps that are recorded."""

    def traced(self, recorder: Recorder) -> Runtime:
        """Return the runtime once more, with the same state, recording what steps do.

        Args:
            recorder: Gets what steps do, on all tasks.

        The caller closes what is returned, after this runtime.
        """
