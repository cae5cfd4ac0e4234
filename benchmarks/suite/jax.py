"""Any case of the suite in JAX, the whole step compiled."""

# mypy: disable-error-code="import-not-found, import-untyped"

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from benchmarks.participant import Participant, Request, StepLoop
from benchmarks.suite.case import (
    ADAGRAD_START,
    ADAM_DECAYS,
    ADAM_EPSILON,
    MOMENTUM,
    Case,
    checksum,
)
from benchmarks.suite.cases import all_cases


def build(request: Request) -> Participant:
    """Compile a step that maps state to state, or to a result."""
    case = all_cases()[request.workload]
    first, feeds = case.first_state(), case.feeds()
    arrays = [*first.values(), *feeds[0].values()]
    jax.config.update("jax_enable_x64", any(a.dtype.itemsize == 8 for a in arrays))
    state: Any = {name: jnp.array(value) for name, value in first.items()}
    assert case.jax is not None
    program = partial(case.jax, jax)
    held = _Held(state, _slots(case, state))
    if case.optimizer:
        updated = jax.jit(partial(_update, case, program), donate_argnums=(0, 1))

        def step(inputs: Any) -> Any:
            held.state, held.slots = updated(held.state, held.slots, inputs)

        return StepLoop(
            step,
            [(batch,) for batch in feeds],
            finish=lambda: jax.block_until_ready(held.state),
            final_loss=lambda: checksum(program(held.state, feeds[0])),
            lead_in=2,
        )
    compiled = jax.jit(program)
    return StepLoop(
        lambda inputs: jax.block_until_ready(compiled(held.state, inputs)),
        [(batch,) for batch in feeds],
        final_loss=lambda: checksum(compiled(held.state, feeds[0])),
        lead_in=2,
    )


class _Held:
    """The state and the optimizer's slots, which each step replaces."""

    def __init__(self, state: Any, slots: Any) -> None:
        self.state = state
        self.slots = slots


def _slots(case: Case, state: Any) -> Any:
    """Return what the optimizer remembers before the first step."""
    match case.optimizer:
        case "momentum":
            return jax.tree.map(jnp.zeros_like, state)
        case "adagrad":
            return jax.tree.map(lambda value: jnp.full_like(value, ADAGRAD_START), state)
        case "adam":
            zeros = jax.tree.map(jnp.zeros_like, state)
            return zeros, jax.tree.map(jnp.zeros_like, state), jnp.zeros((), jnp.int32)
        case _:
            return ()


def _update(case: Case, program: Any, state: Any, slots: Any, inputs: Any) -> Any:
    """Return the state and the slots after a step, by the formulas of TensorFlow 1."""
    gradients = jax.grad(program)(state, inputs)
    rate = case.rate
    match case.optimizer:
        case "momentum":
            slots = jax.tree.map(lambda s, g: MOMENTUM * s + g, slots, gradients)
            moved = jax.tree.map(lambda s: rate * s, slots)
        case "adagrad":
            slots = jax.tree.map(lambda s, g: s + g * g, slots, gradients)
            moved = jax.tree.map(lambda s, g: rate * g * jax.lax.rsqrt(s), slots, gradients)
        case "adam":
            means, squares, count = slots
            b1, b2 = ADAM_DECAYS
            count += 1
            means = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, means, gradients)
            squares = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, squares, gradients)
            now = rate * jnp.sqrt(1 - b2**count) / (1 - b1**count)
            moved = jax.tree.map(
                lambda m, v: now * m / (jnp.sqrt(v) + ADAM_EPSILON), means, squares
            )
            slots = means, squares, count
        case _:
            moved = jax.tree.map(lambda g: rate * g, gradients)
    return jax.tree.map(lambda value, step: value - step, state, moved), slots
