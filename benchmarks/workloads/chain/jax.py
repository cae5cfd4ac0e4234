"""The formula in JAX, compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.workloads.chain import data


def build(request: Request) -> Participant:
    """Compile the formula."""
    del request  # JAX takes the CPUs it sees, and the worker shows it as many as it may use
    a, b, c = (jnp.array(value) for value in data.arrays())

    def eager(a: Any, b: Any, c: Any) -> Any:
        return jnp.tanh(a * b + c) * jnp.exp(-a)

    formula = jax.jit(eager)

    def step() -> Any:
        return formula(a, b, c).block_until_ready()

    return StepLoop(
        step, data.feeds(), final_loss=lambda: data.checksum(step()), lead_in=data.LEAD_IN
    )
