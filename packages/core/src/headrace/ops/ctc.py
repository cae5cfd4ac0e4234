"""Connectionist temporal classification: sequences of labels without an alignment to frames.

A frame emits a label or a blank. A sequence of labels stands for all the ways to emit it, repeated
emissions of one label being merged and blanks dropped.

References:
    A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, Connectionist temporal classification:
    labelling unsegmented sequence data with recurrent neural networks, ICML 2006,
    https://doi.org/10.1145/1143844.1143891
"""

from __future__ import annotations

from headrace import dtypes
from headrace.errors import AttributeValueError, ShapeError
from headrace.graph.spec import TensorSpec
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Floating, Index
from headrace.shapes import Dim, Shape

_CLASSES = "it yields classes"


@op("CTCLoss", accumulates=True, host_inputs=["labels", "label_length", "logit_length"], public="")
def _ctc_loss(
    log_probs: Floating,
    labels: Index,
    label_length: Index,
    logit_length: Index,
    blank_index: int,
    merge_repeated: bool = True,
) -> tuple[Spec, Spec]:
    """Negative log-likelihood of label sequences, and its slope.

    Args:
        log_probs: [frames, batch, classes], floating: logarithms of the classes' probabilities.
        labels: [batch, most labels], int32 or int64: no blanks; what is beyond a sequence's length
            is ignored.
        label_length: [batch], int32 or int64, the lengths of the label sequences.
        logit_length: [batch], int32 or int64, the numbers of frames that count.
        blank_index: The class of blanks, in [-classes, classes); negative from the end.
        merge_repeated: Whether frames that follow each other with one label emit it once.

    Returns:
        The loss [batch], infinite where no way emits the labels, and its gradient with respect to
        ``log_probs`` [frames, batch, classes], zero where the loss is infinite.
    """
    frames, batch, classes = _dims(log_probs, 3, "log_probs must be [frames, batch, classes]")
    if classes is not None and not -classes <= blank_index < classes:
        raise AttributeValueError(
            f"blank_index must be in [-{classes}, {classes}), got {blank_index}"
        )
    rows, _ = _dims(labels, 2, "labels must be [batch, most labels]")
    for name, found in (
        ("labels", rows),
        ("label_length", _dims(label_length, 1, "label_length must be [batch]")[0]),
        ("logit_length", _dims(logit_length, 1, "logit_length must be [batch]")[0]),
    ):
        batch = _same(batch, found, name)
    return (
        TensorSpec(log_probs.dtype, Shape([batch])),
        TensorSpec(log_probs.dtype, Shape([frames, batch, classes])),
    )


@op(
    "CTCLossCurvature",
    accumulates=True,
    host_inputs=["labels", "label_length", "logit_length"],
    public="",
)
def _ctc_loss_curvature(
    log_probs: Floating,
    direction: Floating,
    labels: Index,
    label_length: Index,
    logit_length: Index,
    blank_index: int,
    merge_repeated: bool = True,
) -> Spec:
    """The change of the slope of ``CTCLoss`` along a direction of ``log_probs``.

    Its own derivatives, the third ones of the loss, are refused.

    Args:
        log_probs: [frames, batch, classes], floating.
        direction: [frames, batch, classes], the direction.
        labels: [batch, most labels], int32 or int64.
        label_length: [batch], int32 or int64.
        logit_length: [batch], int32 or int64.
        blank_index: The class of blanks.
        merge_repeated: As for ``CTCLoss``.

    Returns:
        [frames, batch, classes], zero where the loss is infinite.
    """
    merged = log_probs.shape.with_rank(3).merge_with(direction.shape)
    return TensorSpec(log_probs.dtype, merged)


@op(
    "CTCLabels",
    host_inputs=["indices", "values", "dense_shape", "sequence_length", "num_classes"],
    public="",
    no_gradient=_CLASSES,
)
def _ctc_labels(
    indices: Index,
    values: Index,
    dense_shape: Index,
    sequence_length: Index,
    num_classes: Index,
    collapse_repeated: bool = False,
    ignore_longer: bool = False,
) -> tuple[Spec, Spec, Spec]:
    """Label sequences of a sparse matrix as a dense one with their lengths.

    Args:
        indices: [n, 2], where each label is, in row-major order.
        values: [n], the labels; of those not below ``num_classes - 1`` none may be followed by
            one that is, and they are dropped.
        dense_shape: [2], the shape of the matrix.
        sequence_length: [batch], the numbers of frames that are there for the labels of each row.
        num_classes: [], the number of classes, the blank included.
        collapse_repeated: Whether labels equal to the one before are dropped first.
        ignore_longer: Whether rows may have more labels than frames; they raise otherwise.

    Returns:
        The labels [batch, most labels], int32, with zeros behind, their numbers [batch], int32, and
        whether there are as many frames as elements in the row [batch], bool.
    """
    _dims(indices, 2, "labels.indices must be [n, 2]")
    if not indices.shape.is_compatible_with([None, 2]):
        raise ShapeError(f"labels must be a sparse matrix [batch, time], got {indices.shape}")
    _dims(values, 1, "labels.values must be [n]")
    rows = _dims(sequence_length, 1, "sequence_length must be [batch]")[0]
    return (
        TensorSpec(dtypes.int32, Shape([rows, None])),
        TensorSpec(dtypes.int32, Shape([rows])),
        TensorSpec(dtypes.bool_, Shape([rows])),
    )


@op("CTCGreedyDecoder", host_inputs=["inputs", "sequence_length"], public="", no_gradient=_CLASSES)
def _ctc_greedy_decoder(
    inputs: Floating, sequence_length: Index, merge_repeated: bool = True
) -> tuple[Spec, Spec, Spec, Spec]:
    """The labels of the largest logit of each frame.

    Args:
        inputs: [frames, batch, classes], floating; the last class is the blank.
        sequence_length: [batch], int32 or int64, the numbers of frames that count.
        merge_repeated: Whether frames that follow each other with one label emit it once.

    Returns:
        Indices [n, 2], values [n] and shape [2] of a sparse matrix [batch, most labels], int64, and
        the negative sums of the largest logits [batch, 1].
    """
    _, batch, _ = _decoded(inputs, sequence_length)
    return (
        TensorSpec(dtypes.int64, Shape([None, 2])),
        TensorSpec(dtypes.int64, Shape([None])),
        TensorSpec(dtypes.int64, Shape([2])),
        TensorSpec(inputs.dtype, Shape([batch, 1])),
    )


@op(
    "CTCBeamSearchDecoder",
    host_inputs=["inputs", "sequence_length"],
    public="",
    no_gradient=_CLASSES,
)
def _ctc_beam_search_decoder(
    inputs: Floating,
    sequence_length: Index,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool = True,
) -> list[Spec]:
    """The most likely label sequences that a beam search finds.

    Args:
        inputs: [frames, batch, classes], floating; the last class is the blank.
        sequence_length: [batch], int32 or int64, the numbers of frames that count.
        beam_width: How many sequences are followed.
        top_paths: How many are returned.
        merge_repeated: Whether labels equal to the one before are dropped from what is returned.

    Returns:
        The indices [n, 2] of each path, then the values [n] of each, then the shape [2] of each,
        all int64, and the logarithms of the paths' probabilities [batch, top_paths].
    """
    _, batch, _ = _decoded(inputs, sequence_length)
    if not 1 <= top_paths <= beam_width <= _WIDEST:
        raise AttributeValueError(
            f"expected 1 <= top_paths <= beam_width <= {_WIDEST}, got top_paths={top_paths}, "
            f"beam_width={beam_width}"
        )
    return [
        *[TensorSpec(dtypes.int64, Shape([None, 2]))] * top_paths,
        *[TensorSpec(dtypes.int64, Shape([None]))] * top_paths,
        *[TensorSpec(dtypes.int64, Shape([2]))] * top_paths,
        TensorSpec(inputs.dtype, Shape([batch, top_paths])),
    ]


_WIDEST = 2**20


def _decoded(inputs: TensorSpec, sequence_length: TensorSpec) -> list[Dim]:
    dims = _dims(inputs, 3, "inputs must be [frames, batch, classes]")
    if dims[2] == 0:
        raise ShapeError("inputs need a class at least, that of blanks")
    length = _dims(sequence_length, 1, "sequence_length must be [batch]")[0]
    dims[1] = _same(dims[1], length, "sequence_length")
    return dims


def _dims(spec: TensorSpec, rank: int, what: str) -> list[Dim]:
    if spec.rank not in (None, rank):
        raise ShapeError(f"{what}, got shape {spec.shape}")
    return [None] * rank if spec.shape.dims is None else list(spec.shape.dims)


def _same(batch: Dim, found: Dim, name: str) -> Dim:
    if batch is not None and found is not None and batch != found:
        raise ShapeError(f"{name} has {found} rows for a batch of {batch}")
    return found if batch is None else batch
