"""Variables with a row or column for each word of a vocabulary, when the vocabulary changes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

import headrace as hr
from headrace import Tensor, Variable
from headrace.errors import (
    ArgumentTypeError,
    AttributeValueError,
    CheckpointMismatchError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    shown,
)
from headrace.extend.arguments import whole
from headrace_train.checkpoint.opening import OpenCheckpoint
from headrace_train.from_checkpoint.assignments import entry_of, whole_of
from headrace_train.from_checkpoint.initializing import restored_tensor, set_initial_value


class _Fields(NamedTuple):
    new_vocab: str
    new_vocab_size: int
    num_oov_buckets: int
    old_vocab: str
    old_vocab_size: int
    backup_initializer: Any
    axis: int


class VocabInfo(_Fields):
    """The vocabularies of a variable in a checkpoint and of the one that takes its values.

    A vocabulary is a text file with a word on each line; the word of line ``i`` belongs to the row
    ``i`` of the variable, or to its column.

    Attributes:
        new_vocab: The file of the new vocabulary.
        new_vocab_size: How many of its words, from the first on, the variable has.
        num_oov_buckets: How many rows follow for words that are not in it.
        old_vocab: The file of the vocabulary of the checkpoint.
        old_vocab_size: How many of its words there were; -1 for all.
        backup_initializer: What makes the rows of new words; zeros if None.
        axis: 0 for rows, 1 for columns.
    """

    __slots__ = ()

    def __new__(
        cls,
        new_vocab: str,
        new_vocab_size: int,
        num_oov_buckets: int,
        old_vocab: str,
        old_vocab_size: int = -1,
        backup_initializer: Any = None,
        axis: int = 0,
    ) -> Self:
        """Describe the vocabularies.

        Raises:
            AttributeValueError: if ``axis`` is neither 0 nor 1.
        """
        if whole(axis, "axis") not in (0, 1):
            raise AttributeValueError(f"axis must be 0 or 1, got {shown(axis)}")
        fields = (new_vocab, new_vocab_size, num_oov_buckets, old_vocab)
        return super().__new__(cls, *fields, old_vocab_size, backup_initializer, axis)


def prepared(
    variables: tuple[Variable, ...],
    checkpoint: str,
    opened: OpenCheckpoint,
    tensor: str,
    info: VocabInfo,
) -> Callable[[], None]:
    """Prepare to initialize a variable with the values of the words that both vocabularies have.

    Args:
        variables: The variable, or its parts.
        checkpoint: The prefix of the checkpoint.
        opened: The same, opened.
        tensor: The name of the tensor in it.
        info: The vocabularies, which are read now.

    Returns:
        A function that gives the variables their initializers.

    Raises:
        AttributeValueError: if the variable does not have as many rows, or ``info`` makes no sense.
        CheckpointError: if the checkpoint does not have the tensor, or a tensor that fits.
        NotFoundError: if there is no such vocabulary.
        InvalidArgumentError: if a vocabulary has too few words.
        FailedPreconditionError: if a word is twice in the old one.
    """
    if not (info.new_vocab and info.new_vocab_size and info.old_vocab):
        raise AttributeValueError(
            "a VocabInfo needs new_vocab, new_vocab_size and old_vocab, got "
            f"{shown(info.new_vocab)}, "
            f"{shown(info.new_vocab_size)} and {shown(info.old_vocab)}"
        )
    entry = entry_of(tensor, opened)
    whole = list((whole_of(variables) or hr.Shape(None)).known)
    _check_sizes(variables[0], whole, info)
    expected = [*whole]
    if len(entry.shape) == len(whole):
        expected[info.axis] = entry.shape[info.axis]
    if list(entry.shape) != expected or entry.dtype != variables[0].dtype.name:
        raise CheckpointMismatchError(
            f"the tensor {tensor!r} in {opened.path} is {entry.dtype}{list(entry.shape)}, expected "
            f"{variables[0].dtype}{expected} for {variables[0].op_name!r}"
        )
    rows = remapping(info)
    if rows.max(initial=-1) >= entry.shape[info.axis]:
        raise InvalidArgumentError(
            f"the vocabulary {info.old_vocab} has more words than the tensor {tensor!r} has rows, "
            f"{entry.shape[info.axis]}: is it the one that belongs to {opened.path}?"
        )
    parts = [_Part(variable, list(entry.shape), info, rows) for variable in variables]

    def apply() -> None:
        for part in parts:
            part.initialize(checkpoint, tensor)

    return apply


class _Part:
    """A variable, or a part of one, whose rows are those of a vocabulary."""

    def __init__(
        self, variable: Variable, old: list[int], info: VocabInfo, rows: np.ndarray[Any, Any]
    ) -> None:
        self._variable = variable
        self._old = old
        self._info = info
        shape = list(variable.shape.known)
        place = variable.save_slice_info
        offset = [0] * len(shape) if place is None else place.var_offset
        self._shape, self._offset = shape, offset
        first = offset[info.axis]
        mine = rows[first : first + shape[info.axis]]
        # Rows of no word, after all that have one.
        self._rows = np.append(mine, np.full(shape[info.axis] - mine.size, -1, np.int64))

    def initialize(self, checkpoint: str, tensor: str) -> None:
        """Give the variable its initializer."""
        set_initial_value(self._variable, lambda: self._value(checkpoint, tensor))

    def _value(self, checkpoint: str, tensor: str) -> Tensor:
        """Return the initial value: rows of the old tensor, and new ones."""
        axis = self._info.axis
        sizes = [*self._shape]
        sizes[axis] = self._old[axis]
        starts = [*self._offset]
        starts[axis] = 0
        ranges = ":".join(f"{s},{n}" for s, n in zip(starts, sizes, strict=True))
        spec = f"{' '.join(map(str, self._old))} {ranges}"
        old = restored_tensor(checkpoint, tensor, spec, self._variable)
        old.set_shape(sizes)
        missing = self._rows < 0
        count = int(missing.sum())
        # New rows follow the old ones, each taken once.
        places = np.where(missing, self._old[axis] + np.cumsum(missing) - 1, self._rows)
        source: Any = old
        if count:
            sizes[axis] = count
            source = hr.concat([old, self._fill(sizes)], axis)
        taken: Tensor = hr.gather(source, hr.constant(places, hr.int64), axis=axis)
        return taken

    def _fill(self, shape: list[int]) -> Any:
        dtype = self._variable.dtype
        initializer: Callable[..., Any] | None = self._info.backup_initializer
        if initializer is None:
            return hr.zeros(shape, dtype)
        if not callable(initializer):
            raise ArgumentTypeError(
                f"backup_initializer must be a function of a shape, got {shown(initializer)}"
            )
        if isinstance(initializer, type):
            initializer = initializer()
        try:
            takes_dtype = "dtype" in inspect.signature(initializer).parameters
        except (TypeError, ValueError):
            takes_dtype = False
        made = initializer(shape, dtype=dtype) if takes_dtype else initializer(shape)
        return hr.convert_to_tensor(made, dtype)


def _check_sizes(variable: Variable, whole: list[int], info: VocabInfo) -> None:
    if info.num_oov_buckets < 0:
        raise AttributeValueError(
            f"num_oov_buckets must not be negative, got {info.num_oov_buckets}"
        )
    total = info.new_vocab_size + info.num_oov_buckets
    if len(whole) <= info.axis or whole[info.axis] > total or (info.axis and whole[1] != total):
        raise AttributeValueError(
            f"{variable.op_name!r} of shape {whole} must have {total} indices on axis {info.axis}, "
            f"for {info.new_vocab_size} words and {info.num_oov_buckets} buckets of others"
        )


def remapping(info: VocabInfo) -> np.ndarray[Any, Any]:
    """Return for each word of the new vocabulary its line in the old one, -1 where it has none.

    Raises:
        NotFoundError: if there is no such file.
        InvalidArgumentError: if one has fewer lines than the info says.
        FailedPreconditionError: if a word is twice in the old one.
    """
    old = _words(info.old_vocab, None if info.old_vocab_size < 0 else info.old_vocab_size)
    lines: dict[bytes, int] = {}
    for line, word in enumerate(old):
        if lines.setdefault(word, line) != line:
            raise FailedPreconditionError(
                f"the vocabulary {info.old_vocab} has {word!r} in the lines {lines[word] + 1} and "
                f"{line + 1}"
            )
    new = _words(info.new_vocab, info.new_vocab_size)
    return np.array([lines.get(word, -1) for word in new], np.int64)


def _words(file: str, count: int | None) -> list[bytes]:
    try:
        words = Path(file).read_bytes().split(b"\n")
    except FileNotFoundError as error:
        raise NotFoundError(f"there is no vocabulary {file}") from error
    except OSError as error:
        raise InvalidArgumentError(f"the vocabulary {file} cannot be read: {error}") from error
    if not words[-1]:
        words.pop()
    if count is not None and len(words) < count:
        raise InvalidArgumentError(
            f"the vocabulary {file} has {len(words)} words, expected {count} or more"
        )
    return words[:count]
