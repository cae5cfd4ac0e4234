"""Recurrent networks whose inputs and states a function of the program gives, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import dtypes
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    GraphError,
    StructureError,
    shown,
)
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import control_dependencies
from headrace.graph.structure import flatten, pack, same_structure
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, reshape, shape
from headrace.ops.constant import constant, zeros
from headrace.ops.control import group
from headrace.ops.elementwise import logical_not, logical_or, select
from headrace.ops.identity import identity
from headrace.ops.loop import while_loop
from headrace.ops.reduce import reduce_all
from headrace.ops.rnn import static_rnn
from headrace.ops.rnn_base import RNNCell, checked_cell, prepare
from headrace.ops.tensor_array import TensorArray
from headrace.ops.variable_scope import variable_scope
from headrace.shapes import Shape


def raw_rnn(
    cell: RNNCell,
    loop_fn: Callable[..., Any],
    parallel_iterations: int | None = None,
    swap_memory: bool = False,
    scope: Any = None,
) -> tuple[Any, Any, Any]:
    """Take a cell along sequences, of which a function says what comes next.

    Args:
        cell: The cell.
        loop_fn: ``loop_fn(time, cell_output, cell_state, loop_state)``, which returns
            ``(finished, next_input, next_state, emitted, next_loop_state)``. Before the first step
            it is called with None for the three: ``next_state`` is then what to start from,
            ``emitted`` an example of one output, without the batch (None for what the cell puts
            out), and ``next_loop_state`` a state of its own, None where it has none. ``finished``
            [batch], bool, says which sequences have ended: they emit zeros, and keep their state.
        parallel_iterations: As for ``while_loop``; 32 if None.
        swap_memory: As for ``while_loop``.
        scope: The variable scope, "rnn" if None.

    Returns:
        Arrays of what was emitted at each step, in the structure of that; the last state; and the
        last state of ``loop_fn``, None where it has none.

    Raises:
        ArgumentTypeError: if ``cell`` is no cell, or ``loop_fn`` no function.
        StructureError: if the structures that it returns differ.
        AttributeValueError: if the input has no axis of examples.
    """
    checked_cell(cell, "cell")
    if not callable(loop_fn):
        raise ArgumentTypeError(f"loop_fn must be callable, got {shown(loop_fn)}")
    with variable_scope("rnn" if scope is None else scope):
        time = constant(0, dtypes.int32)
        finished, following, state, example, memory = loop_fn(time, None, None, None)
        following = _tensors(following)
        state = _tensors(state)
        if not same_structure(state, cell.state_size):
            raise GraphError(
                f"loop_fn must start with a state like {shown(cell.state_size)} of the cell, got "
                f"{shown(state)}"
            )
        batch = _batch(flatten(following)[0])
        has_memory = memory is not None
        memory = _tensors(memory) if has_memory else constant(0, dtypes.int32)
        form, sizes, kinds = _emitted(cell, example, state)
        arrays = [
            TensorArray(
                kind,
                0,
                dynamic_size=True,
                element_shape=Shape([batch if isinstance(batch, int) else None]).concatenate(
                    size if isinstance(size, Shape) else Shape(None)
                ),
            )
            for kind, size in zip(kinds, sizes, strict=True)
        ]
        nothing = [zeros(_sized(batch, n), kind) for kind, n in zip(kinds, sizes, strict=True)]
        prepare(cell, following)

        def body(
            time: Tensor, ended: Tensor, given: Any, written: Any, before: Any, memory: Any
        ) -> Any:
            output, after = cell(given, before)
            now, following, after, emitted, remembered = loop_fn(time + 1, output, after, memory)
            after = _tensors(after)
            _check_form(after, before, "state")
            emitted = _tensors(emitted)
            _check_form(emitted, form, "output")
            made = [
                array.write(time, _kept(ended, zero, new))
                for array, zero, new in zip(written, nothing, flatten(emitted), strict=True)
            ]
            pairs = zip(flatten(before), flatten(after), strict=True)
            kept = pack(before, [_kept(ended, old, new) for old, new in pairs])
            memory = memory if remembered is None else _tensors(remembered)
            return time + 1, logical_or(ended, now), _tensors(following), made, kept, memory

        _, _, _, written, state, memory = while_loop(
            lambda time, ended, *_: logical_not(reduce_all(ended)),
            body,
            (time, convert_to_tensor(finished), following, arrays, state, memory),
            parallel_iterations=32 if parallel_iterations is None else parallel_iterations,
            swap_memory=swap_memory,
        )
        return _packed(form, written), state, memory if has_memory else None


def _tensors(structure: Any) -> Any:
    """Return a structure with tensors in place of plain data; arrays of tensors as they are."""
    leaves = flatten(structure, composites=False)
    made = [t if isinstance(t, TensorArray) else convert_to_tensor(t) for t in leaves]
    return pack(structure, made, composites=False)


def _packed(form: Any, arrays: Sequence[TensorArray]) -> Any:
    return pack(form, list(arrays), composites=False)


def _batch(first: Tensor) -> Any:
    if first.shape.rank == 0:
        raise AttributeValueError("the input of a recurrent network needs an axis of examples")
    known = None if first.shape.rank is None else first.spec.shape[0]
    return shape(first)[0] if known is None else known


def _emitted(cell: RNNCell, example: Any, state: Any) -> tuple[Any, list[Any], list[Any]]:
    """Return the structure of what a step emits, and the sizes and dtypes of its parts."""
    if example is None:
        leaves = flatten(cell.output_size)
        kind = flatten(state)[0].dtype
        sizes = [Shape([n] if isinstance(n, int) else n) for n in leaves]
        return cell.output_size, list(sizes), [kind] * len(sizes)
    given = [convert_to_tensor(t) for t in flatten(example)]
    sized = [t.spec.shape if t.shape.is_fully_defined() else shape(t) for t in given]
    return example, sized, [t.dtype for t in given]


def _sized(batch: Any, size: Any) -> Any:
    if isinstance(size, Shape) and isinstance(batch, int):
        return [batch, *size.known]
    inner = list(size.known) if isinstance(size, Shape) else size
    return concat([reshape(batch, [1]), convert_to_tensor(inner, dtypes.int32)], 0)


def _kept(ended: Tensor, old: Any, new: Any) -> Any:
    """Return the new rows, of sequences that have ended the old ones."""
    if isinstance(old, TensorArray) or new.shape.rank == 0:
        return new
    rank = new.shape.rank if new.shape.rank is not None else 2
    made = select(reshape(ended, [-1] + [1] * (rank - 1)), old, new)
    made.set_shape(old.spec.shape)
    return made


def _check_form(given: Any, expected: Any, what: str) -> None:
    if not same_structure(given, expected):
        raise StructureError(
            f"loop_fn must return the same structure of {what} each time, {shown(expected)}; got "
            f"{shown(given)}"
        )


def static_state_saving_rnn(
    cell: RNNCell,
    inputs: Sequence[Any],
    state_saver: Any,
    state_name: Any,
    sequence_length: Any = None,
    scope: Any = None,
) -> tuple[list[Any], Any]:
    """Take a cell along parts of sequences, whose states an object keeps between steps.

    Args:
        cell: The cell.
        inputs: For each time step [batch, size].
        state_saver: Has ``state(name)``, which returns the state to start from, and
            ``save_state(name, value)``, which returns an operation.
        state_name: The name of the state, names in its structure where it has one.
        sequence_length: As for ``static_rnn``.
        scope: The variable scope, "rnn" if None.

    Returns:
        The outputs, and the last state. Both wait for the state to be kept.

    Raises:
        AttributeValueError: if names and states differ in number.
    """
    sizes, names = cell.state_size, state_name
    nested = isinstance(sizes, list | tuple)
    if nested != isinstance(names, list | tuple):
        raise AttributeValueError(
            "state_name should be the same type as cell.state_size: "
            f"{shown(names)} for {shown(sizes)}"
        )
    listed = flatten(names)
    if len(listed) != len(flatten(sizes)):
        raise AttributeValueError(
            f"{len(listed)} names for a state of {len(flatten(sizes))} parts; give one for each"
        )
    start = pack(sizes, [state_saver.state(name) for name in listed])
    outputs, state = static_rnn(
        cell, inputs, initial_state=start, sequence_length=sequence_length, scope=scope
    )
    leaves = flatten(state)
    saved = [state_saver.save_state(n, part) for n, part in zip(listed, leaves, strict=True)]
    with control_dependencies([group(*saved)]):
        last = outputs[-1]
        outputs[-1] = pack(last, [identity(t) for t in flatten(last)])
        state = pack(state, [identity(t) for t in leaves])
    return outputs, state
