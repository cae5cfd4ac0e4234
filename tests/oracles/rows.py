"""A row of a table: a function, the one to compare it with, and what both are given."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .libraries import MODULES, full_name

# How far two results may be apart, relative to the larger of 1 and the expected value.
FLOAT32 = 1e-5
FLOAT64 = 1e-12


@dataclass(frozen=True)
class Draw:
    """A random input."""

    make: Callable[[np.random.Generator], np.ndarray]
    differentiable: bool = True


def fixed(draw: Draw) -> Draw:
    """Return the same input, with respect to which nothing is differentiated."""
    return replace(draw, differentiable=False)


def normal(*shape: int) -> Draw:
    return Draw(lambda rng: rng.normal(size=shape))


def uniform(low: float, high: float, *shape: int) -> Draw:
    return Draw(lambda rng: rng.uniform(low, high, size=shape))


def signed(low: float, high: float, *shape: int) -> Draw:
    """Return numbers of either sign whose magnitudes lie between the bounds."""
    return Draw(
        lambda rng: rng.uniform(low, high, size=shape) * rng.choice([-1.0, 1.0], size=shape)
    )


def apart(*shape: int) -> Draw:
    """Return numbers between -2 and 2, none near another one or near 0."""
    count = int(np.prod(shape))
    steps = np.linspace(-2, 2, count + count % 2)[:count]
    return Draw(lambda rng: rng.permutation(steps).reshape(shape))


def matrix(*shape: int) -> Draw:
    """Return well conditioned square matrices."""
    return Draw(lambda rng: rng.normal(size=shape) * 0.5 + 2 * np.eye(shape[-1]))


def symmetric(*shape: int) -> Draw:
    """Return symmetric positive definite matrices with eigenvalues far from one another."""

    def make(rng: np.random.Generator) -> np.ndarray:
        q = np.linalg.qr(rng.normal(size=shape))[0]
        values = np.arange(1, shape[-1] + 1) + rng.uniform(-0.2, 0.2, size=shape[:-1])
        return (q * values[..., None, :]) @ np.swapaxes(q, -1, -2)

    return Draw(make)


def probabilities(*shape: int) -> Draw:
    def make(rng: np.random.Generator) -> np.ndarray:
        x = rng.uniform(0.1, 1, size=shape)
        return x / x.sum(-1, keepdims=True)

    return Draw(make)


@dataclass(frozen=True)
class Row:
    """A function of Headrace and what it is compared with.

    Attributes:
        name: the public name, below ``hr``.
        references: short names of the functions of the other library, the main one first.
        inputs: what both functions are given.
        ours: makes tensors of tensors; without it, the function of that name.
        theirs: makes arrays of arrays; without it, the main reference.
        mode: what distinguishes the row from others of the same function.
        float32: tolerance in float32.
        float64: tolerance in float64.
        reason: why a tolerance is not the usual one.
        single: it computes in float32 whatever it is given, as TensorFlow 1.15 does.
    """

    name: str
    references: tuple[str, ...]
    inputs: tuple[Draw, ...]
    ours: Callable[..., Any] | None = None
    theirs: Callable[..., Any] | None = None
    mode: str = ""
    float32: float = FLOAT32
    float64: float = FLOAT64
    reason: str = ""
    single: bool = False
    seed: int = field(init=False)

    def __post_init__(self) -> None:
        if self.single:
            object.__setattr__(self, "float64", max(self.float32, self.float64))
            reason = self.reason or "it computes in float32, as in TensorFlow 1.15"
            object.__setattr__(self, "reason", reason)
        if (self.float32, self.float64) != (FLOAT32, FLOAT64) and not self.reason:
            raise ValueError(f"{self.key}: a tolerance of its own needs a reason")
        if len({self.library_of(name) for name in self.references}) != 1:
            raise ValueError(f"{self.key}: references of one library expected")
        object.__setattr__(self, "seed", zlib.crc32(self.key.encode()))

    @staticmethod
    def library_of(short: str) -> str:
        return MODULES[short.partition(".")[0]].partition(".")[0]

    @property
    def key(self) -> str:
        return f"{self.name} ({self.mode})" if self.mode else self.name

    @property
    def library(self) -> str:
        return self.library_of(self.references[0])

    @property
    def reference_names(self) -> list[str]:
        return [full_name(name) for name in self.references]

    def tolerance(self, dtype: str) -> float:
        return self.float32 if dtype == "float32" else self.float64

    def arrays(self, dtype: str) -> list[np.ndarray]:
        rng = np.random.default_rng(self.seed)
        return [draw.make(rng).astype(dtype) for draw in self.inputs]

    def differentiable(self) -> list[int]:
        return [i for i, draw in enumerate(self.inputs) if draw.differentiable]


def row(name: str, references: str, *inputs: Draw, **rest: Any) -> Row:
    """Return a row; ``references`` are short names with commas between them."""
    return Row(name, tuple(references.replace(" ", "").split(",")), inputs, **rest)
