"""Kernels of connectionist temporal classification.

A label sequence of length n has 2n + 1 states: a blank, then each label with a blank behind it.
Every way of emitting the labels is a path through the states that stays, goes on by one, or by two
from a label to one that differs. Sums over paths are made in logarithms, for all sequences of the
batch at once, frame by frame: forwards and backwards.

Labels and lengths are host arrays on every device; see ``host_inputs`` of backend-cuda.

References:
    A. Graves, S. Fernández, F. Gomez, J. Schmidhuber, Connectionist temporal classification, ICML
    2006, equations 5 to 16, https://doi.org/10.1145/1143844.1143891
    A. Graves, Supervised sequence labelling with recurrent neural networks, 2012, section 7.5
    (prefix search; with a beam), https://doi.org/10.1007/978-3-642-24797-2
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.extend import KernelTable
from headrace_cpu.kernels.numeric import (
    Array,
    add_rows,
    check_rank,
    check_shape,
    narrowed,
    scalar,
    widened,
)

KERNELS = KernelTable()


class _States:
    """The states of all sequences of a batch, padded to one number.

    Attributes:
        classes: [batch, states], the class that each state emits.
        stays: [batch, states], 0 where a state may follow itself, -inf where not.
        skips: [batch, states], 0 where a state may follow the one before the last.
        first: [batch, states], 0 for the states in which a path may begin.
        last: [batch, states], 0 for those in which one may end.
        frames: [batch], the number of frames that count.
    """

    def __init__(
        self,
        xp: Any,
        log_probs: Array,
        labels: Array,
        label_length: Array,
        logit_length: Array,
        blank: int,
        merge: bool,
    ) -> None:
        check_rank(log_probs, 3, "log_probs")
        frames, batch, classes = log_probs.shape
        check_rank(labels, 2, "labels")
        check_shape(labels, (batch, labels.shape[1]), "labels")
        check_shape(label_length, (batch,), "label_length")
        _check_lengths(logit_length, frames, batch, "logit_length")
        _check_lengths(label_length, labels.shape[1], batch, "label_length")
        if not -classes <= blank < classes:
            raise ValueError(f"blank_index must be in [-{classes}, {classes}), got {blank}")
        blank %= classes
        # Padding of a length that no sequence has would only cost time.
        longest = int(label_length.max()) if batch else 0
        inside = np.arange(longest) < label_length[:, None]
        mine = np.where(inside, labels[:, :longest], blank).astype(np.int64)
        wrong = inside & ((mine < 0) | (mine >= classes) | (mine == blank))
        if wrong.any():
            raise ValueError(
                f"labels must be in [0, {classes}) and not the blank, {blank}; got {mine[wrong][0]}"
            )
        states = np.full((batch, 2 * longest + 1), blank)
        states[:, 1::2] = mine
        place = np.arange(2 * longest + 1)
        is_label = place % 2 == 1
        skips = np.zeros(states.shape, bool)
        skips[:, 3::2] = (mine[:, 1:] != mine[:, :-1]) | (not merge)
        stays = np.broadcast_to(~is_label | merge, states.shape)
        ends = 2 * label_length[:, None]
        self.classes = xp.asarray(states)
        self.stays = _allowed(xp, stays, log_probs)
        self.skips = _allowed(xp, skips, log_probs)
        self.first = _allowed(xp, np.broadcast_to(place < 2, states.shape), log_probs)
        self.last = _allowed(xp, (place == ends) | (place == ends - 1), log_probs)
        self.frames = xp.asarray(np.asarray(logit_length, np.int64))


def _allowed(xp: Any, mask: Array, like: Array) -> Array:
    return xp.asarray(np.where(mask, 0.0, -np.inf).astype(like.dtype))


def _check_lengths(lengths: Array, most: int, batch: int, name: str) -> None:
    check_shape(lengths, (batch,), name)
    if lengths.size and (lengths.min() < 0 or lengths.max() > most):
        wrong = lengths[(lengths < 0) | (lengths > most)][0]
        raise ValueError(f"{name} must be in [0, {most}], got {wrong}")


def _shifted(xp: Any, x: Array, by: int) -> Array:
    """Return ``x`` moved along its last axis, -inf coming in."""
    moved = xp.full(x.shape, -np.inf, x.dtype)
    if by > 0:
        moved[..., by:] = x[..., :-by]
    else:
        moved[..., :by] = x[..., -by:]
    return moved


class _Sums:
    """Sums over paths.

    Attributes:
        forward: [frames, batch, states], over all paths that are in a state at a frame, of what
            they emit up to it and with it.
        backward: [frames, batch, states], of what they emit after it.
        total: [batch], over all paths.
        emitted: [frames, batch, states], what a state emits.
    """

    def __init__(self, xp: Any, log_probs: Array, states: _States) -> None:
        frames, batch, _ = log_probs.shape
        width = states.classes.shape[1]
        self.emitted = log_probs[:, xp.arange(batch)[:, None], states.classes]
        self.forward = xp.full((frames, batch, width), -np.inf, log_probs.dtype)
        self.backward = xp.full((frames, batch, width), -np.inf, log_probs.dtype)
        empty = xp.where(states.last[:, 0] == 0, 0.0, -np.inf).astype(log_probs.dtype)
        self.total = empty
        if not frames:
            return
        self.forward[0] = states.first + self.emitted[0]
        for t in range(1, frames):
            self.forward[t] = self._entered(xp, self.forward[t - 1], states) + self.emitted[t]
        counted = (states.frames - 1)[:, None]
        for t in reversed(range(frames)):
            if t + 1 < frames:
                after = self.backward[t + 1] + self.emitted[t + 1]
                self.backward[t] = self._left(xp, after, states)
            # Paths end with their sequence's last frame that counts.
            self.backward[t] = xp.where(counted == t, states.last, self.backward[t])
            self.backward[t] = xp.where(counted < t, -np.inf, self.backward[t])
        begun = states.first + self.emitted[0] + self.backward[0]
        found = _total(xp, begun)
        self.total = xp.where(states.frames == 0, empty, found)

    @staticmethod
    def _entered(xp: Any, before: Array, states: _States) -> Array:
        reached = xp.logaddexp(before + states.stays, _shifted(xp, before, 1))
        return xp.logaddexp(reached, _shifted(xp, before, 2) + states.skips)

    @staticmethod
    def _left(xp: Any, after: Array, states: _States) -> Array:
        reached = xp.logaddexp(after + states.stays, _shifted(xp, after, -1))
        return xp.logaddexp(reached, _shifted(xp, after + states.skips, -2))

    def posterior(self, xp: Any) -> Array:
        """Return how likely a path is in a state at a frame, 0 for sequences without paths."""
        total = xp.where(xp.isinf(self.total), 0.0, self.total).astype(self.total.dtype)
        inside = self.forward + self.backward - total[:, None]
        return xp.where(xp.isinf(self.total)[:, None], 0.0, xp.exp(inside))


def _total(xp: Any, x: Array) -> Array:
    """Return the logarithm of the sum of exponentials along the last axis."""
    largest = x.max(-1, keepdims=True)
    finite = xp.where(xp.isinf(largest), 0.0, largest).astype(x.dtype)
    return xp.log(xp.exp(x - finite).sum(-1)) + finite[..., 0]


def _by_class(xp: Any, x: Array, states: _States, shape: Any) -> Array:
    """Return [frames, batch, classes] sums of [frames, batch, states] over states of one class."""
    frames, batch, classes = shape
    row = xp.arange(frames * batch).reshape(frames, batch, 1) * classes
    place = (row + states.classes).reshape(-1)
    total = xp.zeros((frames * batch * classes, 1), x.dtype)
    add_rows(xp, total, place, x.reshape(-1, 1))
    return total.reshape(shape)


@KERNELS.plain("CTCLoss")
def ctc_loss(
    xp: Any,
    log_probs: Array,
    labels: Array,
    label_length: Array,
    logit_length: Array,
    *,
    blank_index: int,
    merge_repeated: bool,
) -> tuple[Array, Array]:
    """Sum over all paths forwards and backwards."""
    wide = widened(log_probs)
    states = _States(xp, wide, labels, label_length, logit_length, blank_index, merge_repeated)
    sums = _Sums(xp, wide, states)
    slope = _by_class(xp, -sums.posterior(xp), states, wide.shape)
    return narrowed(-sums.total, log_probs.dtype), narrowed(slope, log_probs.dtype)


@KERNELS.plain("CTCLossCurvature")
def ctc_loss_curvature(
    xp: Any,
    log_probs: Array,
    direction: Array,
    labels: Array,
    label_length: Array,
    logit_length: Array,
    *,
    blank_index: int,
    merge_repeated: bool,
) -> Array:
    """Carry a direction along with the sums over paths."""
    check_shape(direction, log_probs.shape, "direction")
    wide = widened(log_probs)
    states = _States(xp, wide, labels, label_length, logit_length, blank_index, merge_repeated)
    sums = _Sums(xp, wide, states)
    posterior = sums.posterior(xp)
    move = widened(direction)[:, xp.arange(wide.shape[1])[:, None], states.classes]
    ahead = _moved_forward(xp, sums, states, move)
    behind = _moved_backward(xp, sums, states, move)
    # By how much the whole sum moves: the mean over paths of what they emit.
    whole = (posterior * xp.where(posterior > 0, move, 0.0)).sum((0, 2))[:, None]
    change = posterior * xp.where(posterior > 0, ahead + behind - whole, 0.0)
    return narrowed(_by_class(xp, -change, states, wide.shape), log_probs.dtype)


def _mean(xp: Any, parts: list[tuple[Array, Array]]) -> Array:
    """Return the mean of numbers weighted by exponentials: the derivative of their log-sum."""
    weights = xp.stack([log_weight for log_weight, _ in parts])
    largest = weights.max(0)
    scaled = xp.exp(weights - xp.where(xp.isinf(largest), 0.0, largest))
    total = scaled.sum(0)
    numbers = xp.where(scaled > 0, xp.stack([number for _, number in parts]), 0.0)
    return xp.where(total > 0, (scaled * numbers).sum(0) / xp.where(total > 0, total, 1.0), 0.0)


def _moved_forward(xp: Any, sums: _Sums, states: _States, move: Array) -> Array:
    """Return the derivative of ``sums.forward`` along ``move``."""
    moved = xp.zeros(move.shape, move.dtype)
    for t in range(move.shape[0]):
        moved[t] = move[t]
        if t:
            before, change = sums.forward[t - 1], moved[t - 1]
            parts = [
                (before + states.stays, change),
                (_shifted(xp, before, 1), _shifted(xp, change, 1)),
                (_shifted(xp, before, 2) + states.skips, _shifted(xp, change, 2)),
            ]
            moved[t] += _mean(xp, parts)
    return moved


def _moved_backward(xp: Any, sums: _Sums, states: _States, move: Array) -> Array:
    """Return the derivative of ``sums.backward`` along ``move``."""
    frames = move.shape[0]
    moved = xp.zeros(move.shape, move.dtype)
    for t in reversed(range(frames - 1)):
        after = sums.backward[t + 1] + sums.emitted[t + 1]
        change = moved[t + 1] + move[t + 1]
        parts = [
            (after + states.stays, change),
            (_shifted(xp, after, -1), _shifted(xp, change, -1)),
            (_shifted(xp, after + states.skips, -2), _shifted(xp, change, -2)),
        ]
        last = (states.frames - 1)[:, None] <= t
        moved[t] = xp.where(last, 0.0, _mean(xp, parts))
    return moved


@KERNELS.plain("CTCLabels")
def ctc_labels(
    xp: Any,
    indices: Array,
    values: Array,
    dense_shape: Array,
    sequence_length: Array,
    num_classes: Array,
    *,
    collapse_repeated: bool,
    ignore_longer: bool,
) -> tuple[Array, Array, Array]:
    """Check the sparse matrix, and lay its rows out."""
    check_rank(sequence_length, 1, "sequence_length")
    rows, classes = sequence_length.size, scalar(num_classes, "num_classes")
    check_rank(indices, 2, "labels.indices")
    check_shape(indices, (indices.shape[0], 2), "labels.indices")
    check_shape(values, (indices.shape[0],), "labels.values")
    check_shape(dense_shape, (2,), "labels.dense_shape")
    if dense_shape[0] != rows and indices.size:
        raise ValueError(f"labels have {dense_shape[0]} rows for a batch of {rows}")
    inside = (indices >= 0) & (indices < dense_shape)
    if not inside.all():
        wrong = indices[~inside.all(1)][0]
        raise IndexError(f"labels.indices {wrong.tolist()} are outside {dense_shape.tolist()}")
    row, column = indices[:, 0], indices[:, 1]
    sorted_ = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (column[1:] > column[:-1]))
    if not sorted_.all():
        raise ValueError("labels.indices must be in row-major order; bring them so with reorder")
    # All elements of a row count here, also those that are dropped below.
    given = np.bincount(row, minlength=rows)
    longer = given > sequence_length
    if longer.any() and not ignore_longer:
        raise ValueError(
            f"row {np.flatnonzero(longer)[0]} has {given[longer][0]} labels for "
            f"{sequence_length[longer][0]} frames; give it more, or pass "
            "ignore_longer_outputs_than_inputs=True"
        )
    kept = np.ones(values.shape, bool)
    if collapse_repeated:
        kept[1:] = (row[1:] != row[:-1]) | (values[1:] != values[:-1])
    row, values = row[kept], values[kept]
    # Labels from the blank on are padding, as they are where dense labels were made sparse.
    padding = values >= classes - 1
    later = (row[1:] == row[:-1]) & padding[:-1] & ~padding[1:]
    if later.any():
        raise ValueError(
            f"label {values[1:][later][0]} of row {row[1:][later][0]} follows one not below "
            f"num_classes - 1 = {classes - 1}, which ends a sequence"
        )
    row, values = row[~padding], values[~padding]
    if values.size and values.min() < 0:
        raise ValueError(f"labels must be >= 0, got {values.min()}")
    lengths = np.bincount(row, minlength=rows).astype(np.int32)
    starts = np.cumsum(lengths) - lengths
    dense = np.zeros((rows, int(lengths.max()) if rows else 0), np.int32)
    dense[row, np.arange(row.size) - starts[row]] = values
    return xp.asarray(dense), xp.asarray(lengths), xp.asarray(~longer)


def _check_inputs(inputs: Array, sequence_length: Array) -> None:
    check_rank(inputs, 3, "inputs")
    frames, batch, classes = inputs.shape
    if not classes:
        raise ValueError("inputs need a class at least, that of blanks")
    _check_lengths(sequence_length, frames, batch, "sequence_length")


def _sparse(xp: Any, paths: list[Array]) -> tuple[Array, Array, Array]:
    """Return sequences of labels as the parts of a sparse matrix."""
    lengths = [len(path) for path in paths]
    rows = np.repeat(np.arange(len(paths)), lengths)
    columns = np.concatenate([np.arange(n) for n in lengths]) if paths else np.zeros(0)
    values = np.concatenate([np.asarray(p, np.int64) for p in paths]) if paths else np.zeros(0)
    return (
        xp.asarray(np.stack([rows, columns], 1).astype(np.int64)),
        xp.asarray(values.astype(np.int64)),
        xp.asarray(np.array([len(paths), max(lengths, default=0)], np.int64)),
    )


@KERNELS.plain("CTCGreedyDecoder")
def ctc_greedy_decoder(
    xp: Any, inputs: Array, sequence_length: Array, *, merge_repeated: bool
) -> tuple[Array, Array, Array, Array]:
    """Take the class of the largest logit of each frame."""
    _check_inputs(inputs, sequence_length)
    blank = inputs.shape[2] - 1
    wide = widened(inputs)
    best = wide.argmax(2)
    inside = np.arange(inputs.shape[0])[:, None] < sequence_length
    score = np.where(inside, -wide.max(2), 0).sum(0, keepdims=True).T
    kept = inside & (best != blank)
    if merge_repeated:
        kept[1:] &= best[1:] != best[:-1]
    paths = [best[kept[:, b], b] for b in range(inputs.shape[1])]
    return (*_sparse(xp, paths), xp.asarray(narrowed(score, inputs.dtype)))


@KERNELS.plain("CTCBeamSearchDecoder")
@np.errstate(invalid="ignore")
def ctc_beam_search_decoder(
    xp: Any,
    inputs: Array,
    sequence_length: Array,
    *,
    beam_width: int,
    top_paths: int,
    merge_repeated: bool,
) -> list[Array]:
    """Follow the most likely beginnings of label sequences, for one of the batch after another."""
    _check_inputs(inputs, sequence_length)
    wide = widened(inputs)
    wide = wide - _total(np, wide)[..., None]
    batch = inputs.shape[1]
    scores = np.zeros((batch, top_paths), wide.dtype)
    paths: list[list[Array]] = []
    for b in range(batch):
        found, scores[b] = _search(wide[: int(sequence_length[b]), b], beam_width, top_paths)
        if merge_repeated:
            found = [path[np.append(True, path[1:] != path[:-1])[: path.size]] for path in found]
        paths.append(found)
    parts = [_sparse(xp, [found[i] for found in paths]) for i in range(top_paths)]
    columns = [part[k] for k in range(3) for part in parts]
    return [*columns, xp.asarray(narrowed(scores, inputs.dtype))]


def _search(log_probs: Array, beam_width: int, top_paths: int) -> tuple[list[Array], Array]:
    """Return the most likely label sequences, and the logarithms of their probabilities.

    A beginning of a sequence is a node of a tree: its parent and its last label. ``blank`` and
    ``label`` are the sums over the ways of emitting it that end in a blank and in its last label.
    """
    frames, classes = log_probs.shape
    parents, lasts = [-1], [-1]
    children: dict[tuple[int, int], int] = {}
    nodes = np.zeros(1, np.int64)
    last = np.full(1, -1)
    blank, label = np.zeros(1, log_probs.dtype), np.full(1, -np.inf, log_probs.dtype)
    for t in range(frames):
        emitted, own = log_probs[t, :-1], log_probs[t, -1]
        total = np.logaddexp(blank, label)
        # By another label, or by its own after a blank, a beginning grows.
        grown = total[:, None] + emitted
        has = last >= 0
        grown[has, last[has]] = blank[has] + emitted[last[has]]
        again = np.where(has, label + emitted[last] if classes > 1 else -np.inf, -np.inf)
        # One that grows into another that is followed, too, adds to that.
        at = {node: i for i, node in enumerate(nodes.tolist())}
        for i, node in enumerate(nodes.tolist()):
            parent = at.get(parents[node])
            if parent is not None:
                again[i] = np.logaddexp(again[i], grown[parent, lasts[node]])
                grown[parent, lasts[node]] = -np.inf
        rested = total + own
        kept = np.logaddexp(rested, again)
        candidates = np.concatenate([kept, grown.reshape(-1)])
        order = _largest(candidates, beam_width)
        old, new = order[order < nodes.size], order[order >= nodes.size] - nodes.size
        made = []
        for i, c in zip(*divmod(new, max(classes - 1, 1)), strict=True):
            key = (int(nodes[i]), int(c))
            if key not in children:
                children[key] = len(parents)
                parents.append(key[0])
                lasts.append(key[1])
            made.append(children[key])
        fresh = grown.reshape(-1)[new]
        blank = np.concatenate([rested[old], np.full(new.size, -np.inf, rested.dtype)])
        label = np.concatenate([again[old], fresh])
        nodes = np.concatenate([nodes[old], np.array(made, np.int64)])
        last = np.concatenate([last[old], new % max(classes - 1, 1)]).astype(np.int64)
    total = np.logaddexp(blank, label)
    order = _largest(total, top_paths)
    if order.size < top_paths:
        raise ValueError(
            f"top_paths={top_paths} sequences are asked for, of {frames} frames the search finds "
            f"{order.size}"
        )
    return [_path(int(nodes[i]), parents, lasts) for i in order], total[order]


def _largest(scores: Array, count: int) -> Array:
    """Return the places of the largest scores, in falling order; none of -inf."""
    possible = np.flatnonzero(scores != -np.inf)
    if possible.size > count:
        # NaN counts as the least, and is taken only where there is nothing else.
        ranks = np.where(np.isnan(scores[possible]), -np.inf, scores[possible])
        possible = possible[np.argpartition(-ranks, count - 1)[:count]]
    ranks = np.where(np.isnan(scores[possible]), -np.inf, scores[possible])
    return possible[np.argsort(-ranks, kind="stable")]


def _path(node: int, parents: list[int], lasts: list[int]) -> Array:
    labels = []
    while node > 0:
        labels.append(lasts[node])
        node = parents[node]
    return np.array(labels[::-1], np.int64)
