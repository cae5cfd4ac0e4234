"""Cells of recurrent networks: one step from an input and a state to an output and a new state.

References:
    S. Hochreiter, J. Schmidhuber, Long short-term memory, Neural Computation 9, 1997,
    https://doi.org/10.1162/neco.1997.9.8.1735
    F. Gers, J. Schmidhuber, Recurrent nets that time and count, IJCNN 2000 (peepholes),
    https://doi.org/10.1109/IJCNN.2000.861302
    K. Cho et al., Learning phrase representations using RNN encoder-decoder for statistical
    machine translation, EMNLP 2014 (gated recurrent units), https://arxiv.org/abs/1406.1078
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from headrace.arguments import items
from headrace.dtypes import DType
from headrace.errors import ArgumentTypeError, AttributeValueError, DTypeError, shown
from headrace.graph.structure import flatten
from headrace.ops.array import concat, split
from headrace.ops.clip import clip_by_value
from headrace.ops.constant import zeros
from headrace.ops.linalg import matmul
from headrace.ops.rnn_base import (
    RNNCell,
    activation_of,
    affine,
    calls_itself,
    checked_cell,
    constant_start,
    depth_of,
    positive,
)
from headrace.ops.transcendental import sigmoid
from headrace.ops.variable_scope import variable_scope

# A cell takes a function of tensors, or the name of one.
_Activation = Callable[..., Any] | str | None


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell.

    Attributes:
        c: [batch, units], what the cell remembers.
        h: [batch, output size], what it put out last.
    """

    c: Any
    h: Any

    @property
    def dtype(self) -> DType:
        """The dtype of both.

        Raises:
            DTypeError: if they differ.
        """
        if self.c.dtype != self.h.dtype:
            raise DTypeError(f"Inconsistent internal state: {self.c.dtype} vs {self.h.dtype}")
        return self.c.dtype  # type: ignore[no-any-return]


class BasicRNNCell(RNNCell):
    """The simplest cell: ``activation(W * input + U * state + bias)`` is output and state."""

    def __init__(
        self,
        num_units: int,
        activation: _Activation = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of the state.
            activation: A function of tensors or its name; tanh if None.
            reuse: As for ``RNNCell``.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
            **kwargs: ``trainable``, as for ``RNNCell``.
        """
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = positive(num_units)
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._units

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._units

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias."""
        rows = depth_of(self, input_shape) + self._units
        self._kernel = self.add_variable("kernel", [rows, self._units])
        self._bias = self.add_variable("bias", [self._units], constant_start(0.0))

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output, which is the new state, too."""
        output = self._activation(affine([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(RNNCell):
    """A gated recurrent unit."""

    def __init__(
        self,
        num_units: int,
        activation: _Activation = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of the state.
            activation: A function of tensors or its name; tanh if None.
            reuse: As for ``RNNCell``.
            kernel_initializer: Of the kernels.
            bias_initializer: Of the biases; if None those of the gates start at 1, the other at 0.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
            **kwargs: ``trainable``, as for ``RNNCell``.
        """
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = positive(num_units)
        self._activation = activation_of(activation)
        self._initializers = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._units

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._units

    def build(self, input_shape: Any) -> None:
        """Make kernels and biases of the gates and of the candidate."""
        kernel, bias = self._initializers
        rows = depth_of(self, input_shape) + self._units
        made = []
        for name, width, start in (
            ("gates", 2 * self._units, 1.0),
            ("candidate", self._units, 0.0),
        ):
            made.append(self.add_variable(f"{name}/kernel", [rows, width], kernel))
            first = constant_start(start) if bias is None else bias
            made.append(self.add_variable(f"{name}/bias", [width], first))
        self._gates, self._candidate = made[:2], made[2:]

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output, which is the new state, too."""
        reset, update = split(sigmoid(affine([inputs, state], *self._gates)), 2, 1)
        candidate = self._activation(affine([inputs, reset * state], *self._candidate))
        output = update * state + (1 - update) * candidate
        return output, output


class LSTMCell(RNNCell):
    """A long short-term memory, with peepholes, clipping and projection where asked for."""

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: float | None = None,
        initializer: Any = None,
        num_proj: int | None = None,
        proj_clip: float | None = None,
        num_unit_shards: int | None = None,
        num_proj_shards: int | None = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: _Activation = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of what the cell remembers.
            use_peepholes: Let the gates see what the cell remembers.
            cell_clip: What the cell remembers is clipped to this absolute value.
            initializer: Of kernels, projection and peepholes.
            num_proj: The size to which outputs are projected.
            proj_clip: What projected outputs are clipped to.
            num_unit_shards: Ignored; variables are never split.
            num_proj_shards: Ignored.
            forget_bias: Added to the bias of the forget gate.
            state_is_tuple: Whether states are ``LSTMStateTuple``, not [batch, units + outputs].
            activation: A function of tensors or its name; tanh if None.
            reuse: As for ``RNNCell``.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
            **kwargs: ``trainable``, as for ``RNNCell``.
        """
        del num_unit_shards, num_proj_shards
        super().__init__(name=name, dtype=dtype, _reuse=reuse, **kwargs)
        self._units = positive(num_units)
        self._outputs = self._units if num_proj is None else positive(num_proj)
        self._projects = num_proj is not None
        self._peepholes = use_peepholes
        self._clips = cell_clip, proj_clip
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = activation_of(activation)

    @property
    def state_size(self) -> Any:
        """The sizes of the state."""
        if self._state_is_tuple:
            return LSTMStateTuple(self._units, self._outputs)
        return self._units + self._outputs

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._outputs

    def build(self, input_shape: Any) -> None:
        """Make kernel and bias, peepholes and projection."""
        units, start = self._units, self._initializer
        rows = depth_of(self, input_shape) + self._outputs
        self._kernel = self.add_variable("kernel", [rows, 4 * units], start)
        self._bias = self.add_variable("bias", [4 * units], constant_start(0.0))
        if self._peepholes:
            self._diagonals = [
                self.add_variable(f"w_{gate}_diag", [units], start) for gate in ("f", "i", "o")
            ]
        if self._projects:
            shape = [units, self._outputs]
            self._projection = self.add_variable("projection/kernel", shape, start)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output and the new state."""
        if self._state_is_tuple:
            if not isinstance(state, tuple | list) or len(state) != 2:
                raise ArgumentTypeError(
                    f"the state of an LSTM cell is a pair of tensors, c and h, got {shown(state)}"
                )
            c, h = state
        else:
            c, h = split(state, [self._units, self._outputs], 1)
        # The input gate, what may be added, the forget gate and the output gate.
        i, j, f, o = split(affine([inputs, h], self._kernel, self._bias), 4, 1)
        f = f + self._forget_bias
        if self._peepholes:
            f = f + self._diagonals[0] * c
            i = i + self._diagonals[1] * c
        c = sigmoid(f) * c + sigmoid(i) * self._activation(j)
        cell_clip, proj_clip = self._clips
        if cell_clip is not None:
            c = clip_by_value(c, -cell_clip, cell_clip)
        if self._peepholes:
            o = o + self._diagonals[2] * c
        h = sigmoid(o) * self._activation(c)
        if self._projects:
            h = matmul(h, self._projection)
            if proj_clip is not None:
                h = clip_by_value(h, -proj_clip, proj_clip)
        return h, LSTMStateTuple(c, h) if self._state_is_tuple else concat([c, h], 1)


class BasicLSTMCell(LSTMCell):
    """A long short-term memory without peepholes, clipping and projection."""

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: _Activation = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of what the cell remembers, and of its output.
            forget_bias: Added to the bias of the forget gate.
            state_is_tuple: Whether states are ``LSTMStateTuple``, not [batch, 2 * units].
            activation: A function of tensors or its name; tanh if None.
            reuse: As for ``RNNCell``.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
            **kwargs: ``trainable``, as for ``RNNCell``.
        """
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
            **kwargs,
        )


class MultiRNNCell(RNNCell):
    """Cells one upon the other: each takes the output of the one below."""

    def __init__(self, cells: Sequence[Any], state_is_tuple: bool = True) -> None:
        """Make a cell of cells.

        Args:
            cells: The cells, the lowest first.
            state_is_tuple: Whether the state is a tuple of theirs, not all of them in one tensor.

        Raises:
            ArgumentTypeError: if something is no cell.
            AttributeValueError: if there are none.
        """
        super().__init__()
        if not cells:
            raise AttributeValueError("MultiRNNCell needs a cell at least")
        self._cells = [checked_cell(cell, "a cell of cells") for cell in items(cells, "cells")]
        self._state_is_tuple = state_is_tuple

    @property
    def state_size(self) -> Any:
        """The sizes of the state."""
        sizes = tuple(cell.state_size for cell in self._cells)
        return sizes if self._state_is_tuple else sum(sizes)

    @property
    def output_size(self) -> Any:
        """The size of the output: that of the last cell."""
        return self._cells[-1].output_size

    @property
    def _inner_cells(self) -> Sequence[Any]:
        """The cells of which it is made."""
        return self._cells

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables of all cells, each for the outputs of the one below."""
        if self.built:
            return
        below = flatten(inputs)[0]
        with variable_scope(scope, "multi_rnn_cell") as opened:
            if calls_itself(self):
                # Whichever makes its variables in a call does so in the scope of this cell.
                self._scope = opened
            else:
                for i, cell in enumerate(self._cells):
                    with variable_scope(f"cell_{i}"):
                        cell.prepare(below)
                    below = zeros([1, cell.output_size], below.dtype)
        self.built = True

    @property
    def variables(self) -> list[Any]:  # type: ignore[override]
        """All variables of the cells."""
        return [v for cell in self._cells for v in getattr(cell, "variables", [])]

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return the states from which the cells start."""
        if not self._state_is_tuple:
            return super().zero_state(batch_size, dtype)
        return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output of the last cell, and the new states of all."""
        sizes = [cell.state_size for cell in self._cells]
        states = state if self._state_is_tuple else split(state, sizes, 1)
        found = []
        scoped = calls_itself(self)
        for i, (cell, before) in enumerate(zip(self._cells, states, strict=True)):
            with variable_scope(f"cell_{i}") if scoped else nullcontext():
                inputs, after = cell(inputs, before)
            found.append(after)
        return inputs, tuple(found) if self._state_is_tuple else concat(found, 1)
