"""The rows of test tables: what an op is fed and what must come out, or be refused."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.errors import HeadraceError
from headrace_testing.inputs import Input, NDArray

# One entry per parameter of the op: a maker, a list of makers where it takes any number of
# tensors, or None where an optional one is left out.
Inputs = Sequence[Input | Sequence[Input] | None]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One interesting case of an op, from which the harness derives its checks.

    Attributes:
        op: The op's type name, as in ``"MatMul"``.
        inputs: A maker of values for each tensor parameter, in order.
        attrs: Attributes that differ from their defaults.
        oracle: What must come out, computed independently of every kernel: a function of the
            inputs (floats arrive as float64, complex numbers as complex128, the rest as it is)
            and, by name, of ``attrs``. Returns one array or a tuple of arrays.
        holds: In place of an oracle, for ops that draw: whether outputs are right, a function of
            the list of outputs.
        dtypes: The dtypes that inputs without one of their own take in turn; None for all that
            the op's declaration accepts and the device has a kernel for.
        grad: Whether gradients are checked, or the names of the parameters for which they are.
        second_order: Whether gradients of gradients are, too.
        outputs: Indices of the outputs to look at; None for all. Those of a switch are not all
            alive.
        grad_outputs: Indices of the outputs through which gradients are checked; None for all.
        along: Maps a random direction to one along which inputs may move, where the op looks at
            a part of them: to a symmetric matrix, say.
        tolerance: Largest absolute and relative error, in place of the table's for the dtype.
        exact_shape: Whether the shape is known before the step where all inputs are constants.
        label: Tells the samples of one op apart.
        seed: Of the random inputs.
        where: File and line of the row.
    """

    op: str
    inputs: Inputs = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    oracle: Callable[..., Any] | None = None
    holds: Callable[[list[Any]], bool] | None = None
    dtypes: Sequence[Any] | None = None
    grad: bool | Sequence[str] = True
    second_order: bool = True
    outputs: Sequence[int] | None = None
    grad_outputs: Sequence[int] | None = None
    along: Callable[[NDArray], NDArray] | None = None
    tolerance: float | None = None
    exact_shape: bool = True
    label: str = ""
    seed: int = 0
    where: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if (self.oracle is None) == (self.holds is None):
            raise ValueError(f"Sample({self.op!r}) needs one of oracle= and holds=")
        object.__setattr__(self, "where", _caller())

    @property
    def name(self) -> str:
        """The op and the label."""
        return f"{self.op}-{self.label}" if self.label else self.op


@dataclass(frozen=True, slots=True, eq=False)
class Reject:
    """One case that an op refuses, with the error that says so.

    Attributes:
        op: The op's type name.
        inputs: As a sample's; each must have a dtype of its own.
        attrs: As a sample's.
        error: The exception, which must be one of Headrace's.
        match: A regular expression found in its message.
        when: "build", where the node is refused, or "run", where its kernel refuses the values.
        label: Tells the rows of one op apart.
        where: File and line of the row.
    """

    op: str
    inputs: Inputs = ()
    attrs: Mapping[str, Any] = field(default_factory=dict)
    error: type[HeadraceError] = HeadraceError
    match: str = ""
    when: str = "build"
    label: str = ""
    where: str = field(init=False, default="")

    def __post_init__(self) -> None:
        if not self.match:
            raise ValueError(f"Reject({self.op!r}) needs match=, a part of the message")
        object.__setattr__(self, "where", _caller())

    @property
    def name(self) -> str:
        """The op and the label."""
        return f"{self.op}-reject-{self.label}" if self.label else f"{self.op}-reject"


Row = Sample | Reject


def _caller() -> str:
    frame = sys._getframe(3)
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
