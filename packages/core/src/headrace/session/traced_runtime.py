"""Runs of single steps that are traced, beside those that are not."""

from __future__ import annotations

import threading

from headrace.errors import UnimplementedError
from headrace.runtime.profiling.trace import Recorder
from headrace.runtime.profiling.traceable import Traceable
from headrace.runtime.runtime import Runtime


class TracedRuntime:
    """The runtime of a session once more, with the same state, recording what steps do.

    Attributes:
        runtime: The runtime.
        recorder: What its steps are recorded by.
        one_at_a_time: Is held by the run whose events the recorder has.
    """

    def __init__(self, runtime: Runtime) -> None:
        """Make it.

        Args:
            runtime: The session's runtime.

        Raises:
            UnimplementedError: if the runtime cannot be traced step by step.
        """
        if not isinstance(runtime, Traceable):
            raise UnimplementedError(
                "what runs the steps of this session does not trace single ones; trace all of them "
                "by hr.Config(trace=...)"
            )
        self.recorder = Recorder()
        self.runtime = runtime.traced(self.recorder)
        self.one_at_a_time = threading.Lock()
