"""Losses and decoders of connectionist temporal classification, as programs call them."""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.schema import call_op
from headrace.graph.scopes import name_scope
from headrace.graph.sparse_tensor import SparseTensor
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, expand_dims, reshape, shape, transpose
from headrace.ops.constant import ones_like, zeros_like
from headrace.ops.constant import range as range_
from headrace.ops.conversion import cast, saturate_cast
from headrace.ops.cumulative import cumsum
from headrace.ops.elementwise import equal, less, logical_and, not_equal, select
from headrace.ops.extremes import argmax
from headrace.ops.identity import ensure_shape
from headrace.ops.nn import log_softmax
from headrace.ops.reduce import reduce_max, reduce_sum
from headrace.ops.segment import unsorted_segment_sum
from headrace.shapes import Shape


def ctc_loss(
    labels: Any,
    inputs: Any = None,
    sequence_length: Any = None,
    preprocess_collapse_repeated: bool = False,
    ctc_merge_repeated: bool = True,
    ignore_longer_outputs_than_inputs: bool = False,
    time_major: bool = True,
    logits: Any = None,
) -> Tensor:
    """Negative log-likelihood of label sequences, summed over their alignments to frames.

    The last class is the blank. A sequence without labels is emitted by blanks alone.

    Args:
        labels: A ``SparseTensor`` [batch, time], int32 or int64, of labels below ``classes - 1``;
            higher ones are padding behind the others.
        inputs: [frames, batch, classes], floating: logits.
        sequence_length: [batch], int32 or int64, the numbers of frames that count.
        preprocess_collapse_repeated: Drop labels that equal the one before.
        ctc_merge_repeated: Whether frames that follow each other with one label emit it once.
        ignore_longer_outputs_than_inputs: Give sequences with more labels than frames a loss of 0;
            they raise otherwise.
        time_major: Whether ``inputs`` are [frames, batch, classes], not [batch, frames, classes].
        logits: Another name of ``inputs``.

    Returns:
        [batch], the dtype of ``inputs``; infinite where there are too few frames to tell repeated
        labels apart.

    Raises:
        AttributeValueError: if inputs or lengths are missing, or labels are not sparse.
        ShapeError: if shapes do not fit.
    """
    given = logits if inputs is None else inputs
    if given is None or sequence_length is None or (inputs is not None and logits is not None):
        raise AttributeValueError("ctc_loss needs labels, inputs (or logits) and sequence_length")
    with name_scope(None, "ctc_loss"):
        lengths = convert_to_tensor(sequence_length)
        scores = _frames_first(given, time_major, lengths)
        return _sparse_loss(
            _sparse(labels),
            scores,
            lengths,
            -1,
            preprocess_collapse_repeated,
            ctc_merge_repeated,
            ignore_longer_outputs_than_inputs,
        )


def ctc_loss_v2(
    labels: Any,
    logits: Any,
    label_length: Any,
    logit_length: Any,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Negative log-likelihood of label sequences, dense or sparse, summed over their alignments.

    Args:
        labels: [batch, most labels], int32 or int64, or a ``SparseTensor`` [batch, time]. What is
            beyond a sequence's length is ignored.
        logits: [frames, batch, classes], floating.
        label_length: [batch], int32 or int64, the lengths of the label sequences; not looked at
            where labels are sparse.
        logit_length: [batch], int32 or int64, the numbers of frames that count.
        logits_time_major: Whether ``logits`` are [frames, batch, classes], not
            [batch, frames, classes].
        unique: Without effect: what ``ctc_unique_labels`` returns for ``labels``.
        blank_index: The class of blanks, negative from the end; 0 if None, and to be given where
            labels are sparse.
        name: The name of the operations.

    Returns:
        [batch], the dtype of ``logits``; infinite where there are too few frames for the labels.

    Raises:
        AttributeValueError: if ``blank_index`` is missing or out of range.
        ShapeError: if shapes do not fit.
    """
    del unique
    with name_scope(name, "ctc_loss"):
        frames = convert_to_tensor(logit_length)
        scores = _frames_first(logits, logits_time_major, frames)
        if isinstance(labels, SparseTensor) or hasattr(labels, "dense_shape"):
            if blank_index is None:
                raise AttributeValueError("ctc_loss_v2 needs blank_index where labels are sparse")
            return _sparse_loss(_sparse(labels), scores, frames, blank_index)
        blank = 0 if blank_index is None else blank_index
        counts = convert_to_tensor(label_length)
        dense = convert_to_tensor(labels, preferred_dtype=dtypes.int32)
        return _loss(_log_probs(scores, frames), dense, counts, frames, blank)


def _log_probs(scores: Tensor, frames: Tensor) -> Tensor:
    """Return the logarithms of probabilities; frames that do not count may hold anything."""
    given, batch = frames.spec.shape, scores.spec.shape[1:2] if scores.shape.rank else Shape(None)
    if not given.is_compatible_with(batch):
        if given.rank == 1:
            raise ShapeError(f"sequence_length has {given[0]} rows for a batch of {batch[0]}")
        raise ShapeError(f"sequence_length must be [batch], got shape {given}")
    places = cast(range_(shape(scores)[0]), frames.dtype)
    counted = expand_dims(less(expand_dims(places, 1), frames), 2)
    return log_softmax(select(counted, scores, 0))


def _loss(
    log_probs: Tensor,
    labels: Tensor,
    label_length: Tensor,
    frames: Tensor,
    blank: int,
    merge: bool = True,
) -> Tensor:
    loss: Tensor = call_op("CTCLoss", log_probs, labels, label_length, frames, blank, merge)[0]
    return loss


def _sparse_loss(
    labels: SparseTensor,
    scores: Tensor,
    frames: Tensor,
    blank: int,
    collapse: bool = False,
    merge: bool = True,
    ignore_longer: bool = False,
) -> Tensor:
    classes: Any = shape(scores)[2]
    values = cast(labels.values, dtypes.int64)
    last = _is_last(scores, blank)
    at: Any = blank
    if not last:
        at = blank if blank >= 0 else cast(classes, dtypes.int64) + blank
        # The labels as they are counted without the blank.
        values = select(less(values, at), values, values - 1)
    dense, counts, fits = call_op(
        "CTCLabels",
        labels.indices,
        values,
        labels.dense_shape,
        frames,
        classes,
        collapse,
        ignore_longer,
    )
    if not last:
        below = cast(at, dtypes.int32) if isinstance(at, Tensor) else at
        dense = select(less(dense, below), dense, dense + 1)
    loss = _loss(_log_probs(scores, frames), dense, counts, frames, blank, merge)
    if ignore_longer:
        loss = select(fits, loss, zeros_like(loss))
    return loss


def _is_last(scores: Tensor, blank: int) -> bool:
    classes = None if scores.shape.rank is None else scores.spec.shape[2]
    return blank == -1 or (classes is not None and blank == classes - 1)


def _frames_first(scores: Any, time_major: bool, lengths: Tensor) -> Tensor:
    """Return logits [frames, batch, classes], where ``lengths`` are [batch]."""
    tensor = convert_to_tensor(scores)
    if tensor.shape.rank not in (None, 3):
        raise ShapeError(f"logits must have 3 dimensions, got shape {tensor.spec.shape}")
    if tensor.shape.rank is None:
        batch = lengths.spec.shape[0] if lengths.shape.rank == 1 else None
        tensor = ensure_shape(tensor, [None, batch, None] if time_major else [batch, None, None])
    return tensor if time_major else transpose(tensor, [1, 0, 2])


def _sparse(labels: Any) -> SparseTensor:
    if not isinstance(labels, SparseTensor) and not hasattr(labels, "dense_shape"):
        raise AttributeValueError(f"ctc_loss needs labels as a SparseTensor, got {shown(labels)}")
    return SparseTensor.from_value(labels)


def ctc_greedy_decoder(
    inputs: Any, sequence_length: Any, merge_repeated: bool = True
) -> tuple[list[SparseTensor], Tensor]:
    """Decode by the largest logit of each frame; the last class is the blank.

    Args:
        inputs: [frames, batch, classes], floating: logits.
        sequence_length: [batch], int32 or int64, the numbers of frames that count.
        merge_repeated: Whether frames that follow each other with one label emit it once.

    Returns:
        A tuple of a list with one ``SparseTensor`` [batch, most labels], int64, of labels, and the
        negative sums of the largest logits [batch, 1].

    Raises:
        ShapeError: if the shapes do not fit.
    """
    with name_scope(None, "ctc_greedy_decoder"):
        indices, values, whole, score = call_op(
            "CTCGreedyDecoder", inputs, sequence_length, merge_repeated
        )
        return [SparseTensor(indices, values, whole)], score


def ctc_beam_search_decoder(
    inputs: Any,
    sequence_length: Any,
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
) -> tuple[list[SparseTensor], Tensor]:
    """Decode to the most likely label sequences that a beam search finds; the last class is blank.

    With a beam as wide as there are beginnings of sequences, these are the most likely ones.

    Args:
        inputs: [frames, batch, classes], floating: logits.
        sequence_length: [batch], int32 or int64, the numbers of frames that count.
        beam_width: How many beginnings are followed.
        top_paths: How many sequences are returned, the most likely first; fewer ones raise.
        merge_repeated: Drop labels that equal the one before from what is returned, also where
            blanks tell them apart.

    Returns:
        A tuple of a list with ``top_paths`` ``SparseTensor`` [batch, most labels], int64, of
        labels, and the logarithms of their probabilities [batch, top_paths].

    Raises:
        AttributeValueError: if ``top_paths`` is not in [1, beam_width].
        ShapeError: if the shapes do not fit.
    """
    with name_scope(None, "ctc_beam_search_decoder"):
        *parts, scores = call_op(
            "CTCBeamSearchDecoder", inputs, sequence_length, beam_width, top_paths, merge_repeated
        )
        columns = (parts[i * top_paths : (i + 1) * top_paths] for i in range(3))
        return [SparseTensor(*path) for path in zip(*columns, strict=True)], scores


def ctc_beam_search_decoder_v2(
    inputs: Any, sequence_length: Any, beam_width: int = 100, top_paths: int = 1
) -> tuple[list[SparseTensor], Tensor]:
    """Decode as ``ctc_beam_search_decoder`` does, with all labels of the sequences found.

    Args:
        inputs: [frames, batch, classes], floating: logits.
        sequence_length: [batch], int32 or int64, the numbers of frames that count.
        beam_width: How many beginnings are followed.
        top_paths: How many sequences are returned.

    Returns:
        A tuple of a list with ``top_paths`` ``SparseTensor`` [batch, most labels], int64, of
        labels, and the logarithms of their probabilities [batch, top_paths].

    Raises:
        AttributeValueError: if ``top_paths`` is not in [1, beam_width].
        ShapeError: if the shapes do not fit.
    """
    return ctc_beam_search_decoder(inputs, sequence_length, beam_width, top_paths, False)


def collapse_repeated(
    labels: Any, seq_length: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Drop labels that equal the one before.

    Args:
        labels: [batch, time], int32 or int64.
        seq_length: [batch], int32 or int64, the lengths of the sequences.
        name: The name of the operations.

    Returns:
        A tuple of the labels that are left [batch, most labels], with zeros behind, and their
        numbers [batch], the dtype of ``seq_length``.

    Raises:
        ShapeError: if the shapes do not fit.
    """
    with name_scope(name, "collapse_repeated_labels"):
        rows = convert_to_tensor(labels)
        lengths = convert_to_tensor(seq_length)
        _require_rank(rows, 2, "labels must be [batch, time]")
        _require_rank(lengths, 1, "seq_length must be [batch]")
        differs = not_equal(rows[:, 1:], rows[:, :-1])
        kept = concat([ones_like(rows[:, :1], dtypes.bool_), differs], 1)
        time = range_(shape(rows)[1])
        kept = logical_and(kept, less(time, expand_dims(saturate_cast(lengths, dtypes.int32), 1)))
        counts = reduce_sum(cast(kept, dtypes.int32), 1)
        width = reduce_max(concat([counts, [0]], 0))
        place = cumsum(cast(kept, dtypes.int32), 1) - 1
        return _laid_out(rows, place, kept, width), cast(counts, lengths.dtype)


def ctc_unique_labels(labels: Any, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Find the different labels of each sequence, as ``ctc_loss_v2`` takes them.

    Args:
        labels: [batch, time], int32 or int64.
        name: The name of the operations.

    Returns:
        A tuple of the different labels [batch, time], int64, in the order in which they first
        occur, with zeros behind, and for each label its place among them [batch, time], int32.

    Raises:
        ShapeError: if labels are no matrix.
    """
    with name_scope(name, "ctc_unique_labels"):
        rows = cast(convert_to_tensor(labels), dtypes.int64)
        _require_rank(rows, 2, "labels must be [batch, time]")
        width = shape(rows)[1]
        time = range_(width)
        # For each label where it first occurs; one label more, so that there is one.
        same = equal(expand_dims(rows, 2), expand_dims(rows, 1))
        padded = concat([cast(same, dtypes.int32), zeros_like(rows, dtypes.int32)[:, :, None]], 2)
        first = argmax(padded, 2, output_type=dtypes.int32)
        is_first = equal(first, time)
        rank = cumsum(cast(is_first, dtypes.int32), 1) - 1
        chosen = cast(equal(expand_dims(first, 2), time), dtypes.int32)
        place = reduce_sum(chosen * expand_dims(rank, 1), 2)
        return _laid_out(rows, rank, is_first, width), place


def _laid_out(rows: Tensor, place: Tensor, kept: Tensor, width: Tensor) -> Tensor:
    """Return [batch, width] with the elements that are kept at their places, zeros elsewhere."""
    batch = shape(rows)[0]
    at = expand_dims(range_(batch) * width, 1) + place
    flat = reshape(select(kept, at, -ones_like(at)), [-1])
    total = unsorted_segment_sum(reshape(rows, [-1]), flat, batch * width)
    dims = concat([reshape(batch, [1]), reshape(width, [1])], 0)
    return reshape(total, dims)


def _require_rank(tensor: Tensor, rank: int, what: str) -> None:
    if tensor.shape.rank not in (None, rank):
        raise ShapeError(f"{what}, got shape {tensor.spec.shape}")
