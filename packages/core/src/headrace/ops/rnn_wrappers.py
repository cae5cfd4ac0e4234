"""Cells that change what other cells take and put out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.structure import flatten, pack
from headrace.ops.normalization import dropout
from headrace.ops.rnn_cells import LSTMStateTuple, RNNCell


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
            variational_recurrent: Refused: elements are chosen anew at every step.
            input_size: Ignored.
            dtype: Ignored.
            seed: Seeds what is dropped.
            dropout_state_filter_visitor: From a part of the state to whether its elements are
                dropped, as a structure of booleans; if None the ``c`` of LSTM states are kept.

        Raises:
            AttributeValueError: if ``variational_recurrent`` is asked for, or a number is no
                probability.
        """
        del input_size, dtype
        super().__init__(cell)
        if variational_recurrent:
            raise AttributeValueError("DropoutWrapper has no variational_recurrent dropout")
        self._keep = input_keep_prob, output_keep_prob, state_keep_prob
        for value in self._keep:
            if isinstance(value, int | float) and not 0 < value <= 1:
                raise AttributeValueError(f"a probability to keep must be in (0, 1], got {value}")
        self._seed = seed
        self._visitor = dropout_state_filter_visitor

    def _dropped(self, values: Any, keep: Any, offset: int) -> Any:
        if isinstance(keep, int | float) and keep == 1:
            return values
        seed = self._seed
        found = [
            # Seeds of their own, so that what is dropped of one tells nothing of another.
            dropout(t, keep_prob=keep, seed=None if seed is None else seed + offset + 101 * i)
            for i, t in enumerate(flatten(values))
        ]
        return pack(values, found)

    def _dropped_state(self, state: Any) -> Any:
        keep = self._keep[2]
        if isinstance(state, LSTMStateTuple) and self._visitor is None:
            return LSTMStateTuple(state.c, self._dropped(state.h, keep, 1))
        if self._visitor is not None:
            chosen = self._visitor(state)
            if isinstance(chosen, bool):
                return self._dropped(state, keep, 1) if chosen else state
            leaves = flatten(state)
            mask = flatten(chosen)
            parts = [
                self._dropped(t, keep, 1 + i) if drop else t
                for i, (t, drop) in enumerate(zip(leaves, mask, strict=True))
            ]
            return pack(state, parts)
        if isinstance(state, tuple):
            return tuple(self._dropped_state(part) for part in state)
        return self._dropped(state, keep, 1)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Take a step of the cell inside, between what is dropped."""
        output, after = self._cell(self._dropped(inputs, self._keep[0], 2), state)
        keep = self._keep[2]
        if not (isinstance(keep, int | float) and keep == 1):
            after = self._dropped_state(after)
        return self._dropped(output, self._keep[1], 3), after


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
