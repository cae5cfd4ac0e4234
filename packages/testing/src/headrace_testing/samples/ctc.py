"""Samples of connectionist temporal classification; the oracle lists all ways to emit labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from headrace.errors import AttributeValueError, DTypeError, ExecutionError, ShapeError
from headrace_testing.inputs import Input, array, integers, uniform
from headrace_testing.sample import Reject, Row, Sample


def emitted(path: tuple[int, ...], blank: int, merge: bool) -> tuple[int, ...]:
    """Return the labels that one class per frame emits."""
    before = (None, *path)[: len(path)]
    return tuple(
        c for c, b in zip(path, before, strict=True) if c != blank and not (merge and c == b)
    )


def _ways(log_probs: Any, wanted: Any, frames: int, blank: int, merge: bool) -> Iterator[Any]:
    """Yield each way to emit labels with the logarithm of its probability."""
    for path in itertools.product(range(log_probs.shape[1]), repeat=frames):
        if emitted(path, blank, merge) == tuple(wanted):
            yield path, log_probs[np.arange(frames), list(path)].sum()


def _loss(
    log_probs: Any,
    labels: Any,
    label_length: Any,
    logit_length: Any,
    blank_index: int,
    merge_repeated: bool = True,
) -> tuple[Any, Any]:
    _, batch, classes = log_probs.shape
    loss, slope = np.full(batch, np.inf), np.zeros(log_probs.shape)
    for b in range(batch):
        frames, wanted = logit_length[b], labels[b, : label_length[b]]
        ways = list(_ways(log_probs[:, b], wanted, frames, blank_index % classes, merge_repeated))
        if not ways or not np.isfinite(max(score for _, score in ways)):
            continue
        loss[b] = -np.logaddexp.reduce([score for _, score in ways])
        for path, score in ways:
            slope[np.arange(frames), b, list(path)] -= np.exp(score + loss[b])
    return loss, slope


def _curvature(
    log_probs: Any, direction: Any, labels: Any, label_length: Any, logit_length: Any, **attrs: Any
) -> Any:
    """The covariance over ways of what they emit and how far the direction moves them."""
    blank, merge = attrs["blank_index"], attrs.get("merge_repeated", True)
    change = np.zeros(log_probs.shape)
    for b in range(log_probs.shape[1]):
        frames, wanted = logit_length[b], labels[b, : label_length[b]]
        blank_here = blank % log_probs.shape[2]
        ways = list(_ways(log_probs[:, b], wanted, frames, blank_here, merge))
        if not ways:
            continue
        weights = np.exp([score for _, score in ways])
        weights /= weights.sum()
        time = np.arange(frames)
        moves = np.array([direction[time, b, list(path)].sum() for path, _ in ways])
        for (path, _), weight, move in zip(ways, weights, moves, strict=True):
            change[time, b, list(path)] -= weight * (move - weights @ moves)
    return change


def _labels(*rows: list[int]) -> list[Input]:
    """Return the labels and their lengths, padded with what must be ignored."""
    longest = max(map(len, rows))
    padded = np.array([[*row, *[-7] * (longest - len(row))] for row in rows])
    lengths = np.array([len(row) for row in rows])
    return [array(padded.reshape(len(rows), longest), "int32"), array(lengths, "int32")]


_INF = np.inf
LOSS: list[Row] = [
    Sample(
        "CTCLoss",
        [
            uniform((4, 4, 3), -3, 0),
            *_labels([0, 1], [1, 1], [], [0]),
            array([4, 4, 3, 2], "int32"),
        ],
        {"blank_index": -1},
        _loss,
        grad_outputs=(0,),
        label="typical",
    ),
    Sample(
        "CTCLoss",
        [uniform((4, 3, 3), -3, 0), *_labels([1, 2], [1, 1, 2], [2]), array([4, 4, 1], "int64")],
        {"blank_index": 0},
        _loss,
        dtypes=("float32", "float64"),
        grad_outputs=(0,),
        label="blank_first",
    ),
    Sample(
        "CTCLoss",
        [uniform((4, 3, 3), -3, 0), *_labels([0, 0], [0, 0, 2, 2], []), array([4, 4, 0], "int32")],
        {"blank_index": 1, "merge_repeated": False},
        _loss,
        dtypes=("float32", "float64"),
        grad_outputs=(0,),
        label="not_merged",
    ),
    Sample(
        "CTCLoss",
        [uniform((3, 3, 3), -3, 0), *_labels([0, 0], [0, 1], [1, 0]), array([2, 0, 1], "int32")],
        {"blank_index": -1},
        _loss,
        dtypes=("float32", "float64"),
        grad=False,
        label="impossible",
    ),
    Sample(
        "CTCLoss",
        [
            array([[[-_INF, -1.0, -2.0]], [[0.0, -_INF, -700.0]], [[-_INF, -_INF, -0.5]]]),
            *_labels([1, 0]),
            array([3], "int32"),
        ],
        {"blank_index": 2},
        _loss,
        dtypes=("float32", "float64"),
        grad=False,
        label="infinite",
    ),
    *(
        Sample(
            "CTCLoss",
            [
                uniform((frames, batch, 2), -3, 0),
                array(np.zeros((batch, 0)), "int32"),
                array(np.zeros(batch), "int32"),
                array(np.full(batch, frames), "int32"),
            ],
            {"blank_index": 0},
            _loss,
            dtypes=("float32", "float64"),
            grad_outputs=(0,),
            label=label,
        )
        for label, frames, batch in (("no_frames", 0, 2), ("no_batch", 2, 0))
    ),
    Sample(
        "CTCLossCurvature",
        [
            uniform((4, 4, 3), -3, 0),
            uniform((4, 4, 3)),
            *_labels([0, 1], [1, 1], [], [0]),
            array([4, 4, 3, 2], "int32"),
        ],
        {"blank_index": -1},
        _curvature,
        dtypes=("float32", "float64"),
        grad=False,
    ),
    Sample(
        "CTCLossCurvature",
        [
            uniform((3, 3, 3), -3, 0),
            uniform((3, 3, 3)),
            *_labels([0, 0], [2, 2, 2], []),
            array([3, 2, 3], "int32"),
        ],
        {"blank_index": 1, "merge_repeated": False},
        _curvature,
        dtypes=("float32", "float64"),
        grad=False,
        label="not_merged",
    ),
]

_SPARSE = [
    array([[0, 0], [0, 1], [0, 2], [2, 0], [2, 3]], "int64"),
    array([1, 1, 2, 0, 3], "int32"),
    array([3, 4], "int64"),
    array([4, 4, 4], "int32"),
    array(4, "int32"),
]


def _sparse_reject(label: str, match: str, **changed: Input) -> Reject:
    names = ("indices", "values", "shape", "lengths", "classes")
    inputs = [changed.get(name, given) for name, given in zip(names, _SPARSE, strict=True)]
    return Reject("CTCLabels", inputs, {}, ExecutionError, match, when="run", label=label)


LABELS: list[Row] = [
    Sample(
        "CTCLabels",
        _SPARSE,
        {},
        lambda *_: (
            np.array([[1, 1, 2], [0, 0, 0], [0, 0, 0]]),
            np.array([3, 0, 1]),
            np.ones(3, bool),
        ),
        exact_shape=False,
    ),
    Sample(
        "CTCLabels",
        _SPARSE,
        {"collapse_repeated": True},
        lambda *_, **__: (
            np.array([[1, 2], [0, 0], [0, 0]]),
            np.array([2, 0, 1]),
            np.ones(3, bool),
        ),
        exact_shape=False,
        label="collapsed",
    ),
    Sample(
        "CTCLabels",
        [*_SPARSE[:3], array([2, 0, 1], "int64"), array(4, "int64")],
        {"ignore_longer": True},
        lambda *_, **__: (
            np.array([[1, 1, 2], [0, 0, 0], [0, 0, 0]]),
            np.array([3, 0, 1]),
            np.array([False, True, False]),
        ),
        exact_shape=False,
        label="longer",
    ),
    Sample(
        "CTCLabels",
        [
            array(np.zeros((0, 2)), "int64"),
            array([], "int32"),
            array([2, 0], "int64"),
            array([1, 1], "int32"),
            array(3, "int32"),
        ],
        {},
        lambda *_: (np.zeros((2, 0)), np.zeros(2), np.ones(2, bool)),
        exact_shape=False,
        label="empty",
    ),
    _sparse_reject("rows", "labels have 2 rows", shape=array([2, 4], "int64")),
    _sparse_reject("outside", "are outside", shape=array([3, 3], "int64")),
    _sparse_reject(
        "order", "row-major order", indices=array([[0, 0], [0, 2], [0, 1], [2, 0], [2, 3]], "int64")
    ),
    _sparse_reject("negative", "must be >= 0", values=array([1, -1, 2, 0, 3], "int32")),
    _sparse_reject("padding", "follows one", values=array([1, 3, 2, 0, 3], "int32")),
    _sparse_reject("longer", "row 0 has 3 labels for 2 frames", lengths=array([2, 4, 4], "int32")),
    Reject(
        "CTCLabels",
        [array([[0], [1]], "int64"), *_SPARSE[1:]],
        {},
        ShapeError,
        "must be a sparse matrix",
        label="columns",
    ),
]


def _parts(paths: list[list[int]]) -> tuple[Any, Any, Any]:
    indices = [[b, i] for b, path in enumerate(paths) for i in range(len(path))]
    values = [c for path in paths for c in path]
    shape = [len(paths), max(map(len, paths), default=0)]
    return np.array(indices).reshape(-1, 2), np.array(values), np.array(shape)


def _greedy(inputs: Any, sequence_length: Any, merge_repeated: bool = True) -> tuple[Any, ...]:
    paths, scores = [], []
    for b, frames in enumerate(sequence_length):
        best = tuple(int(c) for c in inputs[:frames, b].argmax(1))
        paths.append(list(emitted(best, inputs.shape[2] - 1, merge_repeated)))
        scores.append([-inputs[:frames, b].max(1).sum()])
    return (*_parts(paths), np.array(scores).reshape(-1, 1))


def _beam(
    inputs: Any, sequence_length: Any, beam_width: int, top_paths: int, merge_repeated: bool = True
) -> tuple[Any, ...]:
    """The most likely of all label sequences, whose probabilities all their ways add up to."""
    best: list[Any] = []
    for b, frames in enumerate(sequence_length):
        logs = inputs[:, b] - np.logaddexp.reduce(inputs[:, b], 1, keepdims=True)
        found: dict[tuple[int, ...], Any] = {}
        for path in itertools.product(range(inputs.shape[2]), repeat=int(frames)):
            score = logs[np.arange(frames), list(path)].sum()
            key = emitted(path, inputs.shape[2] - 1, True)
            found[key] = np.logaddexp(found.get(key, -np.inf), score)
        ranked = sorted(found.items(), key=lambda item: -item[1])
        best.append(ranked[:top_paths])
    parts = []
    for i in range(top_paths):
        paths = [list(ranked[i][0]) for ranked in best]
        if merge_repeated:
            paths = [[c for c, _ in itertools.groupby(path)] for path in paths]
        parts.append(_parts(paths))
    scores = [[score for _, score in ranked] for ranked in best]
    columns = [part[k] for k in range(3) for part in parts]
    return (*columns, np.array(scores).reshape(-1, top_paths))


_LOGITS = uniform((5, 3, 3), -3, 3)
_FRAMES = array([5, 3, 4], "int32")
DECODERS: list[Row] = [
    *(
        Sample(
            "CTCGreedyDecoder",
            [_LOGITS, array([5, 3, 0], dtype)],
            {"merge_repeated": merge},
            _greedy,
            dtypes=("float32", "float64"),
            exact_shape=False,
            label=label,
        )
        for label, merge, dtype in (("merged", True, "int32"), ("not_merged", False, "int64"))
    ),
    *(
        Sample(
            "CTCBeamSearchDecoder",
            [_LOGITS, _FRAMES],
            {"beam_width": 60, "top_paths": 3, "merge_repeated": merge},
            _beam,
            dtypes=("float32", "float64"),
            exact_shape=False,
            label=label,
        )
        for label, merge in (("merged", True), ("not_merged", False))
    ),
    Sample(
        "CTCBeamSearchDecoder",
        [uniform((2, 2, 1)), array([2, 0], "int32")],
        {"beam_width": 2, "top_paths": 1},
        _beam,
        dtypes=("float32",),
        exact_shape=False,
        label="blanks_alone",
    ),
    Sample(
        "CTCBeamSearchDecoder",
        [uniform((2, 0, 3)), array([], "int32")],
        {"beam_width": 2, "top_paths": 2},
        _beam,
        dtypes=("float32",),
        exact_shape=False,
        label="empty",
    ),
    Sample(
        "CTCBeamSearchDecoder",
        [array([[[np.nan, 1.0, 0.0]], [[np.inf, -np.inf, 0.0]]]), array([2], "int32")],
        {"beam_width": 2, "top_paths": 1},
        holds=lambda results: bool(np.isnan(results[-1]).all()),
        dtypes=("float32",),
        exact_shape=False,
        label="special",
    ),
]

_F = integers((2, 2, 3), 0, 9, "float32")
_LENGTHS = array([2, 1], "int32")


_ROWS = array([[0], [1]], "int32")
_LAST = {"blank_index": 2}
REJECTS: list[Row] = [
    Reject(
        "CTCLoss",
        [integers((2, 3), 0, 9, "float32"), _ROWS, _LENGTHS, _LENGTHS],
        _LAST,
        ShapeError,
        r"must be \[frames, batch, classes\]",
        label="rank",
    ),
    Reject(
        "CTCLoss",
        [_F, _ROWS, _LENGTHS, array([2], "int32")],
        _LAST,
        ShapeError,
        "logit_length has 1 rows",
        label="batch",
    ),
    Reject(
        "CTCLoss",
        [_F, _ROWS, _LENGTHS, _LENGTHS],
        {"blank_index": 3},
        AttributeValueError,
        "blank_index must be",
        label="blank",
    ),
    Reject(
        "CTCLoss",
        [_F, array([[0.0], [1.0]], "float32"), _LENGTHS, _LENGTHS],
        _LAST,
        DTypeError,
        "int32 or int64, got float32",
        label="dtype",
    ),
    *(
        Reject(
            "CTCLoss",
            [_F, array(labels, "int32"), array(counts, "int32"), array(frames, "int32")],
            _LAST,
            ExecutionError,
            match,
            when="run",
            label=label,
        )
        for label, match, labels, counts, frames in (
            ("frames", "logit_length must be in", [[0], [1]], [1, 1], [2, 3]),
            ("negative", "logit_length must be in", [[0], [1]], [1, 1], [2, -1]),
            ("counts", "label_length must be in", [[0], [1]], [1, 2], [2, 2]),
            ("class", "labels must be in", [[0], [3]], [1, 1], [2, 2]),
            ("blanks", "not the blank", [[0], [2]], [1, 1], [2, 2]),
        )
    ),
    Reject(
        "CTCLossCurvature",
        [_F, integers((2, 2, 4), 0, 9, "float32"), _ROWS, _LENGTHS, _LENGTHS],
        _LAST,
        ShapeError,
        "incompatible",
    ),
    Reject(
        "CTCGreedyDecoder",
        [_F, array([2, 3], "int32")],
        {},
        ExecutionError,
        "sequence_length must be in",
        when="run",
        label="frames",
    ),
    Reject(
        "CTCGreedyDecoder",
        [integers((2, 2, 0), 0, 9, "float32"), _LENGTHS],
        {},
        ShapeError,
        "that of blanks",
        label="classes",
    ),
    Reject(
        "CTCBeamSearchDecoder",
        [_F, _LENGTHS],
        {"beam_width": 2, "top_paths": 3},
        AttributeValueError,
        "1 <= top_paths <= beam_width",
        label="paths",
    ),
    Reject(
        "CTCBeamSearchDecoder",
        [_F, array([2, 0], "int32")],
        {"beam_width": 9, "top_paths": 3},
        ExecutionError,
        "the search finds 1",
        when="run",
        label="few",
    ),
]

SAMPLES: list[Row] = [*LOSS, *LABELS, *DECODERS, *REJECTS]
