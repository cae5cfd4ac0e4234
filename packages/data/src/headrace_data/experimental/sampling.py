"""Sampling: elements at random, of several data sets, or so many of each class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import headrace as hr
from headrace.errors import AttributeValueError, DTypeError
from headrace.extend.arguments import items
from headrace_data import structure
from headrace_data.dataset import Dataset
from headrace_data.experimental.transformations import scan, unbatch
from headrace_data.sources.random import random_
from headrace_data.structure import Described
from headrace_data.transformations.choosing import choose

# How many elements go by before the frequencies of classes are looked at again, and how many of
# each class are taken to have gone by at first.
_BETWEEN = 32
_SMOOTHING = 10


class RandomDataset(Dataset):
    """A data set of random numbers below 2 ** 32, int64, without end; the same in each pass."""

    def __init__(self, seed: Any = None) -> None:
        """Draw numbers.

        Args:
            seed: [], the seed; without it and without a seed of the graph the numbers are different
                in each iterator.
        """
        made = random_(seed)
        super().__init__(made.variant, made.spec, made.inputs)


def choose_from_datasets(datasets: Sequence[Dataset], choice_dataset: Dataset) -> Dataset:
    """Return a data set of elements of several, one after the other as another one says.

    A data set that has no elements left is passed over.

    Args:
        datasets: Data sets of elements of one structure.
        choice_dataset: Numbers of data sets, [], int64.

    Raises:
        DTypeError: if ``choice_dataset`` has other elements.
        AttributeValueError: if there are no data sets.
    """
    spec = choice_dataset.spec
    if (
        not isinstance(spec, structure.TensorComponent)
        or spec.dtype != hr.int64
        or not spec.shape.is_compatible_with([])
    ):
        raise DTypeError("`choice_dataset` must be a dataset of scalar `hr.int64` tensors.")
    if not datasets:
        raise AttributeValueError("choose_from_datasets needs at least one data set")
    return _chosen(choice_dataset, datasets)


def _chosen(choices: Described, datasets: Sequence[Described]) -> Dataset:
    made = choose(choices, datasets)
    assert isinstance(made, Dataset)
    return made


def sample_from_datasets(
    datasets: Sequence[Dataset], weights: Any = None, seed: Any = None
) -> Dataset:
    """Return a data set of elements of several, chosen at random.

    A data set that has no elements left is passed over.

    Args:
        datasets: Data sets of elements of one structure.
        weights: [n], floats, how often elements come from each; equally often if None. Or a data
            set of such vectors, one for each choice.
        seed: [], the seed of the choices.

    Raises:
        AttributeValueError: if there are not as many weights as data sets.
        DTypeError: if they are no floats.
    """
    listed: list[Dataset] = items(datasets, "datasets")
    count = len(listed)
    if not count:
        raise AttributeValueError("sample_from_datasets needs at least one data set")
    if isinstance(weights, Dataset):
        chances = weights
    else:
        given = [1.0 / count] * count if weights is None else weights
        chances = Dataset.from_tensors(hr.convert_to_tensor(given, name="weights")).repeat()
    spec = chances.spec
    known = isinstance(spec, structure.TensorComponent)
    if not known or not spec.shape.is_compatible_with([count]):
        raise AttributeValueError("`weights` must be a vector of length `len(datasets)`.")
    if spec.dtype not in (hr.float32, hr.float64):
        raise DTypeError("`weights` must be convertible to a tensor of float32 or float64 elements")
    if count == 1:
        return listed[0]

    def drawn(chance: Any) -> Any:
        logits = hr.expand_dims(hr.log(chance), 0)
        return hr.squeeze(hr.multinomial(logits, 1, seed=seed), [0, 1])

    return _chosen(chances.map(drawn), listed)


def rejection_resample(
    class_func: Callable[..., Any],
    target_dist: Any,
    initial_dist: Any = None,
    seed: Any = None,
) -> Callable[[Dataset], Dataset]:
    """Return a transformation into elements whose classes come as often as is asked for.

    Some elements are left out by chance. As in TensorFlow, the result is of pairs of a class and
    an element.

    Args:
        class_func: From an element to its class, [], int32, from 0.
        target_dist: [classes], how often each class is to come.
        initial_dist: [classes], how often they come; estimated as elements go by if None.
        seed: [], the seed of the chances.
    """

    def apply(dataset: Dataset) -> Dataset:
        target = hr.convert_to_tensor(target_dist, name="target_dist")
        classes = dataset.map(class_func)
        if initial_dist is None:
            initial = _estimated(target, classes)
        else:
            given = hr.convert_to_tensor(initial_dist, name="initial_dist")
            initial = Dataset.from_tensors(given).repeat()
        chances = initial.map(lambda dist: _acceptance(dist, target))

        def with_chance(chance: Any, kind: Any, data: Any) -> Any:
            return kind, hr.gather(chance[0], kind), data

        joined = Dataset.zip((chances, classes, dataset)).map(with_chance)
        kept = joined.filter(lambda _, chance, __: hr.random_uniform([], seed=seed) < chance)
        thinned = kept.map(lambda kind, _, data: (kind, data))
        whole = Dataset.zip((classes, dataset))
        known = None if initial_dist is None else _known_chance(initial_dist, target)
        if known is not None:
            return whole if known else thinned
        mixing = chances.map(lambda _, original: hr.stack([original, 1.0 - original]))
        return sample_from_datasets([whole, thinned], mixing, seed)

    return apply


def _known_chance(initial_dist: Any, target: Any) -> bool | None:
    """Return whether nothing is left out, or none kept as it is; None where both may happen.

    Where one of the two never happens, nothing would tell its end.
    """
    initial = hr.get_static_value(hr.convert_to_tensor(initial_dist))
    wanted = hr.get_static_value(target)
    if initial is None or wanted is None:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.min(np.divide(wanted, initial))
    return bool(least) if least in (0, 1) else None


def _acceptance(initial: Any, target: Any) -> tuple[Any, Any]:
    """Return how likely an element of each class is kept, and how often none is left out."""
    tiny = np.finfo(initial.dtype.as_numpy_dtype).tiny
    ratio = target / (initial + tiny)
    most, least = hr.reduce_max(ratio), hr.reduce_min(ratio)
    return (ratio - least) / (most - least), least


def _estimated(target: Any, classes: Dataset) -> Dataset:
    """Return a data set of estimates of how often classes come, one for each element."""
    count = hr.shape(target)[0]
    start = hr.fill([count], hr.constant(_SMOOTHING, hr.int64))

    def update(seen: Any, batch: Any) -> Any:
        found = hr.one_hot(batch, count, dtype=hr.int64)
        now = seen + hr.reduce_sum(found, 0)
        dist = hr.cast(hr.truediv(now, hr.reduce_sum(now)), hr.float32)
        return now, hr.tile(hr.expand_dims(dist, 0), [_BETWEEN, 1])

    made: Any = classes.batch(_BETWEEN).apply(scan(start, update)).apply(unbatch())
    return made  # type: ignore[no-any-return]
