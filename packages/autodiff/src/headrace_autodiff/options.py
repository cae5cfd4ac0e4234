"""Names of the choices that ``gradients`` and the optimizers take, as TensorFlow has them."""

from __future__ import annotations

from typing import ClassVar, final


@final
class AggregationMethod:
    """How gradients that meet are added. All are the same here: pair by pair, in a fixed order."""

    ADD_N: ClassVar[int] = 0
    DEFAULT: ClassVar[int] = ADD_N
    EXPERIMENTAL_TREE: ClassVar[int] = 1
    EXPERIMENTAL_ACCUMULATE_N: ClassVar[int] = 2


@final
class UnconnectedGradients:
    """What ``gradients`` returns for an x on which no y depends: None, or zeros."""

    NONE: ClassVar[str] = "none"
    ZERO: ClassVar[str] = "zero"
