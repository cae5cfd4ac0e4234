"""The program in Headrace."""

from __future__ import annotations

import headrace as hr
from benchmarks.headrace_session import open_session
from benchmarks.participant import Participant, Request
from benchmarks.records import program


def build(request: Request) -> Participant:
    """Build the program with one of its two sources."""
    return program.build(
        hr, request.workload, request.variant, lambda: open_session(request.threads)
    )
