"""Candidate samplers draw what they say, and losses on samples agree with full ones."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import headrace as hr
from headrace.errors import ExecutionError, ShapeError

pytestmark = pytest.mark.needs("backend-cpu", "autodiff")

N = 6
SAMPLERS: dict[str, tuple[Any, dict[str, Any], Any]] = {
    "uniform": (hr.nn.uniform_candidate_sampler, {}, np.full(N, 1 / N)),
    "log_uniform": (
        hr.nn.log_uniform_candidate_sampler,
        {},
        np.diff(np.log(np.arange(1, N + 2))) / np.log(N + 1),
    ),
    "fixed_unigram": (
        hr.nn.fixed_unigram_candidate_sampler,
        {"unigrams": [1, 2, 0, 4, 8, 1]},
        np.array([1, 2, 0, 4, 8, 1]) / 16,
    ),
    "learned_unigram": (hr.nn.learned_unigram_candidate_sampler, {}, np.full(N, 1 / N)),
}


def run(build: Any, steps: int = 1, feeds: Any = None) -> Any:
    with hr.Graph().as_default(), hr.Session() as session:
        tensors = build()
        results = [session.run(tensors, feeds) for _ in range(steps)]
    return results if steps > 1 else results[0]


def chi_square(seen: Any, expected: Any) -> float:
    """Return the statistic in standard deviations beyond its mean."""
    used = expected > 0
    assert not seen[~used].any()
    statistic = np.sum((seen[used] - expected[used]) ** 2 / expected[used])
    freedom = used.sum() - 1
    return float((statistic - freedom) / np.sqrt(2 * freedom))


@pytest.mark.parametrize("name", SAMPLERS)
def test_draws_have_the_stated_distribution(name: str) -> None:
    sampler, more, chances = SAMPLERS[name]
    count = 20000
    sampled, true, expected = run(lambda: sampler([[4], [1]], 1, count, False, N, seed=5, **more))
    assert sampled.dtype == np.int64
    assert chi_square(np.bincount(sampled, minlength=N), chances * count) < 5
    np.testing.assert_allclose(true, chances[[[4], [1]]] * count, rtol=1e-5)
    np.testing.assert_allclose(expected, chances[sampled] * count, rtol=1e-5)


def inclusion(chances: Any, count: int) -> Any:
    """Return how likely each class is among ``count`` different ones drawn one after another."""
    total = np.zeros(chances.size)
    for order in itertools.permutations(np.flatnonzero(chances), count):
        likely, left = 1.0, 1.0
        for c in order:
            likely *= chances[c] / left
            left -= chances[c]
        total[list(order)] += likely
    return total


def mean_expected_count(chances: Any) -> float:
    """Return the mean of what is expected of class 0 when two different classes are drawn."""
    p, mean = chances[0], 0.0
    for tries in range(2, 400):
        likely = np.sum(chances ** (tries - 1) * (1 - chances))
        mean += likely * (2 * p if tries == 2 else 1 - (1 - p) ** tries)
    return mean


@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("name", ["uniform", "log_uniform", "fixed_unigram"])
def test_unique_draws_have_the_distribution_of_rejection(name: str, count: int) -> None:
    sampler, more, chances = SAMPLERS[name]
    steps = 3000
    results = run(lambda: sampler([[0]], 1, count, True, N, seed=3, **more), steps)
    seen = np.zeros(N)
    for sampled, *_ in results:
        assert len(set(sampled.tolist())) == count
        seen[sampled] += 1
    p = inclusion(chances, count)
    spread = np.sqrt(np.maximum(p * (1 - p) * steps, 1e-9))
    assert np.all(np.abs(seen - p * steps) < 5 * spread + 1e-6)
    if count == 2:
        counts = np.array([true[0, 0] for _, true, _ in results])
        assert (
            abs(counts.mean() - mean_expected_count(chances)) < 5 * counts.std() / steps**0.5 + 1e-6
        )


def test_few_classes_of_many_remain_to_be_found_without_many_tries() -> None:
    weights = [1e6, 1e6, 1e-6, 1e-9, 1e-9]
    sampled, true, _ = run(
        lambda: hr.nn.fixed_unigram_candidate_sampler([[0, 4]], 2, 5, True, 5, unigrams=weights)
    )
    assert sorted(sampled) == [0, 1, 2, 3, 4]
    assert true[0, 0] == 1
    assert 0.01 < true[0, 1] <= 1


def test_learned_unigrams_follow_the_true_classes() -> None:
    def build() -> Any:
        return hr.nn.learned_unigram_candidate_sampler([[2], [2]], 1, 400, False, 4, seed=1)

    results = run(build, 200)
    np.testing.assert_allclose(results[0][1], [[100], [100]])
    np.testing.assert_allclose(results[1][1], [[200], [200]])
    assert np.mean(results[-1][0] == 2) > 0.9


def test_vocabulary_from_a_file_with_reserved_classes_and_shards(tmp_path: Any) -> None:
    file = tmp_path / "vocabulary.csv"
    file.write_text("the,10\nof,20\nand,30\n")
    sampler = hr.nn.fixed_unigram_candidate_sampler

    def build() -> Any:
        whole = sampler([[0, 1, 3]], 3, 6, False, 4, vocab_file=str(file), num_reserved_ids=1)
        shard = sampler([[0, 1]], 2, 6, False, 2, vocab_file=str(file), num_shards=2, shard=0)
        return whole.true_expected_count, shard.true_expected_count

    whole, shard = run(build)
    np.testing.assert_allclose(whole, [[0, 1, 3]], rtol=1e-6)
    np.testing.assert_allclose(shard, [[1.5, 4.5]], rtol=1e-6)
    file.write_text("the,10\nof\n")
    with pytest.raises(ExecutionError, match=r"line 2 of .* must end in a count, got 'of'"):
        run(build)


def test_seeds_make_draws_repeatable() -> None:
    def build() -> Any:
        return hr.nn.log_uniform_candidate_sampler([[0]], 1, 5, True, 1000, seed=9)[0]

    first, second = run(build, 2)
    again, _ = run(build, 2)
    assert first.tolist() == again.tolist()
    assert first.tolist() != second.tolist()


def test_accidental_hits() -> None:
    found = run(lambda: hr.nn.compute_accidental_hits([[1, 2], [3, 9]], [9, 2, 2, 5], 2))
    assert [part.tolist() for part in found[:2]] == [[0, 1], [2, 0]]
    assert [part.dtype.name for part in found] == ["int32", "int64", "float32"]
    assert found[2].tolist() == [np.finfo(np.float32).min] * 2


CLASSES, DIM, BATCH = 7, 3, 4
RNG = np.random.default_rng(0)
W, B, X = (RNG.standard_normal(s) for s in ((CLASSES, DIM), (CLASSES,), (BATCH, DIM)))
LABELS = np.array([[1], [6], [0], [1]])


def full_softmax() -> Any:
    logits = X @ W.T + B
    logits -= np.log(np.exp(logits).sum(1, keepdims=True))
    return -np.take_along_axis(logits, LABELS, 1)[:, 0]


def test_with_all_classes_the_sampled_softmax_is_the_full_one() -> None:
    def build() -> Any:
        values = hr.nn.all_candidate_sampler(LABELS, 1, CLASSES, True)
        return hr.nn.sampled_softmax_loss(
            hr.constant(W), hr.constant(B), LABELS, hr.constant(X), CLASSES, CLASSES, 1, values
        )

    np.testing.assert_allclose(run(build), full_softmax(), rtol=1e-9)


def test_the_sampled_sum_over_classes_is_unbiased() -> None:
    """``sum(exp(logit) / expected count)`` over the draws estimates the sum over all classes."""
    steps, count = 4000, 5

    def build() -> Any:
        values = hr.nn.log_uniform_candidate_sampler(LABELS, 1, count, False, CLASSES, seed=2)
        sampled, _, expected = values
        logits = hr.matmul(hr.constant(X), hr.gather(hr.constant(W), sampled), transpose_b=True)
        logits += hr.gather(hr.constant(B), sampled)
        return hr.reduce_sum(hr.exp(logits - hr.log(hr.cast(expected, hr.float64))), 1)

    estimates = np.array(run(build, steps))
    exact = np.exp(X @ W.T + B).sum(1)
    error = estimates.std(0) / np.sqrt(steps)
    assert np.all(np.abs(estimates.mean(0) - exact) < 5 * error)


def test_the_sampled_loss_approaches_the_full_one() -> None:
    def build() -> Any:
        arguments = (hr.constant(W), hr.constant(B), LABELS, hr.constant(X))
        values = hr.nn.log_uniform_candidate_sampler(LABELS, 1, 20000, False, CLASSES, seed=2)
        return hr.nn.sampled_softmax_loss(
            *arguments, 20000, CLASSES, 1, values, remove_accidental_hits=False
        )

    # The true class is counted beside the draws, which have it as well: as 1 in 20000.
    logits = X @ W.T + B
    own = np.take_along_axis(logits, LABELS, 1)[:, 0]
    chance = np.diff(np.log(np.arange(1, CLASSES + 2)))[LABELS[:, 0]] / np.log(CLASSES + 1)
    corrected = own - np.log(chance * 20000)
    expected = np.log(np.exp(logits).sum(1) + np.exp(corrected)) - corrected
    np.testing.assert_allclose(run(build), expected, atol=0.05)


def test_nce_loss_and_its_gradients() -> None:
    labels = np.array([[1, 2], [6, 0], [0, 3], [1, 1]])
    sampled = np.array([2, 5, 6])
    true_count, sampled_count = RNG.uniform(0.1, 1, (4, 2)), RNG.uniform(0.1, 1, 3)

    def expected(w: Any, b: Any, x: Any, hits: bool) -> Any:
        true = np.einsum("nd,ntd->nt", x, w[labels]) + b[labels] - np.log(true_count)
        noise = x @ w[sampled].T + b[sampled] - np.log(sampled_count)
        if hits:
            same = (labels[:, :, None] == sampled).any(1)
            noise = np.where(same, -np.inf, noise)
        logits = np.concatenate([true, noise], 1)
        targets = np.concatenate([np.full((4, 2), 0.5), np.zeros((4, 3))], 1)
        with np.errstate(invalid="ignore"):
            terms = np.logaddexp(0, logits) - np.where(targets > 0, logits * targets, 0)
        return terms.sum(1)

    for hits in (False, True):

        def build(hits: bool = hits) -> Any:
            w, b, x = hr.Variable(W), hr.Variable(B), hr.Variable(X)
            loss = hr.nn.nce_loss(
                *(w, b, labels, x, 3, CLASSES, 2),
                sampled_values=(sampled, true_count, sampled_count),
                remove_accidental_hits=hits,
            )
            return loss, hr.gradients(loss, [w, b, x]), hr.global_variables_initializer()

        with hr.Graph().as_default(), hr.Session() as session:
            loss, gradients, initializer = build()
            assert isinstance(gradients[0], hr.IndexedSlices)
            session.run(initializer)
            found, dense = session.run([loss, [hr.convert_to_tensor(g) for g in gradients]])
        np.testing.assert_allclose(found, expected(W, B, X, hits), rtol=1e-9)
        for i, (value, gradient) in enumerate(zip((W, B, X), dense, strict=True)):
            direction = RNG.standard_normal(value.shape)
            ends = []
            for step in (1e-6, -1e-6):
                moved: list[Any] = [W, B, X]
                moved[i] = value + step * direction
                ends.append(expected(moved[0], moved[1], moved[2], hits).sum())
            assert np.sum(gradient * direction) == pytest.approx((ends[0] - ends[1]) / 2e-6, 1e-5)


@pytest.mark.parametrize("hits", [False, True])
def test_hits_among_unique_draws_count_alike_wherever_they_were_drawn(hits: bool) -> None:
    labels = np.array([[1, 2], [6, 0], [0, 3], [1, 1]])

    def build(given: bool) -> Any:
        values = None
        if given:
            values = hr.nn.log_uniform_candidate_sampler(labels, 2, 5, True, CLASSES, seed=4)
        arguments = (hr.constant(W), hr.constant(B), labels, hr.constant(X), 5, CLASSES, 2)
        return hr.nn.sampled_softmax_loss(*arguments, values, hits, seed=4)

    first, second = (run(lambda given=given: build(given)) for given in (False, True))
    np.testing.assert_allclose(first, second, rtol=1e-12)


def test_labels_must_be_a_matrix() -> None:
    with hr.Graph().as_default(), pytest.raises(ShapeError, match="num_true=1"):
        hr.nn.sampled_softmax_loss(W, B, [1, 2], X, 3, CLASSES)
