"""Recurrent networks: cells taken along sequences, in a loop or unrolled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import dtypes
from headrace.dtypes import as_dtype, tensor_list
from headrace.errors import ArgumentTypeError, AttributeValueError, GraphError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.structure import flatten, pack, same_structure
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, reshape, shape, stack, transpose, unstack
from headrace.ops.constant import zeros, zeros_like
from headrace.ops.conversion import saturate_cast
from headrace.ops.elementwise import less, select
from headrace.ops.identity import ensure_shape
from headrace.ops.loop import while_loop
from headrace.ops.rearrange import reverse, reverse_sequence
from headrace.ops.rnn_base import RNNCell, calls_itself, checked_cell
from headrace.ops.tensor_array import TensorArray
from headrace.ops.variable_scope import variable_scope
from headrace.shapes import Shape


def _batch_size(first: Tensor, axis: int) -> Any:
    if first.shape.rank is None or first.shape.rank <= axis:
        raise ShapeError(
            f"inputs of a recurrent network need more than {axis} dimensions, got "
            f"{first.spec.shape}"
        )
    known = first.spec.shape[axis]
    return shape(first)[axis] if known is None else known


def _start(cell: RNNCell, state: Any, dtype: Any, batch: Any) -> Any:
    if state is not None:
        return pack(state, [convert_to_tensor(t) for t in flatten(state)])
    if dtype is None:
        raise AttributeValueError("a recurrent network needs initial_state or dtype")
    make = getattr(cell, "get_initial_state", None)
    if make is None:
        return cell.zero_state(batch, dtype)
    return make(inputs=None, batch_size=batch, dtype=dtype)


def _lengths(sequence_length: Any) -> Tensor | None:
    if sequence_length is None:
        return None
    lengths: Tensor = saturate_cast(convert_to_tensor(sequence_length), dtypes.int32)
    if lengths.shape.rank not in (None, 1):
        raise ShapeError(f"sequence_length must be [batch], got shape {lengths.spec.shape}")
    return lengths


def _check_steps(inputs: Any, name: str) -> None:
    if not isinstance(inputs, list | tuple):
        raise ArgumentTypeError(
            f"{name}: inputs must be a list of tensors, one for each time step, got "
            f"{shown(inputs)}; hr.unstack makes one of a tensor"
        )
    if not inputs:
        raise AttributeValueError(f"{name} needs a list of inputs, one for each time step")


def _stepped(
    cell: RNNCell, inputs: Any, state: Any, lengths: Tensor | None, time: Any
) -> tuple[Any, Any]:
    """Take a step; where a sequence has ended, put out zeros and keep the state."""
    output, after = cell(inputs, state)
    if lengths is None:
        return output, after
    going = less(time, lengths)

    def kept(new: Tensor, old: Tensor) -> Tensor:
        if new.shape.rank == 0 or new.dtype == tensor_list:
            return new
        rank = new.shape.rank if new.shape.rank is not None else 2
        return select(reshape(going, [-1] + [1] * (rank - 1)), new, old)

    outputs = [kept(t, zeros_like(t)) for t in flatten(output)]
    states = [kept(new, old) for new, old in zip(flatten(after), flatten(state), strict=True)]
    return pack(output, outputs), pack(after, states)


def static_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    initial_state: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any]:
    """Take a cell along sequences, a step of the graph for each of the time.

    Args:
        cell: The cell.
        inputs: For each time step [batch, size].
        initial_state: What to start from; zeros if None.
        dtype: The dtype of zeros to start from.
        sequence_length: [batch], int32 or int64: after so many steps outputs are zero, and states
            stay.
        scope: The variable scope, "rnn" if None.

    Returns:
        A tuple of the list of outputs [batch, output size] and the last state.

    Raises:
        ArgumentTypeError: if ``cell`` is no cell, or the inputs are no list.
        AttributeValueError: if there are no inputs, or neither ``initial_state`` nor ``dtype``.
    """
    checked_cell(cell, "cell")
    _check_steps(inputs, "static_rnn")
    with variable_scope("rnn" if scope is None else scope) as opened:
        steps = [pack(x, [convert_to_tensor(t) for t in flatten(x)]) for x in inputs]
        first = flatten(steps[0])[0]
        state = _start(cell, initial_state, dtype, _batch_size(first, 0))
        lengths = _lengths(sequence_length)
        outputs = []
        for time, step in enumerate(steps):
            if time == 1:
                # Cells that make their variables when they are called find them again.
                opened.reuse_variables()
            output, state = _stepped(cell, step, state, lengths, time)
            outputs.append(output)
        return outputs, state


def dynamic_rnn(
    cell: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[Any, Any]:
    """Take a cell along sequences in a loop.

    Args:
        cell: The cell.
        inputs: [batch, time, size], or a structure of such.
        sequence_length: [batch], int32 or int64: after so many steps outputs are zero, and states
            stay.
        initial_state: What to start from; zeros if None.
        dtype: The dtype of zeros to start from.
        parallel_iterations: As for ``while_loop``; 32 if None.
        swap_memory: As for ``while_loop``.
        time_major: Whether inputs and outputs are [time, batch, size].
        scope: The variable scope, "rnn" if None.

    Returns:
        A tuple of the outputs [batch, time, output size] and the last state.

    Raises:
        ArgumentTypeError: if ``cell`` is no cell.
        AttributeValueError: if there is neither ``initial_state`` nor ``dtype``.
        ShapeError: if inputs have fewer than 3 dimensions.
    """
    checked_cell(cell, "cell")
    with variable_scope("rnn" if scope is None else scope):
        given = [convert_to_tensor(t) for t in flatten(inputs)]
        if not given:
            raise AttributeValueError(f"a recurrent network needs inputs, got {shown(inputs)}")
        for t in given:
            if t.shape.rank is not None and t.shape.rank < 3:
                raise ShapeError(
                    f"inputs of dynamic_rnn need 3 dimensions, got shape {t.spec.shape}; expected "
                    "[batch, time, features], or [time, batch, features] with time_major=True"
                )
        batch = _batch_size(given[0], 1 if time_major else 0)
        steps = given if time_major else [_swapped(t) for t in given]
        state = _start(cell, initial_state, dtype, batch)
        lengths = _lengths(sequence_length)
        count = _batch_size(steps[0], 0)
        arrays = [TensorArray(t.dtype, count).unstack(t) for t in steps]
        example = [t[0] if t.spec.shape[0] != 0 else zeros(shape(t)[1:], t.dtype) for t in steps]
        if calls_itself(cell):
            sample, outputs = _announced(cell, batch, dtype, state, count)
        else:
            # Variables are made outside of the loop, for inputs that are like those inside.
            cell.prepare(pack(inputs, example))
            # Of one step, for structure, dtypes and shapes of the outputs; nothing of it runs.
            sample, _ = cell(pack(inputs, example), state)
            leaves = flatten(sample)
            outputs = [TensorArray(t.dtype, count, element_shape=t.shape) for t in leaves]

        def body(time: Tensor, written: Any, before: Any) -> Any:
            step = pack(inputs, [array.read(time) for array in arrays])
            step = pack(step, [_like(t, e) for t, e in zip(flatten(step), example, strict=True)])
            output, after = _stepped(cell, step, before, lengths, time)
            if not same_structure(output, sample):
                raise GraphError(
                    f"a cell must put out what its output_size says, {shown(sample)}; got "
                    f"{shown(output)}"
                )
            made = [a.write(time, t) for a, t in zip(written, flatten(output), strict=True)]
            return time + 1, made, _shaped_as(after, before)

        _, filled, state = while_loop(
            lambda time, *_: less(time, count),
            body,
            (convert_to_tensor(0), outputs, state),
            parallel_iterations=32 if parallel_iterations is None else parallel_iterations,
            swap_memory=swap_memory,
            return_same_structure=True,
        )
        stacked = [array.stack() for array in filled]
        for t in stacked:
            if t.shape.rank is not None:
                t.set_shape([steps[0].spec.shape[0], *list(t.spec.shape)[1:]])
        if not time_major:
            stacked = [_swapped(t) for t in stacked]
        return pack(sample, stacked), state


def _announced(
    cell: Any, batch: Any, dtype: Any, state: Any, count: Any
) -> tuple[Any, list[TensorArray]]:
    """Return what a cell says of its outputs, and arrays for those of all steps.

    Raises:
        AttributeValueError: if neither ``dtype`` nor the state says of which dtype they are.
    """
    kinds = {t.dtype for t in flatten(state)}
    if dtype is None and len(kinds) != 1:
        raise AttributeValueError(
            "dynamic_rnn needs dtype, where states are of several: it is that of the outputs"
        )
    kind = as_dtype(dtype) if dtype is not None else kinds.pop()
    first = Shape([batch if isinstance(batch, int) else None])
    arrays = []
    for size in flatten(cell.output_size):
        inner = Shape([size] if isinstance(size, int) else size)
        arrays.append(TensorArray(kind, count, element_shape=first.concatenate(inner)))
    return cell.output_size, arrays


def _swapped(t: Tensor) -> Tensor:
    """Return a tensor with its first two axes swapped."""
    rank = t.shape.rank
    if rank is None:
        raise ShapeError("dynamic_rnn needs inputs whose number of dimensions is known")
    return transpose(t, [1, 0, *range(2, rank)])


def _like(t: Tensor, example: Tensor) -> Tensor:
    return ensure_shape(t, example.spec.shape)


def _shaped_as(after: Any, before: Any) -> Any:
    pairs = zip(flatten(after), flatten(before), strict=True)
    # What a TensorArray holds has no shape to keep to.
    kept = [a if a.dtype == tensor_list else ensure_shape(a, b.shape) for a, b in pairs]
    return pack(before, kept)


def bidirectional_dynamic_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Any,
    sequence_length: Any = None,
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    time_major: bool = False,
    scope: Any = None,
) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """Take one cell forwards and another backwards along sequences.

    Args:
        cell_fw: The cell that goes forwards.
        cell_bw: The cell that goes backwards, from the end of each sequence.
        inputs: [batch, time, size].
        sequence_length: As for ``dynamic_rnn``.
        initial_state_fw: What the first cell starts from; zeros if None.
        initial_state_bw: What the other cell starts from; zeros if None.
        dtype: The dtype of zeros to start from.
        parallel_iterations: As for ``while_loop``; 32 if None.
        swap_memory: As for ``while_loop``.
        time_major: Whether inputs and outputs are [time, batch, size].
        scope: The variable scope, "bidirectional_rnn" if None.

    Returns:
        A tuple of the outputs of both cells, in the order of the inputs, and their last states.

    Raises:
        ArgumentTypeError: if a cell is none.
        AttributeValueError: if a state to start from is missing, and ``dtype``, too.
    """
    checked_cell(cell_fw, "cell_fw")
    checked_cell(cell_bw, "cell_bw")
    time_axis, batch_axis = (0, 1) if time_major else (1, 0)

    def backwards(t: Any) -> Tensor:
        if sequence_length is None:
            return reverse(t, [time_axis])
        return reverse_sequence(t, sequence_length, seq_axis=time_axis, batch_axis=batch_axis)

    options = (dtype, parallel_iterations, swap_memory, time_major)
    with variable_scope("bidirectional_rnn" if scope is None else scope):
        with variable_scope("fw") as inner:
            ahead, state_fw = dynamic_rnn(
                cell_fw, inputs, sequence_length, initial_state_fw, *options, inner
            )
        with variable_scope("bw") as inner:
            given = pack(inputs, [backwards(convert_to_tensor(t)) for t in flatten(inputs)])
            behind, state_bw = dynamic_rnn(
                cell_bw, given, sequence_length, initial_state_bw, *options, inner
            )
        behind = pack(behind, [backwards(t) for t in flatten(behind)])
    return (ahead, behind), (state_fw, state_bw)


def static_bidirectional_rnn(
    cell_fw: RNNCell,
    cell_bw: RNNCell,
    inputs: Sequence[Any],
    initial_state_fw: Any = None,
    initial_state_bw: Any = None,
    dtype: Any = None,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Tensor], Any, Any]:
    """Take one cell forwards and another backwards along sequences, unrolled.

    Args:
        cell_fw: The cell that goes forwards.
        cell_bw: The cell that goes backwards, from the end of each sequence.
        inputs: For each time step [batch, size].
        initial_state_fw: What the first cell starts from; zeros if None.
        initial_state_bw: What the other cell starts from; zeros if None.
        dtype: The dtype of zeros to start from.
        sequence_length: As for ``static_rnn``.
        scope: The variable scope, "bidirectional_rnn" if None.

    Returns:
        A tuple of the list of outputs, those of both cells joined along the last axis, and the
        last states of both.

    Raises:
        ArgumentTypeError: if a cell is none, or the inputs are no list.
        AttributeValueError: if there are no inputs, or neither a state nor ``dtype``.
    """
    checked_cell(cell_fw, "cell_fw")
    checked_cell(cell_bw, "cell_bw")
    _check_steps(inputs, "static_bidirectional_rnn")

    def backwards(steps: Sequence[Any]) -> list[Any]:
        if sequence_length is None:
            return list(steps)[::-1]
        # Of each part of a step by itself, where steps are structures.
        turned = []
        for parts in zip(*map(flatten, steps), strict=True):
            whole = stack([convert_to_tensor(t) for t in parts])
            found = reverse_sequence(whole, sequence_length, seq_axis=0, batch_axis=1)
            turned.append(unstack(found, len(steps)))
        return [pack(steps[0], list(parts)) for parts in zip(*turned, strict=True)]

    with variable_scope("bidirectional_rnn" if scope is None else scope):
        with variable_scope("fw") as inner:
            ahead, state_fw = static_rnn(
                cell_fw, inputs, initial_state_fw, dtype, sequence_length, inner
            )
        with variable_scope("bw") as inner:
            behind, state_bw = static_rnn(
                cell_bw, backwards(inputs), initial_state_bw, dtype, sequence_length, inner
            )
    found = []
    for one, two in zip(ahead, backwards(behind), strict=True):
        parts = zip(flatten(one), flatten(two), strict=True)
        found.append(pack(one, [concat([a, b], 1) for a, b in parts]))
    return found, state_fw, state_bw
