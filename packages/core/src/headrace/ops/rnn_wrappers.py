"""Cells that change what other cells take and put out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from headrace.arguments import mapping
from headrace.dtypes import as_dtype
from headrace.errors import AttributeValueError, ShapeError, told
from headrace.graph.scopes import device
from headrace.graph.structure import flatten, pack
from headrace.ops.elementwise import floor
from headrace.ops.normalization import dropout
from headrace.ops.random import random_uniform
from headrace.ops.rnn_base import RNNCell, checked_cell, known_cells, prepare
from headrace.ops.rnn_cells import LSTMStateTuple
from headrace.ops.rnn_config import arguments_of
from headrace.shapes import Shape


class _Wrapper(RNNCell):
    """A cell around a cell, without variables of its own."""

    def __init__(self, cell: RNNCell, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._cell: Any = checked_cell(cell, "cell")

    @property
    def wrapped_cell(self) -> Any:
        """The cell inside."""
        return self._cell

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Mapping[str, type[RNNCell]] | None = None
    ) -> Self:
        """Return a cell that is made like another one.

        Args:
            config: What ``get_config`` of that one returned.
            custom_objects: Further classes of cells by the names that they have in ``config``.
                Those of the program are known anyway.

        Raises:
            ArgumentTypeError: if one of the arguments is no dict.
            AttributeValueError: if it names a class that there is not.
        """
        further = mapping(custom_objects, "custom_objects")
        return cls(**arguments_of(cls, config, {**known_cells(), **further}))

    @property
    def state_size(self) -> Any:
        """The size of the state of the cell inside."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """The size of the output of the cell inside."""
        return self._cell.output_size

    @property
    def _inner_cells(self) -> Sequence[Any]:
        """The cell inside."""
        return (self._cell,)

    def prepare(self, inputs: Any, scope: Any = None) -> None:
        """Make the variables of the cell inside."""
        self._made, self.built = prepare(self._cell, inputs, scope), True

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros of the cell inside."""
        return self._cell.zero_state(batch_size, dtype)


class DropoutWrapper(_Wrapper):
    """Drops some of what a cell takes, puts out and remembers, anew at every step, or always alike.

    References:
        Y. Gal, Z. Ghahramani, A theoretically grounded application of dropout in recurrent neural
        networks, NIPS 2016, https://arxiv.org/abs/1512.05287
    """

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
        **kwargs: Any,
    ) -> None:
        """Wrap a cell.

        Args:
            cell: The cell.
            input_keep_prob: How likely an element of the input is kept: a number or a scalar
                tensor.
            output_keep_prob: The same for the output.
            state_keep_prob: The same for the new state.
            variational_recurrent: Whether the same elements are dropped at every step of a run, and
                of all examples.
            input_size: The size of inputs, which ``variational_recurrent`` needs to drop some.
            dtype: The dtype of inputs, outputs and states, which ``variational_recurrent`` needs.
            seed: Seeds what is dropped.
            dropout_state_filter_visitor: From a part of the state to whether its elements are
                dropped, as a structure of booleans; if None the ``c`` of LSTM states are kept.
            **kwargs: ``name`` and ``trainable``, as for ``RNNCell``.

        Raises:
            AttributeValueError: if a number is no probability, or ``variational_recurrent`` lacks
                what it needs.
        """
        super().__init__(cell, dtype=dtype, **kwargs)
        self._keep = input_keep_prob, output_keep_prob, state_keep_prob
        for value in self._keep:
            if isinstance(value, int | float) and not 0 < value <= 1:
                raise AttributeValueError(
                    f"a probability to keep must be in (0, 1], got {told(value)}"
                )
        self._seed = seed
        self._visitor = dropout_state_filter_visitor
        # What is drawn once for a run, by what it is for.
        self._noise: dict[int, list[Any]] = {}
        if variational_recurrent:
            if dtype is None:
                raise AttributeValueError("variational_recurrent=True needs a dtype")
            if input_size is None and not _keeps_all(input_keep_prob):
                raise AttributeValueError(
                    "variational_recurrent=True needs an input_size where inputs are dropped"
                )
            drawn = {_OUTPUT: cell.output_size, _STATE: cell.state_size}
            if not _keeps_all(input_keep_prob):
                drawn[_INPUT] = input_size
            for what, sizes in drawn.items():
                self._noise[what] = [
                    random_uniform([1, *_dims(size)], dtype=as_dtype(dtype), seed=self._own_seed(i))
                    for i, size in enumerate(flatten(sizes), 7 * what)
                ]

    def _own_seed(self, number: int) -> int | None:
        # Seeds of their own, so that what is dropped of one tells nothing of another.
        return None if self._seed is None else self._seed + number

    def _dropped(self, values: Any, keep: Any, what: int) -> Any:
        if _keeps_all(keep):
            return values
        tensors = flatten(values)
        if what in self._noise:
            pairs = zip(tensors, self._noise[what], strict=True)
            found = [t / keep * floor(keep + noise) for t, noise in pairs]
        else:
            found = [
                dropout(t, keep_prob=keep, seed=self._own_seed(what + 101 * i))
                for i, t in enumerate(tensors)
            ]
        return pack(values, found)

    def _dropped_state(self, state: Any) -> Any:
        keep, leaves = self._keep[2], flatten(state)
        chosen = _dropped_parts(state) if self._visitor is None else self._visitor(state)
        mask = [chosen] * len(leaves) if isinstance(chosen, bool) else flatten(chosen)
        all_dropped = flatten(self._dropped(state, keep, _STATE))
        pairs = zip(leaves, all_dropped, mask, strict=True)
        return pack(state, [dropped if drop else kept for kept, dropped, drop in pairs])

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Take a step of the cell inside, between what is dropped."""
        output, after = self._cell(self._dropped(inputs, self._keep[0], _INPUT), state)
        if not _keeps_all(self._keep[2]):
            after = self._dropped_state(after)
        return self._dropped(output, self._keep[1], _OUTPUT), after


# What elements are dropped of; numbers that are part of their seeds.
_STATE, _INPUT, _OUTPUT = 1, 2, 3


def _keeps_all(keep: Any) -> bool:
    return isinstance(keep, int | float) and keep == 1


def _dims(size: Any) -> list[int]:
    return [size] if isinstance(size, int) else list(Shape(size).known)


def _dropped_parts(state: Any) -> Any:
    """Return which parts of a state are dropped: all but the ``c`` of LSTM states."""
    if isinstance(state, LSTMStateTuple):
        return LSTMStateTuple(False, True)
    if isinstance(state, tuple):
        return tuple(map(_dropped_parts, state))
    return True


class DeviceWrapper(_Wrapper):
    """Asks for a device for the steps of a cell."""

    def __init__(self, cell: RNNCell, device: Any, **kwargs: Any) -> None:
        """Wrap a cell.

        Args:
            cell: The cell.
            device: The device, as for ``hr.device``.
            **kwargs: ``name`` and ``trainable``, as for ``RNNCell``.
        """
        super().__init__(cell, **kwargs)
        self._device = device

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros of the cell inside."""
        with device(self._device):
            return self._cell.zero_state(batch_size, dtype)

    def call(self, inputs: Any, state: Any) -> tuple[Any, Any]:
        """Take a step of the cell inside."""
        with device(self._device):
            found: tuple[Any, Any] = self._cell(inputs, state)
        return found


class ResidualWrapper(_Wrapper):
    """Adds what a cell takes to what it puts out."""

    def __init__(
        self,
        cell: RNNCell,
        residual_fn: Callable[[Any, Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Wrap a cell.

        Args:
            cell: The cell.
            residual_fn: From the input and the cell's output to the output; their sum if None.
            **kwargs: ``name`` and ``trainable``, as for ``RNNCell``.
        """
        super().__init__(cell, **kwargs)
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
