"""Kernels that parse examples."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from headrace import DType, Shape
from headrace.errors import InvalidArgumentError, ShapeError
from headrace.extend import KernelTable
from headrace.extend.kernels import StringRows
from headrace_io.kernels.strings import strings_of
from headrace_io.parsing.columns import Array, Label, column, dense, padded, sparse
from headrace_io.parsing.contents import Contents, contents_of, features_of, taken_together
from headrace_io.parsing.wire import Content, sequence_of

KERNELS = KernelTable()


def _batch(
    serialized: Array, names: Array, *, single: bool
) -> tuple[list[bytes] | StringRows, Label]:
    """Return the examples, and what messages call them."""
    rank, expected = np.ndim(serialized), 0 if single else 1
    if rank != expected:
        what = "a scalar" if single else "a vector"
        raise ShapeError(f"serialized must be {what}, got {rank} dimensions")
    held = isinstance(serialized, StringRows)
    examples, called = serialized if held else strings_of(serialized), strings_of(names)
    if called and len(called) != np.size(serialized):
        raise InvalidArgumentError(
            f"there are {np.size(serialized)} examples and {len(called)} names"
        )

    def label(number: int) -> str:
        if called:
            return f"example {called[number].decode(errors='replace')!r}"
        return "the example" if single else f"example {number}"

    return examples, label


def _sparse_outputs(
    contents: Mapping[bytes, Contents],
    keys: Sequence[str],
    types: Sequence[DType],
    label: Label,
    *,
    single: bool,
) -> list[Array]:
    found = []
    for key, dtype in zip(keys, types, strict=True):
        made = sparse(column(contents[key.encode()], key, dtype, label))
        if single:
            made = made[0][:, 1:], made[1], made[2][1:]
        found.append(made)
    # All indices, all values, all shapes.
    return [part for parts in zip(*found, strict=True) for part in parts]


def _dense_outputs(
    contents: Mapping[bytes, Contents],
    keys: Sequence[str],
    types: Sequence[DType],
    shapes: Sequence[Shape],
    defaults: Sequence[Array],
    label: Label,
    *,
    single: bool,
    in_rows: Collection[str] = (),
) -> list[Array]:
    outputs = []
    for key, dtype, shape, default in zip(keys, types, shapes, defaults, strict=True):
        found = column(contents[key.encode()], key, dtype, label, in_rows=key in in_rows)
        if shape.is_fully_defined():
            made = dense(found, key, shape, default, label)
        else:
            made = padded(found, key, shape[1:], default, label)
        outputs.append(made[0, ...] if single else made)
    return outputs


@KERNELS.plain("ParseExample")
def parse_example(
    xp: Any,
    serialized: Array,
    names: Array,
    dense_defaults: list[Array],
    *,
    sparse_keys: Sequence[str],
    sparse_types: Sequence[DType],
    dense_keys: Sequence[str],
    dense_types: Sequence[DType],
    dense_shapes: Sequence[Shape],
    single: bool,
    in_rows: Collection[str],
) -> Any:
    """Parse examples."""
    examples, label = _batch(serialized, names, single=single)
    if isinstance(examples, StringRows) and not (sparse_keys or np.size(names)):
        # Of features that all examples have, each gets what is its own.
        required = not any(default.size for default in dense_defaults)
        fixed = all(shape.is_fully_defined() for shape in dense_shapes)

        def together(whole: StringRows) -> list[Array] | None:
            found = taken_together(whole.rows, {key.encode() for key in dense_keys}, label)
            if found is None:
                return None
            return _dense_outputs(
                found,
                dense_keys,
                dense_types,
                dense_shapes,
                dense_defaults,
                label,
                single=False,
                in_rows=in_rows,
            )

        if required and fixed:
            whose = (dense_keys, dense_types, dense_shapes, in_rows)
            made = examples.made_together(whose, together)
            if made is not None:
                return _outputs(made)
    keys = {key.encode() for key in (*sparse_keys, *dense_keys)}
    contents = features_of(examples, keys, label)
    return _outputs(
        [
            *_sparse_outputs(contents, sparse_keys, sparse_types, label, single=single),
            *_dense_outputs(
                contents,
                dense_keys,
                dense_types,
                dense_shapes,
                dense_defaults,
                label,
                single=single,
                in_rows=in_rows,
            ),
        ]
    )


@KERNELS.plain("ParseSequenceExample")
def parse_sequence_example(
    xp: Any,
    serialized: Array,
    names: Array,
    dense_defaults: list[Array],
    *,
    sparse_keys: Sequence[str],
    sparse_types: Sequence[DType],
    dense_keys: Sequence[str],
    dense_types: Sequence[DType],
    dense_shapes: Sequence[Shape],
    list_sparse_keys: Sequence[str],
    list_sparse_types: Sequence[DType],
    list_dense_keys: Sequence[str],
    list_dense_types: Sequence[DType],
    list_dense_shapes: Sequence[Shape],
    allowed_missing: Sequence[str],
    single: bool,
) -> Any:
    """Parse examples of sequences."""
    examples, label = _batch(serialized, names, single=single)
    assert isinstance(examples, list)
    keys = {key.encode() for key in (*sparse_keys, *dense_keys)}
    list_keys = {key.encode() for key in (*list_sparse_keys, *list_dense_keys)}
    parsed = [sequence_of(d, keys, list_keys, label(i)) for i, d in enumerate(examples)]
    contents = {key: contents_of([context.get(key) for context, _ in parsed]) for key in keys}
    outputs = _sparse_outputs(contents, sparse_keys, sparse_types, label, single=single)
    outputs += _dense_outputs(
        contents, dense_keys, dense_types, dense_shapes, dense_defaults, label, single=single
    )
    lists = [found for _, found in parsed]
    made = [
        _sparse_list([found.get(key.encode()) for found in lists], key, dtype, label)
        for key, dtype in zip(list_sparse_keys, list_sparse_types, strict=True)
    ]
    if single:
        made = [(indices[:, 1:], values, shape[1:]) for indices, values, shape in made]
    outputs += [part for parts in zip(*made, strict=True) for part in parts]
    lengths = []
    for key, dtype, shape in zip(list_dense_keys, list_dense_types, list_dense_shapes, strict=True):
        steps = [found.get(key.encode()) for found in lists]
        if key not in allowed_missing and None in steps:
            raise InvalidArgumentError(
                f"{label(steps.index(None))} has no list of features {key!r}; pass "
                "allow_missing=True to take that for an empty one"
            )
        values, counts = _dense_list(steps, key, dtype, shape, label)
        outputs.append(values[0, ...] if single else values)
        lengths.append(counts[0] if single else counts)
    return _outputs([*outputs, *map(np.asarray, lengths)])


def _outputs(arrays: list[Array]) -> Any:
    # A node with one output yields a value, one with several a sequence.
    return arrays[0] if len(arrays) == 1 else arrays


def _steps(
    lists: Sequence[list[Content] | None], label: Label
) -> tuple[list[Content], Array, Label]:
    """Return all steps, one after the other, how many are each example's, and their labels."""
    counts = np.array([len(steps or ()) for steps in lists], np.int64)
    ends = np.cumsum(counts)

    def step_label(number: int) -> str:
        example = int(np.searchsorted(ends, number, side="right"))
        return f"step {number - (ends[example] - counts[example])} of {label(example)}"

    return list(itertools.chain.from_iterable(s or () for s in lists)), counts, step_label


def _sparse_list(
    lists: Sequence[list[Content] | None], key: str, dtype: DType, label: Label
) -> tuple[Array, Array, Array]:
    """Return indices [m, 3], values [m] and shape [3]: examples, steps and values."""
    steps, counts, step_label = _steps(lists, label)
    indices, values, shape = sparse(column(contents_of(steps), key, dtype, step_label))
    example = np.repeat(np.arange(len(counts)), counts)
    step = np.arange(len(steps)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows = indices[:, 0]
    placed = np.stack([example[rows], step[rows], indices[:, 1]], axis=1)
    return placed, values, np.array([len(counts), counts.max(initial=0), shape[1]], np.int64)


def _dense_list(
    lists: Sequence[list[Content] | None], key: str, dtype: DType, shape: Shape, label: Label
) -> tuple[Array, Array]:
    """Return values [n, steps, *shape], zero or empty behind the last, and numbers of steps [n]."""
    steps, counts, step_label = _steps(lists, label)
    found = column(contents_of(steps), key, dtype, step_label)
    values = dense(found, key, shape, np.empty(0), step_label)
    longest = int(counts.max(initial=0))
    made = np.zeros((len(counts), longest, *shape.known), values.dtype)
    if dtype.kind == "string":
        made.fill(b"")
    made[np.arange(longest) < counts[:, None]] = values
    return made, counts
