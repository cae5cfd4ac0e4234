"""What a case of the suite is: one program for all peers, and the numbers it computes with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Arrays: TypeAlias = dict[str, Array]
# A program: the library, the state by name and the inputs by name, to a result.
Program: TypeAlias = Callable[[Any, Mapping[str, Any], Mapping[str, Any]], Any]

MOMENTUM = 0.9
ADAGRAD_START = 0.1
ADAM_DECAYS = (0.9, 0.999)
ADAM_EPSILON = 1e-8


@dataclass(frozen=True)
class Case:
    """A program that all peers run.

    A case with an optimizer is a training step: its programs return a scalar loss, and the state is
    trained. The result of other cases, a tensor or a tuple of them, is fetched.

    Attributes:
        name: what the command line calls it.
        what: what is computed, and how much of it.
        dataflow: the program for ``headrace`` and ``tensorflow.compat.v1``.
        torch: the program for ``torch``; None where that library has no such thing.
        jax: the program for ``jax``; None where that library has no such thing.
        state: makes the values that stay from step to step.
        batch: makes the inputs of one step.
        optimizer: "sgd", "momentum", "adagrad" or "adam"; "" if nothing is trained.
        rate: learning rate.
        row_sparse: state whose gradient PyTorch keeps as rows.
        compiles: whether ``torch.compile`` takes part.
        steps: steps of one round.
        batches: different batches; steps go through them again and again.
        tolerance: largest relative distance of a result from the median of all.
    """

    name: str
    what: str
    dataflow: Program
    torch: Program | None = None
    jax: Program | None = None
    state: Callable[[np.random.Generator], Arrays] = lambda _: {}
    batch: Callable[[np.random.Generator], Arrays] = lambda _: {}
    optimizer: str = ""
    rate: float = 0.01
    row_sparse: tuple[str, ...] = ()
    compiles: bool = False
    steps: int = 20
    batches: int = 4
    tolerance: float = 1e-3

    def first_state(self) -> Arrays:
        """Return the state before the first step, the same for all peers."""
        return self.state(np.random.default_rng(0))

    def feeds(self) -> list[Arrays]:
        """Return the inputs of all steps of a round."""
        rng = np.random.default_rng(1)
        made = [self.batch(rng) for _ in range(self.batches)]
        return [made[step % self.batches] for step in range(self.steps)]


def checksum(result: Any) -> float:
    """Return one number for a result, by which peers are compared.

    Args:
        result: an array, or a tuple or list of them.

    Returns:
        The sum over all arrays of their elements' mean distance from zero, in float64.
    """
    parts = result if isinstance(result, (tuple, list)) else (result,)
    return float(sum(np.abs(np.asarray(part, np.float64)).mean() for part in parts))


def normal(rng: np.random.Generator, *shape: int, scale: float = 1.0) -> Array:
    """Return normally distributed float32 of a shape, with this standard deviation."""
    return rng.standard_normal(shape, np.float32) * np.float32(scale)


def weight(rng: np.random.Generator, *shape: int) -> Array:
    """Return first values of a matrix or kernel: as wide as keeps the size of what it maps."""
    return normal(rng, *shape, scale=float(np.prod(shape[:-1])) ** -0.5)


def whole(rng: np.random.Generator, high: int, *shape: int) -> Array:
    """Return int32 from zero to below ``high``."""
    return rng.integers(0, high, shape).astype(np.int32)
