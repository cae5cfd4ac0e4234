"""Connectionist temporal classification, against enumeration, PyTorch and decoding by hand."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import AttributeValueError, ExecutionError, NoGradientError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

RNG = np.random.default_rng(4)
FRAMES = [9, 7, 9, 6]
LABELS = [[0, 1, 1, 2], [3, 0], [2], [1, 2, 1]]
LOGITS = RNG.standard_normal((9, 4, 5)) * 2


def run(tensors: Any, feeds: Any = None) -> Any:
    with hr.Session(graph=hr.get_default_graph()) as session:
        return session.run(tensors, feeds)


def sparse(rows: list[list[int]], dtype: Any = np.int32) -> hr.SparseTensor:
    indices = [[b, i] for b, row in enumerate(rows) for i in range(len(row))]
    values = np.array([label for row in rows for label in row], dtype)
    shape = [len(rows), max(map(len, rows), default=0)]
    return hr.SparseTensor(np.array(indices, np.int64).reshape(-1, 2), values, shape)


def dense(rows: list[list[int]]) -> tuple[Any, Any]:
    width = max(map(len, rows))
    padded = np.array([[*row, *[99] * (width - len(row))] for row in rows], np.int32)
    return padded, np.array([len(row) for row in rows], np.int32)


def with_torch(rows: list[list[int]], blank: int, frames: Any = FRAMES) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    logits = torch.tensor(LOGITS, requires_grad=True)
    loss = torch.nn.functional.ctc_loss(
        torch.log_softmax(logits, 2),
        torch.tensor([label for row in rows for label in row]),
        torch.tensor(frames),
        torch.tensor([len(row) for row in rows]),
        blank=blank,
        reduction="none",
    )
    loss.sum().backward()
    return loss.detach().numpy(), logits.grad.numpy()


def shifted(rows: list[list[int]], by: int) -> list[list[int]]:
    return [[label + by for label in row] for row in rows]


@pytest.mark.parametrize("form", ["sparse", "dense", "sparse_v2", "dense_last", "unknown"])
def test_losses_and_gradients_agree_with_pytorch(form: str) -> None:
    with hr.Graph().as_default():
        logits = hr.placeholder(hr.float64, None if form == "unknown" else LOGITS.shape)
        rows, blank = LABELS, 4
        if form in ("dense", "sparse_v2"):
            rows, blank = shifted(LABELS, 1), 0
        if form in ("sparse", "unknown"):
            loss = hr.nn.ctc_loss(sparse(rows), logits, FRAMES)
        elif form == "sparse_v2":
            loss = hr.nn.ctc_loss_v2(sparse(rows), logits, None, FRAMES, blank_index=0)
        else:
            index = None if blank == 0 else -1
            loss = hr.nn.ctc_loss_v2(*reorder(dense(rows), logits), FRAMES, blank_index=index)
        (gradient,) = hr.gradients(loss, [logits])
        found = run([loss, gradient], {logits: LOGITS})
    for mine, theirs in zip(found, with_torch(rows, blank), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def reorder(labels: tuple[Any, Any], logits: Any) -> tuple[Any, Any, Any]:
    return labels[0], logits, labels[1]


@pytest.mark.parametrize("blank", [1, -2, 4])
def test_blanks_of_any_index(blank: int) -> None:
    at = blank % 5
    rows = [[label + (label >= at) for label in row] for row in LABELS]
    expected, _ = with_torch(rows, at)
    with hr.Graph().as_default():
        logits = hr.constant(LOGITS)
        one = hr.nn.ctc_loss_v2(*reorder(dense(rows), logits), FRAMES, blank_index=blank)
        two = hr.nn.ctc_loss_v2(sparse(rows), logits, None, FRAMES, blank_index=blank)
        for found in run([one, two]):
            np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_batch_first() -> None:
    with hr.Graph().as_default():
        swapped = hr.constant(LOGITS.transpose(1, 0, 2))
        one = hr.nn.ctc_loss(sparse(LABELS), swapped, FRAMES, time_major=False)
        two = hr.nn.ctc_loss(sparse(LABELS), logits=LOGITS, sequence_length=FRAMES)
        first, second = run([one, two])
    np.testing.assert_allclose(first, second)


def test_sequences_without_labels_are_emitted_by_blanks() -> None:
    rows: list[list[int]] = [[], [0], [], []]
    expected, slope = with_torch(rows, 4)
    with hr.Graph().as_default():
        logits = hr.constant(LOGITS)
        loss = hr.nn.ctc_loss(sparse(rows), logits, FRAMES)
        found, gradient = run([loss, hr.gradients(loss, [logits])[0]])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-9, atol=1e-12)


def test_too_few_frames() -> None:
    rows, frames = [[0, 0], [0, 1, 2]], [2, 2]
    with hr.Graph().as_default():
        logits = hr.constant(LOGITS[:2, :2])
        strict = hr.nn.ctc_loss(sparse(rows), logits, frames)
        with pytest.raises(ExecutionError, match="row 1 has 3 labels for 2 frames"):
            run(strict)
        loose = hr.nn.ctc_loss(sparse(rows), logits, frames, ignore_longer_outputs_than_inputs=True)
        loss, gradient = run([loose, hr.gradients(loose, [logits])[0]])
    # Two frames cannot tell repeated labels apart; three labels are left out.
    assert loss.tolist() == [np.inf, 0]
    assert not gradient.any()


def test_collapsing_and_not_merging() -> None:
    rows = [[0, 0, 1]]
    logs = LOGITS[:4, :1] - np.logaddexp.reduce(LOGITS[:4, :1], 2, keepdims=True)

    def total(wanted: tuple[int, ...], merge: bool) -> float:
        scores = []
        for path in itertools.product(range(5), repeat=4):
            pairs = zip(path, (None, *path), strict=False)
            labels = tuple(c for c, b in pairs if c != 4 and not (merge and c == b))
            if labels == wanted:
                scores.append(logs[np.arange(4), 0, list(path)].sum())
        return float(-np.logaddexp.reduce(scores))

    for collapse, merge in itertools.product((False, True), repeat=2):
        with hr.Graph().as_default():
            loss = run(hr.nn.ctc_loss(sparse(rows), LOGITS[:4, :1], [4], collapse, merge))
        wanted = (0, 1) if collapse else (0, 0, 1)
        assert loss[0] == pytest.approx(total(wanted, merge), 1e-9)


def test_the_loss_differentiates_twice_but_not_more() -> None:
    with hr.Graph().as_default(), hr.Session() as session:
        x = hr.placeholder(hr.float64, LOGITS.shape)
        loss = hr.nn.ctc_loss(sparse(LABELS), x, FRAMES)
        v = hr.constant(RNG.standard_normal(LOGITS.shape))
        (slope,) = hr.gradients(loss, [x])
        along = hr.reduce_sum(slope * v)
        (second,) = hr.gradients(along, [x])
        step = 1e-5 * RNG.standard_normal(LOGITS.shape)
        up, down = (session.run(along, {x: LOGITS + s}) for s in (step, -step))
        predicted = 2 * np.sum(session.run(second, {x: LOGITS}) * step)
        assert up - down == pytest.approx(predicted, 1e-6)
        with pytest.raises(NoGradientError, match="third derivatives"):
            hr.gradients(second, [x])


def test_greedy_decoder_merges_repeated_labels() -> None:
    path = np.array([[0, 0, 2, 0, 1, 1]]).T
    logits = np.eye(3)[path] * 2.0
    with hr.Graph().as_default():
        for merge, labels in ((True, [0, 0, 1]), (False, [0, 0, 0, 1, 1])):
            (decoded,), score = hr.nn.ctc_greedy_decoder(logits, [6], merge)
            found, total = run([decoded, score])
            assert found.values.tolist() == labels
            assert found.values.dtype == np.int64
            assert found.dense_shape.tolist() == [1, len(labels)]
            assert total.tolist() == [[-12.0]]


def likeliest(logits: Any, count: int) -> list[tuple[tuple[int, ...], float]]:
    """Return the most likely label sequences of [frames, classes] logits, by enumeration."""
    logs = logits - np.logaddexp.reduce(logits, 1, keepdims=True)
    found: dict[tuple[int, ...], float] = {}
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        pairs = zip(path, (None, *path), strict=False)
        labels = tuple(c for c, b in pairs if c not in (b, logits.shape[1] - 1))
        score = logs[np.arange(len(path)), list(path)].sum()
        found[labels] = np.logaddexp(found.get(labels, -np.inf), score)
    return sorted(found.items(), key=lambda item: -item[1])[:count]


@pytest.mark.parametrize("seed", range(4))
def test_a_wide_beam_finds_the_likeliest_sequences(seed: int) -> None:
    logits = np.random.default_rng(seed).standard_normal((6, 2, 4)) * 2
    with hr.Graph().as_default():
        decoded, scores = hr.nn.ctc_beam_search_decoder_v2(logits, [6, 4], 400, 5)
        paths, found = run([decoded, scores])
    for b, frames in enumerate((6, 4)):
        for i, (labels, score) in enumerate(likeliest(logits[:frames, b], 5)):
            mine = paths[i].values[paths[i].indices[:, 0] == b]
            assert tuple(mine) == labels
            assert found[b, i] == pytest.approx(score, 1e-9)


def test_a_narrow_beam_finds_no_better_than_the_likeliest() -> None:
    logits = RNG.standard_normal((6, 1, 4))
    with hr.Graph().as_default():
        scores = [hr.nn.ctc_beam_search_decoder(logits, [6], w)[1] for w in (1, 3, 400)]
        found = [float(s[0, 0]) for s in run(scores)]
    best = likeliest(logits[:, 0], 1)[0][1]
    assert found[0] <= found[1] + 1e-12
    assert found[1] <= found[2] + 1e-12
    assert found[2] == pytest.approx(best)


def test_the_first_beam_decoder_merges_labels_that_blanks_tell_apart() -> None:
    logits = np.eye(3)[[[0], [2], [0], [1]]] * 20.0
    with hr.Graph().as_default():
        (merged,), _ = hr.nn.ctc_beam_search_decoder(logits, [4])
        (whole,), _ = hr.nn.ctc_beam_search_decoder_v2(logits, [4])
        one, two = run([merged, whole])
    assert one.values.tolist() == [0, 1]
    assert two.values.tolist() == [0, 0, 1]


def test_collapse_repeated() -> None:
    with hr.Graph().as_default():
        rows = np.array([[1, 1, 2, 2, 1], [3, 3, 3, 0, 0], [0, 5, 5, 5, 5]])
        labels, counts = run(hr.nn.collapse_repeated(rows, np.array([5, 4, 0])))
    assert labels.tolist() == [[1, 2, 1], [3, 0, 0], [0, 0, 0]]
    assert counts.tolist() == [3, 2, 0]


def test_unique_labels() -> None:
    with hr.Graph().as_default():
        labels, places = run(hr.nn.ctc_unique_labels([[3, 4, 4, 3], [1, 2, 1, 5]]))
    assert labels.tolist() == [[3, 4, 0, 0], [1, 2, 5, 0]]
    assert places.tolist() == [[0, 1, 1, 0], [0, 1, 0, 2]]


REFUSED: dict[str, Any] = {
    "dense labels": (
        lambda: hr.nn.ctc_loss([[1]], LOGITS, FRAMES),
        AttributeValueError,
        "labels as a SparseTensor",
    ),
    "no lengths": (
        lambda: hr.nn.ctc_loss(sparse(LABELS), LOGITS),
        AttributeValueError,
        "needs labels, inputs",
    ),
    "rank": (
        lambda: hr.nn.ctc_loss(sparse(LABELS), LOGITS[0], FRAMES),
        ShapeError,
        "must have 3 dimensions",
    ),
    "no blank": (
        lambda: hr.nn.ctc_loss_v2(sparse(LABELS), LOGITS, None, FRAMES),
        AttributeValueError,
        "needs blank_index",
    ),
    "blank": (
        lambda: hr.nn.ctc_loss_v2(*reorder(dense(LABELS), LOGITS), FRAMES, blank_index=5),
        AttributeValueError,
        "blank_index must be",
    ),
    "lengths": (
        lambda: hr.nn.ctc_loss(sparse(LABELS), LOGITS, FRAMES[:2]),
        ShapeError,
        "2 rows for a batch of 4",
    ),
    "lengths of another rank": (
        lambda: hr.nn.ctc_loss_v2(*reorder(dense(LABELS), LOGITS), 3, blank_index=0),
        ShapeError,
        r"sequence_length must be \[batch\], got shape",
    ),
    "paths": (
        lambda: hr.nn.ctc_beam_search_decoder(LOGITS, FRAMES, 2, 3),
        AttributeValueError,
        "1 <= top_paths <= beam_width",
    ),
    "collapse": (lambda: hr.nn.collapse_repeated([1], [1]), ShapeError, r"\[batch, time\]"),
    "unique": (lambda: hr.nn.ctc_unique_labels([1]), ShapeError, r"\[batch, time\]"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case: str) -> None:
    build, error, match = REFUSED[case]
    with hr.Graph().as_default(), pytest.raises(error, match=match):
        build()
