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

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from headrace import dtypes
from headrace.dtypes import DType, as_dtype
from headrace.errors import ArgumentTypeError, AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.structure import flatten, pack
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, shape, split, stack
from headrace.ops.clip import clip_by_value
from headrace.ops.constant import fill, zeros
from headrace.ops.get_variable import get_variable
from headrace.ops.linalg import matmul
from headrace.ops.transcendental import sigmoid, tanh
from headrace.ops.variable_scope import variable_scope
from headrace.shapes import Shape


class LSTMStateTuple(NamedTuple):
    """The state of an LSTM cell.

    Attributes:
        c: [batch, units], what the cell remembers.
        h: [batch, output size], what it put out last.
    """

    c: Any
    h: Any


class RNNCell:
    """A cell; subclasses state their sizes and say in ``call`` what a step is.

    Variables are made when a cell is first called, or by ``build``, in a variable scope that is
    named after its class, and used again by all further calls.
    """

    def __init__(self, name: str | None = None, dtype: Any = None, reuse: Any = None) -> None:
        """Make a cell without variables.

        Args:
            name: The name of its variable scope; that of its class if None, made unique.
            dtype: The dtype of its variables; that of its inputs if None.
            reuse: Whether its variables exist already, in the scope of its name.
        """
        self.name = name
        self.dtype = None if dtype is None else as_dtype(dtype)
        self.built = False
        self._reuse = reuse
        self.variables: list[Any] = []
        # The scope in which ``prepare`` builds, or else one that the first variable opens.
        self._scope: Any = None
        self._own: Any = None

    @property
    def state_size(self) -> Any:
        """The size of the state, or a structure of sizes."""
        raise NotImplementedError(f"{type(self).__name__} needs a property state_size")

    @property
    def output_size(self) -> Any:
        """The size of the output."""
        raise NotImplementedError(f"{type(self).__name__} needs a property output_size")

    @property
    def trainable_variables(self) -> list[Any]:
        """The variables that optimizers change by default."""
        return [v for v in self.variables if v.trainable]

    trainable_weights = trainable_variables
    weights = property(lambda self: self.variables)

    def build(self, inputs_shape: Any) -> None:
        """Make the variables for inputs of a shape; called once."""

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output and the new state."""
        raise NotImplementedError(f"{type(self).__name__} needs a method call(inputs, state)")

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables, unless they are there, for inputs like those given."""
        if self.built:
            return
        first = flatten(inputs)[0]
        if self.dtype is None:
            self.dtype = first.dtype
        base = _base_name(self)
        name = scope if scope is not None else self.name
        if name is None and self._reuse:
            name = base
        with variable_scope(name, base, reuse=self._reuse or None) as self._scope:
            self.build(first.shape)
        self.built = True

    @contextmanager
    def _scoped(self) -> Iterator[None]:
        """Make variables in a scope of the cell's own, also where ``build`` is called by itself."""
        if self._scope is not None:
            yield
            return
        base = _base_name(self)
        with variable_scope(self._own or self.name, base, reuse=self._reuse or None) as own:
            self._own = own
            yield

    def __call__(self, inputs: Any, state: Any, scope: Any = None) -> tuple[Any, Any]:
        """Take a step.

        Args:
            inputs: [batch, size].
            state: A structure like ``state_size`` of [batch, size].
            scope: The variable scope of the first call, in place of the cell's own.

        Returns:
            The output [batch, output_size], and the new state.
        """
        given = pack(inputs, [convert_to_tensor(x) for x in flatten(inputs)])
        self.prepare(given, scope)
        return self.call(given, state)

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros.

        Args:
            batch_size: How many examples: a number or a scalar tensor.
            dtype: The dtype.
        """
        kind = as_dtype(dtype)
        sizes = flatten(self.state_size)
        made = [zeros(_with_batch(batch_size, size), kind) for size in sizes]
        return pack(self.state_size, made)

    def get_initial_state(
        self, inputs: Any = None, batch_size: Any = None, dtype: Any = None
    ) -> Any:
        """Return a state of zeros, for a batch like ``inputs`` where these are given."""
        if inputs is not None:
            first = convert_to_tensor(flatten(inputs)[0])
            known = first.spec.shape[0] if first.shape.rank is not None else None
            batch_size = shape(first)[0] if known is None else known
            dtype = first.dtype
        if batch_size is None or dtype is None:
            raise AttributeValueError("get_initial_state needs inputs, or batch_size and dtype")
        return self.zero_state(batch_size, dtype)

    def add_variable(
        self, name: str, shape: Sequence[int], initializer: Any = None, **options: Any
    ) -> Any:
        """Make a variable, while the cell is built."""
        with self._scoped():
            variable = get_variable(name, shape, self.dtype, initializer, **options)
        self.variables.append(variable)
        return variable

    add_weight = add_variable


def _with_batch(batch_size: Any, size: Any) -> Any:
    dims = [size] if isinstance(size, int) else list(size)
    if isinstance(batch_size, Tensor):
        return stack([batch_size, *dims])
    return [int(batch_size), *dims]


def _constant(value: float) -> Callable[..., Any]:
    """Return an initializer."""

    def make(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        kind: DType = dtypes.float32 if dtype is None else as_dtype(dtype)
        return fill(list(shape), convert_to_tensor(value, kind))

    return make


def _base_name(cell: RNNCell) -> str:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", type(cell).__name__)
    return words.lower()


def _depth(cell: RNNCell, inputs_shape: Any) -> int:
    shape = Shape(inputs_shape)
    depth = shape[-1] if shape.rank else None
    if depth is None:
        raise ShapeError(
            f"{type(cell).__name__} needs inputs whose last dimension is known, got {shape}"
        )
    return int(depth)


def _positive(units: Any) -> int:
    if not isinstance(units, int) or units < 1:
        raise AttributeValueError(f"num_units must be an integer >= 1, got {shown(units)}")
    return units


def _affine(parts: Sequence[Any], kernel: Any, bias: Any) -> Tensor:
    result: Tensor = matmul(concat(list(parts), 1), kernel) + bias
    return result


class BasicRNNCell(RNNCell):
    """The simplest cell: ``activation(W * input + U * state + bias)`` is output and state."""

    def __init__(
        self,
        num_units: int,
        activation: Callable[..., Any] | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of the state.
            activation: tanh if None.
            reuse: As for ``RNNCell``.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
        """
        super().__init__(name, dtype, reuse)
        self._units = _positive(num_units)
        self._activation = tanh if activation is None else activation

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._units

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._units

    def build(self, inputs_shape: Any) -> None:
        """Make kernel and bias."""
        rows = _depth(self, inputs_shape) + self._units
        self._kernel = self.add_variable("kernel", [rows, self._units])
        self._bias = self.add_variable("bias", [self._units], _constant(0.0))

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output, which is the new state, too."""
        output = self._activation(_affine([inputs, state], self._kernel, self._bias))
        return output, output


class GRUCell(RNNCell):
    """A gated recurrent unit."""

    def __init__(
        self,
        num_units: int,
        activation: Callable[..., Any] | None = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of the state.
            activation: tanh if None.
            reuse: As for ``RNNCell``.
            kernel_initializer: Of the kernels.
            bias_initializer: Of the biases; if None those of the gates start at 1, the other at 0.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
        """
        super().__init__(name, dtype, reuse)
        self._units = _positive(num_units)
        self._activation = tanh if activation is None else activation
        self._initializers = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """The size of the state."""
        return self._units

    @property
    def output_size(self) -> int:
        """The size of the output."""
        return self._units

    def build(self, inputs_shape: Any) -> None:
        """Make kernels and biases of the gates and of the candidate."""
        kernel, bias = self._initializers
        rows = _depth(self, inputs_shape) + self._units
        made = []
        for name, width, start in (
            ("gates", 2 * self._units, 1.0),
            ("candidate", self._units, 0.0),
        ):
            made.append(self.add_variable(f"{name}/kernel", [rows, width], kernel))
            first = _constant(start) if bias is None else bias
            made.append(self.add_variable(f"{name}/bias", [width], first))
        self._gates, self._candidate = made[:2], made[2:]

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output, which is the new state, too."""
        reset, update = split(sigmoid(_affine([inputs, state], *self._gates)), 2, 1)
        candidate = self._activation(_affine([inputs, reset * state], *self._candidate))
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
        activation: Callable[..., Any] | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
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
            activation: tanh if None.
            reuse: As for ``RNNCell``.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
        """
        del num_unit_shards, num_proj_shards
        super().__init__(name, dtype, reuse)
        self._units = _positive(num_units)
        self._outputs = self._units if num_proj is None else _positive(num_proj)
        self._projects = num_proj is not None
        self._peepholes = use_peepholes
        self._clips = cell_clip, proj_clip
        self._initializer = initializer
        self._forget_bias = forget_bias
        self._state_is_tuple = state_is_tuple
        self._activation = tanh if activation is None else activation

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

    def build(self, inputs_shape: Any) -> None:
        """Make kernel and bias, peepholes and projection."""
        units, start = self._units, self._initializer
        rows = _depth(self, inputs_shape) + self._outputs
        self._kernel = self.add_variable("kernel", [rows, 4 * units], start)
        self._bias = self.add_variable("bias", [4 * units], _constant(0.0))
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
        i, j, f, o = split(_affine([inputs, h], self._kernel, self._bias), 4, 1)
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
        activation: Callable[..., Any] | None = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        """Make a cell.

        Args:
            num_units: The size of what the cell remembers, and of its output.
            forget_bias: Added to the bias of the forget gate.
            state_is_tuple: Whether states are ``LSTMStateTuple``, not [batch, 2 * units].
            activation: tanh if None.
            reuse: As for ``RNNCell``.
            name: As for ``RNNCell``.
            dtype: As for ``RNNCell``.
        """
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
            dtype=dtype,
        )


class MultiRNNCell(RNNCell):
    """Cells one upon the other: each takes the output of the one below."""

    def __init__(self, cells: Sequence[RNNCell], state_is_tuple: bool = True) -> None:
        """Make a cell of cells.

        Args:
            cells: The cells, the lowest first.
            state_is_tuple: Whether the state is a tuple of theirs, not all of them in one tensor.
        """
        super().__init__()
        if not cells:
            raise AttributeValueError("MultiRNNCell needs a cell at least")
        self._cells = list(cells)
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

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables of all cells, each for the outputs of the one below."""
        if self.built:
            return
        below = flatten(inputs)[0]
        with variable_scope(scope, "multi_rnn_cell"):
            for i, cell in enumerate(self._cells):
                with variable_scope(f"cell_{i}"):
                    cell.prepare(below)
                below = zeros([1, cell.output_size], below.dtype)
                self.variables += cell.variables
        self.built = True

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Return the output of the last cell, and the new states of all."""
        sizes = [cell.state_size for cell in self._cells]
        states = state if self._state_is_tuple else split(state, sizes, 1)
        found = []
        for cell, before in zip(self._cells, states, strict=True):
            inputs, after = cell(inputs, before)
            found.append(after)
        return inputs, tuple(found) if self._state_is_tuple else concat(found, 1)
