"""Kernels of candidate samplers.

Classes are drawn on the host, whatever the device: they are few. The words are those that random
ops draw from the same seeds. What a device array holds is only asked for by samplers that learn.

Unique classes are drawn by rejection, round by round. Where few classes are left to be found, their
order is drawn at once: by independent exponential waiting times with rates proportional to the
weights, the order in which classes would first appear; and the number of tries between them is
geometric. Both have the distribution that rejection has, at a cost that is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.errors import ResourceMismatchError, shown
from headrace.extend import KernelTable
from headrace.extend.kernels import KernelContext
from headrace_cpu.kernels.numeric import Array, check_indices, check_shape
from headrace_cpu.kernels.random import Seeds, host_bits

if TYPE_CHECKING:
    from headrace.extend.kernels import NodeView

KERNELS = KernelTable()
ARRAY_KERNELS = KernelTable()
PREPARED_KERNELS = KernelTable()

_WORD = 1 << 64
# Up to so many classes, a weight for each of them is no burden.
_FEW = 1 << 22


class _Words:
    """The random words of one draw of an op, in as many rounds as are asked for."""

    def __init__(self, ctx: KernelContext, seeds: Seeds) -> None:
        (graph_seed, op_seed), self._draw = ctx.draw(seeds)
        self._key = (graph_seed % _WORD, op_seed % _WORD)
        self._turn = 0

    def uniform(self, count: int) -> Array:
        """Return ``count`` numbers uniform in (0, 1)."""
        words = host_bits(np, self._key, self._turn << 128 | self._draw << 64, count)
        self._turn += 1
        return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


class _Distribution(Protocol):
    """A distribution over classes 0 to ``size - 1``."""

    size: int

    def draw(self, uniform: Array) -> Array:
        """Return the classes that numbers uniform in (0, 1) stand for."""

    def chance(self, xp: Any, classes: Array) -> Array:
        """Return the probabilities of classes, arrays of ``xp``."""

    def weights(self) -> Array:
        """Return the probabilities of all classes, on the host."""


class _Uniform:
    def __init__(self, size: int) -> None:
        self.size = size

    def draw(self, uniform: Array) -> Array:
        return np.minimum((uniform * self.size).astype(np.int64), self.size - 1)

    def chance(self, xp: Any, classes: Array) -> Array:
        return xp.full(classes.shape, 1.0 / self.size, np.float64)

    def weights(self) -> Array:
        return np.full(self.size, 1.0 / self.size)


class _LogUniform:
    def __init__(self, size: int) -> None:
        self.size = size
        self._log = math.log1p(size)

    def draw(self, uniform: Array) -> Array:
        # Rounding may reach the end of the range, or one beyond.
        return (np.expm1(uniform * self._log)).astype(np.int64) % self.size

    def chance(self, xp: Any, classes: Array) -> Array:
        place = classes.astype(np.float64)
        return xp.log1p(1.0 / (place + 1.0)) / self._log

    def weights(self) -> Array:
        chances: Array = self.chance(np, np.arange(self.size))
        return chances


class _Weighted:
    """A distribution given by a weight for each class."""

    def __init__(self, weights: Array) -> None:
        self.size = weights.size
        total = weights.sum()
        if not (total > 0 and np.isfinite(total)):
            raise ValueError(f"the weights of all classes must add up to a number > 0, got {total}")
        self._weights = weights / total
        self._below = np.cumsum(self._weights)
        # Numbers beyond the last sum, which rounding may leave below 1, mean the last class that
        # has a weight.
        self._last = int(np.flatnonzero(weights)[-1])

    def draw(self, uniform: Array) -> Array:
        return np.minimum(np.searchsorted(self._below, uniform, side="right"), self._last)

    def chance(self, xp: Any, classes: Array) -> Array:
        return xp.asarray(self._weights)[classes]

    def weights(self) -> Array:
        return self._weights


def _sample(
    xp: Any,
    words: _Words,
    distribution: _Distribution,
    true_classes: Array,
    num_true: int,
    num_sampled: int,
    unique: bool,
) -> tuple[Array, Array, Array]:
    """Return the classes drawn, and the expected counts of true and of drawn ones."""
    check_shape(true_classes, (*true_classes.shape[:1], num_true), "true_classes")
    check_indices(true_classes, distribution.size, f"the {distribution.size} classes")
    if unique:
        drawn, tries = _draw_unique(words, distribution, num_sampled)
    else:
        drawn, tries = distribution.draw(words.uniform(num_sampled)), num_sampled
    drawn = xp.asarray(drawn.astype(np.int64))

    def expected(classes: Array) -> Array:
        chances = distribution.chance(xp, classes)
        if tries == num_sampled:
            return (chances * num_sampled).astype(np.float32)
        return (-xp.expm1(xp.log1p(-chances) * float(tries))).astype(np.float32)

    return drawn, expected(true_classes), expected(drawn)


def _draw_unique(words: _Words, distribution: _Distribution, count: int) -> tuple[Array, int]:
    """Return different classes in the order in which they were first drawn, and the tries."""
    found = np.empty(0, np.int64)
    tries = 0
    enumerable = distribution.size <= max(_FEW, 16 * count) or isinstance(distribution, _Weighted)
    while found.size < count:
        missing = count - found.size
        drawn = distribution.draw(words.uniform(missing + missing // 2 + 8))
        _, first = np.unique(np.concatenate([found, drawn]), return_index=True)
        news = np.sort(first[first >= found.size])
        taken = news[:missing]
        fresh = drawn[taken - found.size]
        # Tries end with the one that found the last class.
        tries += int(taken[-1]) - found.size + 1 if taken.size == missing else drawn.size
        found = np.concatenate([found, fresh])
        if found.size < count and enumerable and fresh.size < missing // 4 + 1:
            rest, more = _draw_rest(words, distribution.weights(), found, count - found.size)
            return np.concatenate([found, rest]), tries + more
    return found, tries


def _draw_rest(words: _Words, weights: Array, found: Array, count: int) -> tuple[Array, int]:
    """Return ``count`` more classes than those found, by waiting times, and the tries."""
    open_ = np.ones(weights.size, bool)
    open_[found] = False
    left = np.flatnonzero(open_ & (weights > 0))
    if left.size < count:
        raise ValueError(
            f"{found.size + count} unique classes cannot be drawn: only {found.size + left.size} "
            "have a weight above 0"
        )
    waits = -np.log(words.uniform(left.size)) / weights[left]
    order = np.argsort(waits, kind="stable")
    # What is not yet found when each class is, itself included; summed from the least on.
    remaining = np.cumsum(weights[left[order]][::-1])[::-1][:count]
    chances = np.minimum(remaining, 1.0)
    with np.errstate(all="ignore"):
        gaps = np.ceil(np.log(words.uniform(count)) / np.log1p(-chances))
    # With nothing else to draw, the first try finds the class.
    gaps = np.where(np.isfinite(gaps), np.maximum(gaps, 1.0), 1.0)
    return left[order[:count]], int(min(gaps.sum(), 2.0**62))


@KERNELS.stateful("UniformCandidateSampler")
def uniform_candidate_sampler(
    ctx: KernelContext,
    true_classes: Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seeds: Seeds,
) -> tuple[Array, Array, Array]:
    """Draw uniformly."""
    words, uniform = _Words(ctx, seeds), _Uniform(range_max)
    return _sample(ctx.xp, words, uniform, true_classes, num_true, num_sampled, unique)


@KERNELS.stateful("LogUniformCandidateSampler")
def log_uniform_candidate_sampler(
    ctx: KernelContext,
    true_classes: Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seeds: Seeds,
) -> tuple[Array, Array, Array]:
    """Draw low classes more often than high ones."""
    words, falling = _Words(ctx, seeds), _LogUniform(range_max)
    return _sample(ctx.xp, words, falling, true_classes, num_true, num_sampled, unique)


class _Counts:
    """How often each class was a true class; kept in a container of the session."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.counts: Array = np.ones(size)

    def count(self, classes: Array) -> None:
        """Count classes once more each; readers keep the counts that they have."""
        counts = self.counts.copy()
        np.add.at(counts, classes, 1.0)
        self.counts = counts

    def reset(self) -> None:
        """Count from one again."""
        self.counts = np.ones(self._size)


@KERNELS.stateful("LearnedUnigramCandidateSampler")
def learned_unigram_candidate_sampler(
    ctx: KernelContext,
    true_classes: Array,
    *,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seeds: Seeds,
) -> tuple[Array, Array, Array]:
    """Draw from the counts of true classes so far, then count those of this step."""
    name = f"{ctx.op_name}/counts"
    learned = ctx.container("").get_or_create(name, _Counts, lambda: _Counts(range_max))
    if learned.counts.size != range_max:
        raise ResourceMismatchError(
            f"{name!r} counts {learned.counts.size} classes, expected {range_max}"
        )
    words, counted = _Words(ctx, seeds), _Weighted(learned.counts)
    drawn = _sample(ctx.xp, words, counted, true_classes, num_true, num_sampled, unique)
    classes = true_classes if ctx.xp is np else true_classes.get()
    learned.count(classes.reshape(-1))
    return drawn


@PREPARED_KERNELS.specialized("FixedUnigramCandidateSampler")
def fixed_unigram_candidate_sampler(node: NodeView) -> Callable[..., Any]:
    """Draw from given counts, which are read in the first step."""
    attrs = node.op.attrs
    made: list[_Weighted] = []

    def draw(true_classes: Array) -> tuple[Array, Array, Array]:
        if not made:
            made.append(_fixed(attrs))
        words = _Words(node.context, attrs["seeds"])
        num_true, num_sampled = attrs["num_true"], attrs["num_sampled"]
        return _sample(
            node.device.xp, words, made[0], true_classes, num_true, num_sampled, attrs["unique"]
        )

    return draw


def _fixed(attrs: Mapping[str, Any]) -> _Weighted:
    """Return the distribution over a shard of the classes."""
    shards, shard = attrs["num_shards"], attrs["shard"]
    counts = np.asarray(attrs["unigrams"] or _read_counts(attrs["vocab_file"]), np.float64)
    reserved = len(range(shard, attrs["num_reserved_ids"], shards))
    # The classes given are numbered from those reserved here on.
    mine = counts[(np.arange(counts.size) + reserved) % shards == shard]
    if not (np.isfinite(mine) & (mine >= 0)).all():
        raise ValueError("unigram counts must be finite and >= 0")
    if reserved + mine.size != attrs["range_max"]:
        raise ValueError(
            f"range_max={attrs['range_max']} classes need as many counts, got {reserved} reserved "
            f"and {mine.size} given"
        )
    return _Weighted(np.concatenate([np.zeros(reserved), mine ** attrs["distortion"]]))


def _read_counts(vocab_file: str) -> list[float]:
    counts = []
    try:
        stream = Path(vocab_file).open(encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise ValueError(f"cannot read vocab_file {vocab_file!r}: {error.strerror}") from None
    with stream as lines:
        for number, line in enumerate(lines, 1):
            last = line.rstrip("\n").rpartition(",")[2]
            try:
                counts.append(float(last))
            except ValueError:
                raise ValueError(
                    f"line {number} of {vocab_file} must end in a count, got {shown(last[:40])}"
                ) from None
    return counts


@ARRAY_KERNELS.plain("AllCandidateSampler")
def all_candidate_sampler(
    xp: Any, true_classes: Array, *, num_true: int, num_sampled: int, unique: bool
) -> tuple[Array, Array, Array]:
    """Return every class once."""
    check_shape(true_classes, (*true_classes.shape[:1], num_true), "true_classes")
    check_indices(true_classes, num_sampled, f"the {num_sampled} classes")
    return (
        xp.arange(num_sampled, dtype=np.int64),
        xp.ones(true_classes.shape, np.float32),
        xp.ones(num_sampled, np.float32),
    )


@ARRAY_KERNELS.plain("ComputeAccidentalHits")
def compute_accidental_hits(
    xp: Any, true_classes: Array, sampled: Array, *, num_true: int
) -> tuple[Array, Array, Array]:
    """Look up each true class among those drawn, of equal ones the last."""
    check_shape(true_classes, (*true_classes.shape[:1], num_true), "true_classes")
    if sampled.ndim != 1:
        raise ValueError(f"sampled_candidates must be a vector, got shape {list(sampled.shape)}")
    flat = true_classes.reshape(-1)
    if not sampled.size or not flat.size:
        none = xp.zeros(0, np.int64)
        return none.astype(np.int32), none, none.astype(np.float32)
    # A stable sort keeps equal classes in order: the search from the right ends at the last.
    order = _stable_order(xp, sampled)
    at = xp.searchsorted(sampled[order], flat, side="right") - 1
    place = order[xp.maximum(at, 0)]
    hits = xp.flatnonzero((at >= 0) & (sampled[place] == flat))
    weights = xp.full(hits.shape, np.finfo(np.float32).min, np.float32)
    return (hits // num_true).astype(np.int32), place[hits].astype(np.int64), weights


def _stable_order(xp: Any, x: Array) -> Array:
    # CuPy's sort is stable, and takes no other.
    return x.argsort(kind="stable") if xp is np else x.argsort()
