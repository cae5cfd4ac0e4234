"""Cells that change what other cells take and put out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.scopes import device as place
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.graph.tensor_shape import TensorShape
from headrace.ops.conversion import cast
from headrace.ops.elementwise import floor
from headrace.ops.normalization import dropout
from headrace.ops.random import random_uniform
from headrace.ops.rnn_cells import LSTMStateTuple, RNNCell
from headrace.shapes import Shape


class _Wrapper(RNNCell):
    """A cell around a cell, without variables of its own."""

    def __init__(self, cell: RNNCell) -> None:
        super().__init__()
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """The size of the state of the cell inside."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The size of the output of the cell inside."""
        return self._cell.output_size

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables of the cell inside."""
        self._cell.prepare(inputs, scope)
        self.variables, self.built = self._cell.variables, True

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros of the cell inside."""
        return self._cell.zero_state(batch_size, dtype)


class DropoutWrapper(_Wrapper):
    """Drops some of what a cell takes, puts out and remembers, anew at every step."""

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: int | None = None,
        dropout_state_filter_visitor: Callable[[Any], Any] | None = None,
    ) -> None:
        """Wrap a cell.

        Args:
            cell: The cell.
            input_keep_prob: How likely an element of the input is kept: a number or a scalar
                tensor.
            output_keep_prob: The same for the output.
            state_keep_prob: The same for the new state.
            variational_recurrent: Whether the same elements are dropped at all steps, and in all
                examples.
            input_size: The size of the input, or a structure of sizes; needed for
                ``variational_recurrent`` where some of the input is dropped.
            dtype: The dtype of the input; needed for ``variational_recurrent``.
            seed: Seeds what is dropped.
            dropout_state_filter_visitor: From a part of the state to whether its elements are
                dropped, as a structure of booleans; if None the ``c`` of LSTM states are kept.

        Raises:
            AttributeValueError: if a number is no probability, or ``variational_recurrent`` lacks
                what it needs.
        """
        super().__init__(cell)
        self._keep = input_keep_prob, output_keep_prob, state_keep_prob
        for value in self._keep:
            if isinstance(value, int | float) and not 0 < value <= 1:
                raise AttributeValueError(f"a probability to keep must be in (0, 1], got {value}")
        self._seed = seed
        self._visitor = dropout_state_filter_visitor
        # For inputs, outputs and states, where the same elements are dropped at all steps.
        self._noise: list[list[Tensor]] | None = None
        if variational_recurrent:
            self._noise = self._drawn(input_size, dtype)

    def _drawn(self, input_size: Any, dtype: Any) -> list[list[Tensor]]:
        """Return a number in [0, 1) for each element of inputs, outputs and states."""
        if dtype is None:
            raise AttributeValueError("When variational_recurrent=True, dtype must be provided")
        some = not (isinstance(self._keep[0], int | float) and self._keep[0] == 1)
        if some and input_size is None:
            raise AttributeValueError(
                "When variational_recurrent=True and input_keep_prob < 1.0 or is unknown, "
                "input_size must be provided"
            )
        sizes = [input_size if some else (), self.output_size, self.state_size]
        found: list[list[Tensor]] = []
        for offset, size in zip((2, 3, 1), sizes, strict=True):
            leaves = [size] if isinstance(size, Shape | TensorShape) else flatten(size)
            shapes = [[1, *([n] if isinstance(n, int) else Shape(n).known)] for n in leaves]
            seeds = [self._seeded(offset, i) for i in range(len(shapes))]
            made = zip(shapes, seeds, strict=True)
            found.append([random_uniform(s, dtype=dtype, seed=seed) for s, seed in made])
        return found

    def _seeded(self, offset: int, number: int) -> int | None:
        # Seeds of their own, so that what is dropped of one tells nothing of another.
        return None if self._seed is None else self._seed + offset + 101 * number

    def _dropped(
        self, values: Any, keep: Any, offset: int, wanted: list[bool] | None = None
    ) -> Any:
        """Return a structure of which some is dropped; of parts that are not wanted nothing is."""
        if isinstance(keep, int | float) and keep == 1:
            return values
        leaves = flatten(values)
        noise = None if self._noise is None else self._noise[(2, 3, 1).index(offset)]
        found = []
        for i, t in enumerate(leaves):
            if wanted is not None and not wanted[i]:
                found.append(t)
            elif noise is not None:
                found.append(_kept(t, noise[i], keep))
            else:
                found.append(dropout(t, keep_prob=keep, seed=self._seeded(offset, i)))
        return pack(values, found)

    def _wanted(self, state: Any) -> list[bool]:
        """Return for each part of a state whether it is dropped."""
        if self._visitor is not None:
            chosen = self._visitor(state)
            return [chosen] * len(flatten(state)) if isinstance(chosen, bool) else flatten(chosen)
        if isinstance(state, LSTMStateTuple):
            return [False, True]
        if isinstance(state, tuple):
            return [wanted for part in state for wanted in self._wanted(part)]
        return [True] * len(flatten(state))

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Take a step of the cell inside, between what is dropped."""
        output, after = self._cell(self._dropped(inputs, self._keep[0], 2), state)
        after = self._dropped(after, self._keep[2], 1, self._wanted(after))
        return self._dropped(output, self._keep[1], 3), after


def _kept(values: Tensor, drawn: Tensor, keep: Any) -> Tensor:
    """Return elements for which a number was drawn that is large enough, divided by ``keep``."""
    chance = cast(keep, values.dtype)
    made: Tensor = values / chance * floor(chance + cast(drawn, values.dtype))
    made.set_shape(values.spec.shape)
    return made


class DeviceWrapper(_Wrapper):
    """Asks for a device for a cell."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        """Wrap a cell.

        Args:
            cell: The cell.
            device: The device, as ``hr.device`` takes it.
        """
        super().__init__(cell)
        self._device = device

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables of the cell inside."""
        with place(self._device):
            super().prepare(inputs, scope)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros of the cell inside."""
        with place(self._device):
            return super().zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Take a step of the cell inside."""
        with place(self._device):
            taken: tuple[Any, Any] = self._cell(inputs, state)
        return taken


class ResidualWrapper(_Wrapper):
    """Adds what a cell takes to what it puts out."""

    def __init__(self, cell: RNNCell, residual_fn: Callable[[Any, Any], Any] | None = None) -> None:
        """Wrap a cell.

        Args:
            cell: The cell.
            residual_fn: From the input and the cell's output to the output; their sum if None.
        """
        super().__init__(cell)
        self._residual = residual_fn

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Take a step of the cell inside."""
        output, after = self._cell(inputs, state)
        if self._residual is not None:
            return self._residual(inputs, output), after
        pairs = list(zip(flatten(inputs), flatten(output), strict=True))
        for x, y in pairs:
            if not x.shape.is_compatible_with(y.shape):
                raise ShapeError(
                    f"ResidualWrapper needs outputs of the shape of inputs, got {y.spec.shape} for "
                    f"{x.spec.shape}"
                )
        return pack(output, [x + y for x, y in pairs]), after
