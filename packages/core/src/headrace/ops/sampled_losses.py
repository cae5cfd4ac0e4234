"""Losses that look at a few sampled classes in place of all.

References:
    M. Gutmann, A. Hyvärinen, Noise-contrastive estimation, AISTATS 2010,
    https://proceedings.mlr.press/v9/gutmann10a.html
    S. Jean, K. Cho, R. Memisevic, Y. Bengio, On using very large target vocabulary for neural
    machine translation, ACL 2015, https://arxiv.org/abs/1412.2007
"""

from __future__ import annotations

from typing import Any

from headrace import dtypes
from headrace.errors import ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.scopes import name_scope
from headrace.graph.tensor import Tensor
from headrace.ops.array import concat, expand_dims, reshape, shape, stop_gradient
from headrace.ops.candidate_sampling import (
    compute_accidental_hits,
    log_uniform_candidate_sampler,
)
from headrace.ops.constant import ones_like, zeros_like
from headrace.ops.conversion import cast
from headrace.ops.cross_entropy import (
    sigmoid_cross_entropy_with_logits,
    softmax_cross_entropy_with_logits_v2,
)
from headrace.ops.elementwise import equal, greater, select
from headrace.ops.embedding import embedding_lookup
from headrace.ops.linalg import matmul
from headrace.ops.reduce import reduce_any, reduce_sum
from headrace.ops.segment import unsorted_segment_sum
from headrace.ops.transcendental import log


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = False,
    partition_strategy: str = "mod",
    name: str | None = "nce_loss",
) -> Tensor:
    """Noise-contrastive estimation: tell the true classes from sampled ones.

    Args:
        weights: [num_classes, dim], floating, or a list of shards as ``embedding_lookup`` takes.
        biases: [num_classes], or a list of shards.
        labels: [batch, num_true], int32 or int64: the true classes.
        inputs: [batch, dim]: what the network makes of the examples.
        num_sampled: How many classes to sample for a batch.
        num_classes: How many classes there are.
        num_true: How many true classes an example has.
        sampled_values: What a candidate sampler returned; one that draws unique classes
            log-uniformly if None.
        remove_accidental_hits: Leave out sampled classes that are true classes.
        partition_strategy: How shards divide the classes: "mod" or "div".
        name: The name of the operations.

    Returns:
        [batch], the loss of each example.

    Raises:
        ShapeError: if ``labels`` is not [batch, num_true].
    """
    with name_scope(name, "nce_loss"):
        logits, targets = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            None,
        )
        return reduce_sum(sigmoid_cross_entropy_with_logits(labels=targets, logits=logits), 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Any = None,
    remove_accidental_hits: bool = True,
    partition_strategy: str = "mod",
    name: str | None = "sampled_softmax_loss",
    seed: int | None = None,
) -> Tensor:
    """Cross-entropy of softmax over the true classes and a few sampled ones.

    For training only: an underestimate of the full softmax's loss. Logits are corrected by the
    logarithms of expected counts, so that the sum over classes is estimated without bias.

    Args:
        weights: [num_classes, dim], floating, or a list of shards as ``embedding_lookup`` takes.
        biases: [num_classes], or a list of shards.
        labels: [batch, num_true], int32 or int64: the true classes.
        inputs: [batch, dim]: what the network makes of the examples.
        num_sampled: How many classes to sample for a batch.
        num_classes: How many classes there are.
        num_true: How many true classes an example has.
        sampled_values: What a candidate sampler returned; one that draws unique classes
            log-uniformly if None.
        remove_accidental_hits: Leave out sampled classes that are true classes.
        partition_strategy: How shards divide the classes: "mod" or "div".
        name: The name of the operations.
        seed: Seeds the sampler's stream, together with the graph's seed.

    Returns:
        [batch], the loss of each example.

    Raises:
        ShapeError: if ``labels`` is not [batch, num_true].
    """
    with name_scope(name, "sampled_softmax_loss"):
        logits, targets = _sampled_logits(
            weights,
            biases,
            labels,
            inputs,
            num_sampled,
            num_classes,
            num_true,
            sampled_values,
            remove_accidental_hits,
            partition_strategy,
            seed,
        )
        return softmax_cross_entropy_with_logits_v2(stop_gradient(targets), logits)


def _sampled_logits(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int,
    sampled_values: Any,
    remove_accidental_hits: bool,
    partition_strategy: str,
    seed: int | None,
) -> tuple[Tensor, Tensor]:
    """Return [batch, num_true + num_sampled] corrected logits, and their labels."""
    hidden = convert_to_tensor(inputs)
    classes = cast(convert_to_tensor(labels, preferred_dtype=dtypes.int64), dtypes.int64)
    if not classes.shape.is_compatible_with([None, num_true]):
        raise ShapeError(
            f"labels must be [batch, num_true={shown(num_true)}], got shape {classes.shape}"
        )
    if hidden.shape.rank and classes.shape.rank:
        batches = hidden.spec.shape[0], classes.spec.shape[0]
        if None not in batches and batches[0] != batches[1]:
            raise ShapeError(
                f"inputs and labels must have as many examples, got {batches[0]} and {batches[1]}"
            )
    unique = sampled_values is None
    if unique:
        sampled_values = log_uniform_candidate_sampler(
            classes, num_true, num_sampled, True, num_classes, seed
        )
    if not isinstance(sampled_values, tuple | list) or len(sampled_values) != 3:
        raise ShapeError(
            "sampled_values must be candidates, their expected counts, and those of the labels, as "
            "the samplers return them"
        )
    sampled, true_expected, sampled_expected = (
        stop_gradient(convert_to_tensor(part)) for part in sampled_values
    )
    sampled = cast(sampled, dtypes.int64)

    # One lookup for all, so that sharded tables are asked once.
    flat = reshape(classes, [-1])
    count = shape(flat)[0]
    ids = concat([flat, sampled], 0)
    rows = cast(embedding_lookup(weights, ids, partition_strategy), hidden.dtype)
    offsets = cast(embedding_lookup(biases, ids, partition_strategy), hidden.dtype)

    width = rows.spec.shape[-1] if rows.shape.rank is not None else None
    last = shape(rows)[1] if width is None else width
    true_rows = reshape(rows[:count], [-1, num_true, last])
    true_logits = reduce_sum(expand_dims(hidden, 1) * true_rows, 2)
    true_logits = true_logits + reshape(offsets[:count], [-1, num_true])
    sampled_logits = matmul(hidden, rows[count:], transpose_b=True) + offsets[count:]
    if remove_accidental_hits:
        sampled_logits = _without_hits(sampled_logits, classes, sampled, num_true, unique=unique)
    true_logits = true_logits - log(cast(true_expected, hidden.dtype))
    sampled_logits = sampled_logits - log(cast(sampled_expected, hidden.dtype))

    targets = concat([ones_like(true_logits) / num_true, zeros_like(sampled_logits)], 1)
    return concat([true_logits, sampled_logits], 1), targets


def _without_hits(
    logits: Tensor, classes: Tensor, sampled: Tensor, num_true: int, *, unique: bool
) -> Tensor:
    """Return the logits of sampled classes, those of true classes so low that they do not count."""
    if unique:
        # Every place of a true class counts. Comparing all has a shape that does not depend on
        # the data, so that the whole loss is planned once.
        hits = reduce_any(equal(expand_dims(classes, 2), sampled), 1)
    else:
        # Of a class that was drawn several times, the last place counts.
        examples, places, _ = compute_accidental_hits(classes, sampled, num_true)
        size = shape(logits, out_type=dtypes.int64)
        at = cast(examples, dtypes.int64) * size[1] + places
        counts = unsorted_segment_sum(ones_like(at, dtypes.int32), at, size[0] * size[1])
        hits = greater(reshape(counts, size), 0)
    # Far below all else, and finite even when the correction is subtracted.
    lowest = -3e4 if logits.dtype == dtypes.float16 else -1e38
    return select(hits, zeros_like(logits) + lowest, logits)
