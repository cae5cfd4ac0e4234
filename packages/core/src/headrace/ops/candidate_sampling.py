"""Samplers of classes, for losses that look at a few classes of many.

Each draws classes from a stream of its own, as random ops do, and says how often it expects to draw
each of them. Losses correct their logits by that: see ``sampled_losses``.

References:
    S. Jean, K. Cho, R. Memisevic, Y. Bengio, On using very large target vocabulary for neural
    machine translation, ACL 2015, https://arxiv.org/abs/1412.2007
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from headrace import dtypes
from headrace.arguments import items, real
from headrace.errors import AttributeValueError, ShapeError, shown
from headrace.graph.convert import convert_to_tensor
from headrace.graph.spec import TensorSpec
from headrace.graph.tensor import Tensor
from headrace.ops.conversion import cast
from headrace.ops.declare import Spec, op
from headrace.ops.kinds import Index
from headrace.ops.random import op_seeds
from headrace.shapes import Shape

_DRAWN = "classes are drawn, and counts of draws do not depend on tensors smoothly"
# More draws, or more weights of classes, are a mistake, or a trap in a document.
_MOST = 2**27
# Classes whose counts a program lists.
_MOST_COUNTS = 2**23
Seeds = tuple[int, int] | None
Drawn = tuple[Spec, Spec, Spec]


class Candidates(NamedTuple):
    """What a candidate sampler returns.

    Attributes:
        sampled_candidates: [num_sampled], int64, the classes drawn.
        true_expected_count: [batch, num_true], float32, how often each true class is expected.
        sampled_expected_count: [num_sampled], float32, how often each drawn class is expected.
    """

    sampled_candidates: Tensor
    true_expected_count: Tensor
    sampled_expected_count: Tensor


def _drawn(
    true_classes: TensorSpec, num_true: int, num_sampled: int, unique: bool, range_max: int
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Return the specs of what a sampler yields, or refuse its arguments."""
    for label, count in (("num_true", num_true), ("num_sampled", num_sampled)):
        if not 1 <= count <= _MOST:
            raise AttributeValueError(f"{label} must be in [1, {_MOST}], got {count}")
    if not 1 <= range_max < 2**63:
        raise AttributeValueError(f"range_max must be an int64 >= 1, got {range_max}")
    if unique and num_sampled > range_max:
        raise AttributeValueError(
            f"num_sampled={num_sampled} unique classes cannot be drawn of range_max={range_max}"
        )
    if not true_classes.shape.is_compatible_with([None, num_true]):
        raise ShapeError(
            f"true_classes must be [batch, num_true={num_true}], got shape {true_classes.shape}"
        )
    batch = None if true_classes.rank is None else true_classes.shape[0]
    return (
        TensorSpec(dtypes.int64, Shape([num_sampled])),
        TensorSpec(dtypes.float32, Shape([batch, num_true])),
        TensorSpec(dtypes.float32, Shape([num_sampled])),
    )


def _check_weights(range_max: int) -> None:
    if range_max > _MOST:
        raise AttributeValueError(
            f"a sampler that keeps a weight for each class takes at most {_MOST}, got range_max="
            f"{range_max}"
        )


@op("UniformCandidateSampler", effects="draws", public="", no_gradient=_DRAWN)
def _uniform(
    true_classes: Index, num_true: int, num_sampled: int, unique: bool, range_max: int, seeds: Seeds
) -> Drawn:
    """Classes drawn uniformly, with expected counts.

    Args:
        true_classes: [batch, num_true], the classes whose expected counts are asked for, in range.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice.
        range_max: The number of classes.
        seeds: Graph and op seed; None for entropy.

    Returns:
        The classes [num_sampled], and the expected counts of true classes [batch, num_true] and of
        drawn ones [num_sampled].
    """
    return _drawn(true_classes, num_true, num_sampled, unique, range_max)


@op("LogUniformCandidateSampler", effects="draws", public="", no_gradient=_DRAWN)
def _log_uniform(
    true_classes: Index, num_true: int, num_sampled: int, unique: bool, range_max: int, seeds: Seeds
) -> Drawn:
    """Classes drawn from an approximately log-uniform distribution, with expected counts.

    Args:
        true_classes: [batch, num_true], the classes whose expected counts are asked for, in range.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice.
        range_max: The number of classes.
        seeds: Graph and op seed; None for entropy.

    Returns:
        The classes [num_sampled], and the expected counts of true classes [batch, num_true] and of
        drawn ones [num_sampled].
    """
    return _drawn(true_classes, num_true, num_sampled, unique, range_max)


@op("LearnedUnigramCandidateSampler", effects=["draws", "changes"], public="", no_gradient=_DRAWN)
def _learned_unigram(
    true_classes: Index, num_true: int, num_sampled: int, unique: bool, range_max: int, seeds: Seeds
) -> Drawn:
    """Classes drawn as often as they have been true classes so far, with expected counts.

    Args:
        true_classes: [batch, num_true], within [0, range_max); counted after the draw.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice.
        range_max: The number of classes.
        seeds: Graph and op seed; None for entropy.

    Returns:
        The classes [num_sampled], and the expected counts of true classes [batch, num_true] and of
        drawn ones [num_sampled].
    """
    _check_weights(range_max)
    return _drawn(true_classes, num_true, num_sampled, unique, range_max)


@op("FixedUnigramCandidateSampler", effects="draws", public="", no_gradient=_DRAWN)
def _fixed_unigram(
    true_classes: Index,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str,
    distortion: float,
    num_reserved_ids: int,
    num_shards: int,
    shard: int,
    unigrams: Sequence[float],
    seeds: Seeds,
) -> Drawn:
    """Classes drawn from given unigram counts, with expected counts.

    Args:
        true_classes: [batch, num_true], the classes whose expected counts are asked for, in range.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice.
        range_max: The number of classes.
        vocab_file: A text file with one class per line, whose last comma-separated field is its
            count; read once.
        distortion: The power to which counts are raised.
        num_reserved_ids: How many classes with a count of 0 come before those given.
        num_shards: How many samplers share the classes.
        shard: Which of them this one is.
        unigrams: The counts, in place of ``vocab_file``.
        seeds: Graph and op seed; None for entropy.

    Returns:
        The classes [num_sampled], and the expected counts of true classes [batch, num_true] and of
        drawn ones [num_sampled].
    """
    if (not vocab_file) == (not unigrams):
        raise AttributeValueError("pass one of vocab_file and unigrams")
    if num_reserved_ids < 0 or num_shards < 1 or not 0 <= shard < num_shards:
        raise AttributeValueError(
            f"expected num_reserved_ids >= 0 and 0 <= shard < num_shards, got num_reserved_ids="
            f"{num_reserved_ids}, shard={shard}, num_shards={num_shards}"
        )
    _check_weights(range_max)
    if num_reserved_ids > range_max * num_shards:
        raise AttributeValueError(
            f"num_reserved_ids={num_reserved_ids} is more than the classes of range_max={range_max}"
        )
    return _drawn(true_classes, num_true, num_sampled, unique, range_max)


@op("AllCandidateSampler", public="", no_gradient=_DRAWN)
def _all(true_classes: Index, num_true: int, num_sampled: int, unique: bool) -> Drawn:
    """All classes, each expected once.

    Args:
        true_classes: [batch, num_true], the classes whose expected counts are asked for, in range.
        num_true: How many true classes an example has.
        num_sampled: The number of classes.
        unique: Without effect: each class is there once.

    Returns:
        The classes [num_sampled], and ones as expected counts of true classes [batch, num_true] and
        of drawn ones [num_sampled].
    """
    return _drawn(true_classes, num_true, num_sampled, unique, max(num_sampled, 1))


@op("ComputeAccidentalHits", public="", no_gradient="it yields positions")
def _accidental_hits(
    true_classes: Index, sampled_candidates: Index, num_true: int
) -> tuple[Spec, Spec, Spec]:
    """Positions of drawn classes that are true classes.

    Args:
        true_classes: [batch, num_true].
        sampled_candidates: [num_sampled].
        num_true: How many true classes an example has.

    Returns:
        Of each hit the example [hits], int32, the position among the drawn classes [hits], int64,
        and the lowest float32 [hits].
    """
    if num_true < 1:
        raise AttributeValueError(f"num_true must be >= 1, got {num_true}")
    if not true_classes.shape.is_compatible_with([None, num_true]):
        raise ShapeError(
            f"true_classes must be [batch, num_true={num_true}], got shape {true_classes.shape}"
        )
    if sampled_candidates.rank not in (None, 1):
        raise ShapeError(f"sampled_candidates must be a vector, got {sampled_candidates.shape}")
    hits = Shape([None])
    return (
        TensorSpec(dtypes.int32, hits),
        TensorSpec(dtypes.int64, hits),
        TensorSpec(dtypes.float32, hits),
    )


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes uniformly from [0, range_max).

    Args:
        true_classes: [batch, num_true], int32 or int64; classes out of range raise when it runs.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice; what was drawn before is drawn anew.
        range_max: The number of classes.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operation.

    Returns:
        ``Candidates``: the classes [num_sampled], int64, and how often each true class
        [batch, num_true] and each drawn class [num_sampled] is expected, float32.

    Raises:
        AttributeValueError: if more unique classes are asked for than there are.
        ShapeError: if ``true_classes`` is not [batch, num_true].
    """
    classes = _as_classes(true_classes)
    drawn = _uniform(classes, num_true, num_sampled, unique, range_max, op_seeds(seed), name=name)
    return Candidates(*drawn)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes from an approximately log-uniform distribution over [0, range_max).

    The probability of a class is ``log((class + 2) / (class + 1)) / log(range_max + 1)``, which
    fits classes that are sorted by falling frequency.

    Args:
        true_classes: [batch, num_true], int32 or int64; classes out of range raise when it runs.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice; what was drawn before is drawn anew.
        range_max: The number of classes.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operation.

    Returns:
        ``Candidates``: the classes [num_sampled], int64, and how often each true class
        [batch, num_true] and each drawn class [num_sampled] is expected, float32.

    Raises:
        AttributeValueError: if more unique classes are asked for than there are.
        ShapeError: if ``true_classes`` is not [batch, num_true].
    """
    classes = _as_classes(true_classes)
    drawn = _log_uniform(
        classes, num_true, num_sampled, unique, range_max, op_seeds(seed), name=name
    )
    return Candidates(*drawn)


def learned_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes as often as they have been true classes in earlier steps of the session.

    Every class starts with a count of one.

    Args:
        true_classes: [batch, num_true], int32 or int64, each in [0, range_max).
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice; what was drawn before is drawn anew.
        range_max: The number of classes.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operation.

    Returns:
        ``Candidates``: the classes [num_sampled], int64, and how often each true class
        [batch, num_true] and each drawn class [num_sampled] is expected, float32.

    Raises:
        AttributeValueError: if more unique classes are asked for than there are.
        ShapeError: if ``true_classes`` is not [batch, num_true].
    """
    classes = _as_classes(true_classes)
    drawn = _learned_unigram(
        classes, num_true, num_sampled, unique, range_max, op_seeds(seed), name=name
    )
    return Candidates(*drawn)


def _counts(unigrams: Any) -> list[float]:
    """Return the counts of classes that a program gives."""
    try:
        return [
            real(count, "a count of unigrams")
            for count in items(unigrams, "unigrams", _MOST_COUNTS)
        ]
    except (TypeError, ValueError):
        raise AttributeValueError(
            f"unigrams must be a list of numbers, got {shown(unigrams, 60)}"
        ) from None


def fixed_unigram_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    vocab_file: str = "",
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
    num_shards: int = 1,
    shard: int = 0,
    unigrams: Sequence[float] = (),
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Draw classes from given unigram counts.

    Args:
        true_classes: [batch, num_true], int32 or int64; classes out of range raise when it runs.
        num_true: How many true classes an example has.
        num_sampled: How many classes to draw.
        unique: Whether no class is drawn twice; what was drawn before is drawn anew.
        range_max: The number of classes, reserved ones included.
        vocab_file: A text file with one class per line, whose last comma-separated field is its
            count; read when it is first needed.
        distortion: The power to which counts are raised: 1 for the counts as they are, 0 for
            uniform draws.
        num_reserved_ids: How many classes with a count of 0 come before those given.
        num_shards: How many samplers share the classes; of those given, this one takes each that
            leaves ``shard`` when divided by ``num_shards``.
        shard: Which of them this one is.
        unigrams: The counts, in place of ``vocab_file``.
        seed: Seeds this op's stream, together with the graph's seed.
        name: The name of the operation.

    Returns:
        ``Candidates``: the classes [num_sampled], int64, and how often each true class
        [batch, num_true] and each drawn class [num_sampled] is expected, float32.

    Raises:
        AttributeValueError: if both or none of ``vocab_file`` and ``unigrams`` are given, or more
            unique classes are asked for than there are.
        ShapeError: if ``true_classes`` is not [batch, num_true].
    """
    drawn = _fixed_unigram(
        _as_classes(true_classes),
        num_true,
        num_sampled,
        unique,
        range_max,
        vocab_file,
        real(distortion, "distortion"),
        num_reserved_ids,
        num_shards,
        shard,
        _counts(unigrams),
        op_seeds(seed),
        name=name,
    )
    return Candidates(*drawn)


def all_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Return all classes in order, so that a sampled loss can be compared with the full one.

    Args:
        true_classes: [batch, num_true], int32 or int64; classes out of range raise when it runs.
        num_true: How many true classes an example has.
        num_sampled: The number of classes.
        unique: Without effect: each class is there once.
        seed: Without effect: nothing is drawn.
        name: The name of the operation.

    Returns:
        ``Candidates``: the classes [num_sampled], int64, and ones as expected counts of true
        classes [batch, num_true] and of drawn ones [num_sampled], float32.

    Raises:
        ShapeError: if ``true_classes`` is not [batch, num_true].
    """
    del seed
    return Candidates(*_all(_as_classes(true_classes), num_true, num_sampled, unique, name=name))


def compute_accidental_hits(
    true_classes: Any,
    sampled_candidates: Any,
    num_true: int,
    seed: int | None = None,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Find drawn classes that are true classes, whose logits a sampled loss masks.

    Args:
        true_classes: [batch, num_true], int32 or int64.
        sampled_candidates: [num_sampled], int32 or int64; of a class that is there several times,
            the last place counts.
        num_true: How many true classes an example has.
        seed: Without effect: nothing is drawn.
        name: The name of the operation.

    Returns:
        A tuple with, for each hit, the index of the example [hits], int32, the place among
        ``sampled_candidates`` [hits], int64, and the weight to add to its logit [hits], float32:
        the lowest number.

    Raises:
        ShapeError: if ``true_classes`` is not [batch, num_true].
    """
    del seed
    sampled = _as_classes(sampled_candidates)
    true = _as_classes(true_classes)
    examples, places, weights = _accidental_hits(true, sampled, num_true, name=name)
    return examples, places, weights


def _as_classes(classes: Any) -> Tensor:
    found: Tensor = cast(convert_to_tensor(classes, preferred_dtype=dtypes.int64), dtypes.int64)
    return found
