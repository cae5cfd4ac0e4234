"""A compiled JAX function without arguments and results."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

import jax

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.noop import STEPS


def build(request: Request) -> Participant:
    """Compile a function that does nothing."""
    del request  # there is one way, and nothing to share among threads
    return StepLoop(jax.jit(lambda: ()), [()] * STEPS)
